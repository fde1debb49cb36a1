#include "tests/emulator/outcomes.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace emulator_test {
namespace {

using Kind = Outcome::Kind;

Outcome finite(const Exact& value, bool negative_zero) {
  return {Kind::finite, negative_zero, [value](const Exact& x) { return (value - x).sign(); }};
}
Outcome infinite(bool negative) { return {Kind::infinite, negative, nullptr}; }

bool negative(const FloatFormat& format, uint64_t bits) { return bits & format.sign_bit(); }
bool zero(const FloatFormat& format, uint64_t bits) { return (bits & ~format.sign_bit()) == 0; }

// Of a finite or infinite value and another of its own sign if it is zero.
Outcome added(const Exact& a, bool a_infinite, bool a_negative, const Exact& b, bool b_infinite,
              bool b_negative, const std::string& rounding) {
  if (a_infinite && b_infinite && a_negative != b_negative) return {};
  if (a_infinite) return infinite(a_negative);
  if (b_infinite) return infinite(b_negative);
  return finite(a + b, a_negative == b_negative ? a_negative : rounding == "rm");
}

}  // namespace

Outcome outcome_of(const FloatFormat& format, uint64_t bits) {
  if (format.is_nan(bits)) return {};
  if (format.is_infinite(bits)) return infinite(negative(format, bits));
  return finite(format.value(bits), negative(format, bits));
}

Outcome sum(const FloatFormat& format, uint64_t a, uint64_t b, const std::string& rounding) {
  if (format.is_nan(a) || format.is_nan(b)) return {};
  return added(format.value(a), format.is_infinite(a), negative(format, a), format.value(b),
               format.is_infinite(b), negative(format, b), rounding);
}

Outcome product_sum(const FloatFormat& format, uint64_t a, uint64_t b, const FloatFormat& third,
                    uint64_t c, const std::string& rounding) {
  const Outcome ab = product(format, a, b);
  if (ab.kind == Kind::nan || third.is_nan(c)) return {};
  const bool sign = negative(format, a) != negative(format, b);
  return added(format.value(a) * format.value(b), ab.kind == Kind::infinite, sign, third.value(c),
               third.is_infinite(c), negative(third, c), rounding);
}

Outcome product(const FloatFormat& format, uint64_t a, uint64_t b) {
  if (format.is_nan(a) || format.is_nan(b)) return {};
  const bool sign = negative(format, a) != negative(format, b);
  if (format.is_infinite(a) || format.is_infinite(b)) {
    if (zero(format, a) || zero(format, b)) return {};
    return infinite(sign);
  }
  return finite(format.value(a) * format.value(b), sign);
}

Outcome quotient(const FloatFormat& format, uint64_t a, uint64_t b) {
  if (format.is_nan(a) || format.is_nan(b)) return {};
  const bool sign = negative(format, a) != negative(format, b);
  const bool a_infinite = format.is_infinite(a), b_infinite = format.is_infinite(b);
  if ((a_infinite && b_infinite) || (zero(format, a) && zero(format, b))) return {};
  if (a_infinite || zero(format, b)) return infinite(sign);
  if (b_infinite) return finite(Exact(), sign);
  const Exact x = format.value(a), y = format.value(b);
  return {Kind::finite, sign,
          [=](const Exact& candidate) { return (x - candidate * y).sign() * y.sign(); }};
}

Outcome root(const FloatFormat& format, uint64_t a) {
  if (zero(format, a)) return finite(Exact(), negative(format, a));
  if (format.is_nan(a) || negative(format, a)) return {};
  if (format.is_infinite(a)) return infinite(false);
  const Exact x = format.value(a);
  return {Kind::finite, false, [=](const Exact& candidate) {
            return candidate.sign() < 0 ? 1 : (x - candidate * candidate).sign();
          }};
}

uint64_t bits_of(const Outcome& outcome, const FloatFormat& format, const std::string& rounding,
                 uint64_t nan) {
  switch (outcome.kind) {
    case Kind::nan: return nan;
    case Kind::infinite: return format.infinity() | (outcome.negative ? format.sign_bit() : 0);
    default: break;
  }
  return rounded(format, rounding, outcome.against, outcome.negative);
}

bool is_outcome(const Outcome& outcome, const FloatFormat& format, const std::string& rounding,
                uint64_t result) {
  if (outcome.kind == Kind::nan) return format.is_nan(result);
  if (outcome.kind == Kind::infinite) return result == bits_of(outcome, format, rounding, 0);
  if (!is_rounded(format, rounding, result, outcome.against)) return false;
  if ((result & ~format.sign_bit()) != 0) return true;
  const int sign = outcome.against(Exact());
  return negative(format, result) == (sign == 0 ? outcome.negative : sign < 0);
}

std::vector<uint64_t> numbers(const FloatFormat& f, size_t count, uint64_t seed) {
  const uint64_t one = static_cast<uint64_t>(f.bias()) << f.fraction;
  const uint64_t least = uint64_t{1} << f.fraction;
  std::vector<uint64_t> values;
  for (uint64_t magnitude : {uint64_t{0}, uint64_t{1}, least - 1, least, least + 1, one, one + 1,
                             one - 1, f.infinity() - 1, f.infinity(), f.infinity() + 1}) {
    values.push_back(magnitude);
    values.push_back(magnitude | f.sign_bit());
  }
  std::mt19937_64 random(seed);
  while (values.size() < count) {
    const uint64_t bits = random();
    const uint64_t fraction =
        bits & (least - 1) & (bits >> 60 & 1 ? ~uint64_t{0} : ~uint64_t{0} << f.fraction / 2);
    const uint64_t exponent = values.size() % 2
                                  ? bits >> f.fraction & ((uint64_t{1} << f.exponent) - 1)
                                  : static_cast<uint64_t>(f.bias()) - 3 + (bits >> 53) % 7;
    values.push_back((bits >> 63 ? f.sign_bit() : 0) | exponent << f.fraction | fraction);
  }
  return values;
}

double number_of(const FloatFormat& f, uint64_t bits) {
  const uint64_t magnitude = bits & ~f.sign_bit();
  const double sign = bits & f.sign_bit() ? -1 : 1;
  if (f.is_nan(bits)) return std::nan("");
  if (f.is_infinite(bits)) return sign * HUGE_VAL;
  const int field = static_cast<int>(magnitude >> f.fraction);
  const uint64_t low = magnitude & ((uint64_t{1} << f.fraction) - 1);
  const uint64_t significand = field ? low | uint64_t{1} << f.fraction : low;
  return sign *
         std::ldexp(static_cast<double>(significand), std::max(field, 1) - f.bias() - f.fraction);
}

uint64_t flushed(const FloatFormat& format, uint64_t bits) {
  return format.is_subnormal(bits) ? bits & format.sign_bit() : bits;
}

uint64_t saturated(const FloatFormat& format, uint64_t bits) {
  if (format.is_nan(bits) || (bits & format.sign_bit())) return 0;
  const uint64_t one = static_cast<uint64_t>(format.bias()) << format.fraction;
  return bits > one ? one : bits;
}

uint64_t rectified(const FloatFormat& format, uint64_t bits) {
  return !format.is_nan(bits) && (bits & format.sign_bit()) ? 0 : bits;
}

}  // namespace emulator_test
