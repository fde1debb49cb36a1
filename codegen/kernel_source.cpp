#include "codegen/kernel_source.h"

#include <algorithm>

namespace krait {

std::string_view name(KernelSource::Backend backend) {
  return backend == KernelSource::Backend::llvm ? "llvm" : "cuda";
}

std::string numbered_lines(std::string_view text) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  const std::size_t width = std::to_string(lines).size();
  std::string out;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string digits = std::to_string(number);
    out.append(width - digits.size(), ' ').append(digits).append(" | ");
    out.append(text.substr(0, end)).push_back('\n');
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace krait
