#pragma once

// Binary floating-point formats below single precision: their values, and rounding to them, once.

#include <bit>
#include <cmath>
#include <cstdint>

namespace emulator {

enum class Rounding : uint8_t { nearest, zero, down, up, away };  // away: nearest, ties away from 0

// A format with subnormal numbers. Infinity and NaN are not all formats'; what lies beyond the
// largest value is for those who convert.
struct Format {
  int fraction = 0;      // bits
  int least = 0;         // exponent of the smallest normal number
  uint64_t largest = 0;  // bits of the largest finite magnitude
};
inline constexpr Format kHalf{10, -14, 0x7bff}, kBfloat{7, -126, 0x7f7f}, kTf32{10, -126, 0x3fbff},
    kSingle{23, -126, 0x7f7fffff}, kDouble{52, -1022, 0x7fefffffffffffff}, kE4m3{3, -6, 0x7e},
    kE5m2{2, -14, 0x7b}, kE2m3{3, 0, 0x1f}, kE3m2{2, -2, 0x1f}, kE2m1{1, 0, 0x7};

inline constexpr uint16_t kHalfNan = 0x7fff, kBfloatNan = 0x7fff;
inline constexpr uint32_t kSingleNan = 0x7fffffff;

// Bits of the magnitude nearest to significand * 2^exponent (significand not 0) by that rounding of
// a number of that sign. May lie beyond the largest one, as if exponents went on.
uint64_t round_magnitude(const Format& format, uint64_t significand, int exponent,
                         Rounding rounding, bool negative);

// The magnitude of a finite number as significand * 2^exponent.
struct Parts {
  bool negative = false;
  uint64_t significand = 0;
  int exponent = 0;
};
inline Parts parts_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & 0xfffffffffffff;
  return {(bits >> 63) != 0, biased ? fraction | uint64_t{1} << 52 : fraction,
          (biased ? biased : 1) - 1075};
}

// Magnitude of the finite value's parts in that format; 0 stays 0.
inline uint64_t round_parts(const Format& format, const Parts& parts, Rounding rounding) {
  if (parts.significand == 0) return 0;
  return round_magnitude(format, parts.significand, parts.exponent, rounding, parts.negative);
}

// What replaces a magnitude that is too large: infinity, or the largest finite one where the
// rounding goes towards zero.
inline bool overflows_to_infinity(Rounding rounding, bool negative) {
  switch (rounding) {
    case Rounding::zero: return false;
    case Rounding::down: return negative;
    case Rounding::up: return !negative;
    default: return true;
  }
}

// A number of a format with infinities, bits of `width` with the sign on top, from finite parts.
inline uint64_t encode(const Format& format, int width, const Parts& parts, Rounding rounding) {
  uint64_t magnitude = round_parts(format, parts, rounding);
  if (magnitude > format.largest) {
    magnitude = format.largest + (overflows_to_infinity(rounding, parts.negative) ? 1 : 0);
  }
  return magnitude | (uint64_t{parts.negative} << (width - 1));
}

// Without a branch and without subnormal numbers of single precision, which are slow.
inline float half_value(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu, sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t other = (magnitude << 13) | 0x7f800000;  // infinity, NaN
  const auto small =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
  const uint32_t large = magnitude < 0x7c00 ? normal : other;
  return std::bit_cast<float>(sign | (magnitude < 0x0400 ? small : large));
}
inline float bfloat_value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// To the nearest value; NaN becomes the canonical one.
inline uint16_t nearest_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // The sum's last bit is worth what a subnormal number's is.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - 0x3f000000;
  uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;
  result |= bits >> 16 & 0x8000;
  return static_cast<uint16_t>(magnitude > 0x7f800000 ? kHalfNan : result);
}
inline uint16_t nearest_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? kBfloatNan : rounded);
}

// Rounded to odd: a later rounding to at least two bits less gives what one rounding of the exact
// value would.
inline float odd_single(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const double error = value - static_cast<double>(nearest);
  // Infinity from a finite value has an error as well; NaN's and a true infinity's compare false.
  const bool inexact = error < 0 || error > 0;
  if (!inexact || (bits & 1)) return nearest;
  const bool outwards = (error > 0) != std::signbit(value);
  return std::bit_cast<float>(outwards ? bits + 1 : bits - 1);
}
// a + b to odd.
inline double odd_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  const auto bits = std::bit_cast<uint64_t>(sum);
  const bool inexact = error < 0 || error > 0;
  if (!inexact || (bits & 1)) return sum;
  const bool outwards = (error > 0) != std::signbit(sum);
  return std::bit_cast<double>(outwards ? bits + 1 : bits - 1);
}

}  // namespace emulator
