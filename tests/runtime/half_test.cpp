#include "runtime/half.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace krait {
namespace {

/// The value of a 16-bit float, from its fields alone.
double value_of(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const double sign = (bits >> 15) ? -1 : 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>((bits >> fraction_bits) & ((1u << exponent_bits) - 1));
  const double fraction = bits & ((1u << fraction_bits) - 1);
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(1 + std::ldexp(fraction, -fraction_bits), exponent - bias);
}

struct Format {
  int exponent_bits, fraction_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  std::uint16_t (*narrow64)(double);
};

void check_format(const Format& format) {
  int wrong = 0;
  const std::uint32_t infinite = ((1u << format.exponent_bits) - 1) << format.fraction_bits;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double value = value_of(bits, format.exponent_bits, format.fraction_bits);
    const float widened = format.widen(half);
    if (std::isnan(value)) {
      wrong += !std::isnan(widened) || !std::isnan(format.widen(format.narrow(widened)));
      continue;
    }
    wrong += widened != value || std::signbit(widened) != std::signbit(value);
    wrong += format.narrow(widened) != half || format.narrow64(value) != half;
    if (std::isinf(value)) continue;
    // The middle to the next one away from zero goes to the even of the two, and what lies a little
    // to either side of it to the nearer.
    const double next = (bits & 0x7fff) + 1 == infinite
                            ? std::copysign(std::ldexp(1.0, 1 << (format.exponent_bits - 1)), value)
                            : value_of(bits + 1, format.exponent_bits, format.fraction_bits);
    const double middle = value + (next - value) / 2;
    const auto even = static_cast<std::uint16_t>(half + (half & 1));
    wrong += format.narrow64(middle) != even;
    wrong += format.narrow64(std::nextafter(middle, value)) != half;
    wrong += format.narrow64(std::nextafter(middle, 2 * next)) != half + 1;
    if (static_cast<float>(middle) != middle) continue;  // below the least float
    wrong += format.narrow(static_cast<float>(middle)) != even;
    wrong += format.narrow(std::nextafter(static_cast<float>(middle), widened)) != half;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bf16 and f16 convert exactly and round to nearest even, all 65536 of each") {
  SECTION("bf16") { check_format({8, 7, bf16_to_float, float_to_bf16, double_to_bf16}); }
  SECTION("f16") { check_format({5, 10, f16_to_float, float_to_f16, double_to_f16}); }
}

TEST_CASE("what no 16-bit float can hold becomes infinite or zero, sign kept") {
  CHECK(float_to_f16(65519.0f) == 0x7bff);
  CHECK(float_to_f16(-65520.0f) == 0xfc00);
  CHECK(float_to_f16(-1e-30f) == 0x8000);
  CHECK(float_to_bf16(3.4e38f) == 0x7f80);
  CHECK(double_to_bf16(-1e300) == 0xff80);
  CHECK(double_to_bf16(-1e-300) == 0x8000);
}

}  // namespace
}  // namespace krait
