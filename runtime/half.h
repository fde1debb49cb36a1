// 16-bit floats and their conversion, round to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace krait {

/// Exact.
inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// A NaN stays a (quiet) NaN; what is too large becomes infinite.
inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// Exact, subnormals included.
inline float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// A NaN stays a (quiet) NaN; from 65520 up the result is infinite; small values become subnormal.
inline std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
  }
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;  // 65536 and up
  if (magnitude < 0x38800000u) {                        // below the least normal, 2^-14
    // Adding 1/2 leaves the units of 2^-24 in the low bits, rounded by the addition itself.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) & 0xffffu));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

/// `value` as a float that rounds on to 16 bits as `value` itself would: rounded to odd, so that no
/// tie arises that was none.
inline float double_to_float_odd(double value) {
  const float near = static_cast<float>(value);
  const double back = near;
  if (back == value || std::isnan(value) || std::isinf(near)) return near;
  auto bits = std::bit_cast<std::uint32_t>(near);
  // Truncate towards zero, then set the last bit, which tells of what was cut.
  if (std::abs(back) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}
inline std::uint16_t double_to_bf16(double value) {
  return float_to_bf16(double_to_float_odd(value));
}
inline std::uint16_t double_to_f16(double value) {
  return float_to_f16(double_to_float_odd(value));
}

}  // namespace krait
