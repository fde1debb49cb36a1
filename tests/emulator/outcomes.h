#pragma once

// What IEEE 754 arithmetic gives on bits of a format, exactly.

#include "tests/emulator/exact.h"

namespace emulator_test {

struct Outcome {
  enum class Kind { nan, infinite, finite } kind = Kind::nan;
  bool negative = false;                     // of an infinity or a zero
  std::function<int(const Exact&)> against;  // of a finite one: sign of the value minus another
};

Outcome outcome_of(const FloatFormat& format, uint64_t bits);
Outcome sum(const FloatFormat& format, uint64_t a, uint64_t b, const std::string& rounding);
// a * b + c with c of a format of its own.
Outcome product_sum(const FloatFormat& format, uint64_t a, uint64_t b, const FloatFormat& third,
                    uint64_t c, const std::string& rounding);
Outcome product(const FloatFormat& format, uint64_t a, uint64_t b);
Outcome quotient(const FloatFormat& format, uint64_t a, uint64_t b);
Outcome root(const FloatFormat& format, uint64_t a);

// Bits of an outcome in a format, with that NaN.
uint64_t bits_of(const Outcome& outcome, const FloatFormat& format, const std::string& rounding,
                 uint64_t nan);
// The same without computing them: whether the result is right, any NaN for NaN.
bool is_outcome(const Outcome& outcome, const FloatFormat& format, const std::string& rounding,
                uint64_t result);

// The number of some bits, which a double holds in every format here.
double number_of(const FloatFormat& format, uint64_t bits);

// What .ftz and .sat do to bits: a subnormal number becomes the zero of its sign; outside of [0, 1]
// the nearest end, NaN 0.
uint64_t flushed(const FloatFormat& format, uint64_t bits);
uint64_t saturated(const FloatFormat& format, uint64_t bits);
// Zero for what is negative, NaN stays the one given.
uint64_t rectified(const FloatFormat& format, uint64_t bits);

// Zeros, subnormal numbers, powers of two, edges, infinities and NaN, of both signs (22 of them);
// then random ones, half of them with exponents that are close to each other, so that sums cancel
// and carry.
std::vector<uint64_t> numbers(const FloatFormat& format, size_t count, uint64_t seed);

}  // namespace emulator_test
