// Lines of CUDA C++ with their indentation.
#pragma once

#include <string>
#include <vector>

namespace krait {

class CudaWriter {
 public:
  void line(const std::string& text);
  /// A comment, over several lines where it is long.
  void comment(const std::string& text);
  /// A line that ends with {, and what follows is inside. Without text the braces only keep names
  /// apart: they go where one statement stands inside.
  void open(const std::string& text);
  void close();
  const std::string& text() const { return out_; }
  int depth() const { return static_cast<int>(blocks_.size()); }

 private:
  struct Block {
    std::size_t start = 0;  // of its first line in the text
    int statements = 0;     // right inside
    bool for_names = false;
  };
  std::string out_;
  std::vector<Block> blocks_;
};

/// Lines of code that are too long, broken between words.
std::string broken_lines(const std::string& text);

}  // namespace krait
