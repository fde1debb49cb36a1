// Element types of tensors and values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace krait {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i32 };

/// "f64", "f32", "bf16", "f16", "i32".
std::string_view name(DType dtype);

/// The inverse of name(). Throws UsageError that names `field` when the text is no dtype.
DType dtype_from_name(std::string_view text, std::string_view field = "dtype");

/// Bytes of one element.
int size_in_bytes(DType dtype);

constexpr bool is_float(DType dtype) { return dtype != DType::i32; }

/// The type in which values of `dtype` are accumulated: f64 for f64, f32 for the other floats,
/// i32 for i32.
constexpr DType accumulator(DType dtype) {
  return dtype == DType::f64 || dtype == DType::i32 ? dtype : DType::f32;
}

/// The wider of two dtypes; any float is wider than i32; bf16 with f16 gives f32.
DType wider(DType a, DType b);

}  // namespace krait
