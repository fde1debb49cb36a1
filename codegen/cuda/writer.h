// Lines of CUDA C++ with their indentation.
#pragma once

#include <string>

namespace krait {

class CudaWriter {
 public:
  void line(const std::string& text) {
    if (!text.empty()) out_.append(2 * static_cast<std::size_t>(depth_), ' ');
    out_ += text + '\n';
  }
  /// A line that ends with {, and what follows is inside.
  void open(const std::string& text) {
    line(text.empty() ? "{" : text + " {");
    ++depth_;
  }
  void close(const std::string& behind = "") {
    --depth_;
    line("}" + behind);
  }
  const std::string& text() const { return out_; }
  int depth() const { return depth_; }

 private:
  std::string out_;
  int depth_ = 0;
};

}  // namespace krait
