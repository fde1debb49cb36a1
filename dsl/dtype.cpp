#include "dsl/dtype.h"

#include <array>
#include <utility>

#include "dsl/error.h"

namespace krait {
namespace {
constexpr std::array<std::string_view, 5> names{"f64", "f32", "bf16", "f16", "i32"};
}

std::string_view name(DType dtype) { return names[static_cast<std::size_t>(dtype)]; }

DType dtype_from_name(std::string_view text, std::string_view field) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<DType>(i);
  throw UsageError(std::string(field), '"' + std::string(text) + '"', "f64, f32, bf16, f16, i32");
}

int size_in_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    default: return 2;
  }
}

DType wider(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::i32) return b;
  if (b == DType::i32) return a;
  if (size_in_bytes(a) == size_in_bytes(b)) return DType::f32;
  return size_in_bytes(a) > size_in_bytes(b) ? a : b;
}

}  // namespace krait
