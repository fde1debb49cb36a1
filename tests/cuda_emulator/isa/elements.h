#pragma once

// Elements of matrix fragments as the values that tensor cores multiply. Every conversion is exact
// and free of branches and denormal numbers, so that loops over it vectorise and stay fast.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace emulator {

inline float value_of_half(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu, sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000u;
  const uint32_t small = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(magnitude)) *
                                                 0x1p-24f);  // denormal halves and zero
  const uint32_t value = magnitude < 0x0400u ? small : (magnitude < 0x7c00u ? normal : special);
  return std::bit_cast<float>(value | sign);
}

// To nearest, ties to even; NaN becomes 0x7fff.
inline uint16_t half_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x47800000u) return sign | 0x7c00;  // 2^16 and more
  if (magnitude < 0x38800000u) {                       // below the least normal half, 2^-14
    const float ulps = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<uint16_t>(std::nearbyintf(ulps));
  }
  // A carry runs into the exponent, and from 65520 on to infinity.
  const uint32_t rebased = magnitude - (112u << 23);
  return sign | static_cast<uint16_t>((rebased + 0xfffu + (rebased >> 13 & 1)) >> 13);
}

// To nearest, ties to even; NaN becomes 0x7fff.
inline uint16_t bfloat_of(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// Four exponent bits, three of mantissa, no infinity; 0x7f and 0xff are NaN.
inline float value_of_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float value = exponent ? std::ldexp(1.f + static_cast<float>(mantissa) / 8.f, exponent - 7)
                         : static_cast<float>(mantissa) * 0x1p-9f;
  if ((bits & 0x7f) == 0x7f) value = std::bit_cast<float>(0x7fffffffu);
  return bits & 0x80 ? -value : value;
}

struct Half {
  using Bits = uint16_t;
  using Value = float;
  static float value(uint16_t bits) { return value_of_half(bits); }
};

struct Bfloat {
  using Bits = uint16_t;
  using Value = float;
  static float value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// The low 13 bits of the register are not looked at.
struct Tfloat {
  using Bits = uint32_t;
  using Value = float;
  static float value(uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); }
};

struct E4m3 {
  using Bits = uint8_t;
  using Value = float;
  static float value(uint8_t bits) {
    static const std::array<float, 256> table = [] {
      std::array<float, 256> t{};
      for (unsigned i = 0; i < 256; ++i) t[i] = value_of_e4m3(static_cast<uint8_t>(i));
      return t;
    }();
    return table[bits];
  }
};

// The upper byte of a half.
struct E5m2 {
  using Bits = uint8_t;
  using Value = float;
  static float value(uint8_t bits) { return value_of_half(static_cast<uint16_t>(bits << 8)); }
};

struct Signed8 {
  using Bits = int8_t;
  using Value = int32_t;
  static int32_t value(int8_t bits) { return bits; }
};

struct Unsigned8 {
  using Bits = uint8_t;
  using Value = int32_t;
  static int32_t value(uint8_t bits) { return bits; }
};

struct Double {
  using Bits = double;
  using Value = double;
  static double value(double bits) { return bits; }
};

}  // namespace emulator
