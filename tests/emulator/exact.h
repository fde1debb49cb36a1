#pragma once

// Exact numbers (integers of any length times a power of two), and whether a floating-point result
// is the correct rounding of one: decided by comparing the exact value with the result, its
// neighbours and the middles between them, never by rounding anything.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace emulator_test {

class Exact {
 public:
  Exact() = default;
  explicit Exact(int64_t value, int exponent = 0);
  static Exact natural(uint64_t value, int exponent = 0);

  Exact operator-() const;
  friend Exact operator+(const Exact& a, const Exact& b);
  friend Exact operator-(const Exact& a, const Exact& b) { return a + -b; }
  friend Exact operator*(const Exact& a, const Exact& b);
  int sign() const { return words_.empty() ? 0 : negative_ ? -1 : 1; }

 private:
  using Words = std::vector<uint32_t>;  // from the lowest, no zero on top
  static int compare(const Words& a, const Words& b);
  static Words shifted(const Words& a, int by);
  static void trim(Words& words);

  Words words_;
  int exponent_ = 0;
  bool negative_ = false;
};

// A format of `width` bits: sign, exponent, fraction.
struct FloatFormat {
  int width, exponent, fraction;
  int bias() const { return (1 << (exponent - 1)) - 1; }
  uint64_t infinity() const { return ((uint64_t{1} << exponent) - 1) << fraction; }
  uint64_t sign_bit() const { return uint64_t{1} << (width - 1); }
  bool is_nan(uint64_t bits) const { return (bits & ~sign_bit()) > infinity(); }
  bool is_infinite(uint64_t bits) const { return (bits & ~sign_bit()) == infinity(); }
  bool is_subnormal(uint64_t bits) const {
    const uint64_t magnitude = bits & ~sign_bit();
    return magnitude != 0 && magnitude < uint64_t{1} << fraction;
  }
  // Of finite bits, and of infinity's as if exponents went on.
  Exact value(uint64_t bits) const;
};
inline constexpr FloatFormat kF16{16, 5, 10}, kBf16{16, 8, 7}, kF32{32, 8, 23}, kF64{64, 11, 52};

// Roundings by the names of PTX: "rn", "rz", "rm", "rp", and "rna" for ties away from zero.
// Whether `result` is the exact value rounded: sign_against(x) is the sign of that value minus x.
// A result of zero may have either sign here.
bool is_rounded(const FloatFormat& format, const std::string& rounding, uint64_t result,
                const std::function<int(const Exact&)>& sign_against);

// Bits of the exact value rounded, found by trying: bisection over all finite magnitudes. Zeros
// take the sign given.
uint64_t rounded(const FloatFormat& format, const std::string& rounding,
                 const std::function<int(const Exact&)>& sign_against, bool negative_zero = false);
inline uint64_t rounded(const FloatFormat& format, const std::string& rounding, const Exact& value,
                        bool negative_zero = false) {
  return rounded(
      format, rounding, [&](const Exact& x) { return (value - x).sign(); }, negative_zero);
}

}  // namespace emulator_test
