#include "tests/emulator/exact.h"

#include <algorithm>

namespace emulator_test {

Exact::Exact(int64_t value, int exponent) {
  *this = natural(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value),
                  exponent);
  negative_ = value < 0;
}

Exact Exact::natural(uint64_t value, int exponent) {
  Exact result;
  result.words_ = {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
  trim(result.words_);
  result.exponent_ = exponent;
  return result;
}

void Exact::trim(Words& words) {
  while (!words.empty() && words.back() == 0) words.pop_back();
}

int Exact::compare(const Words& a, const Words& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

Exact::Words Exact::shifted(const Words& a, int by) {
  Words result(static_cast<size_t>(by / 32), 0);
  const int bits = by % 32;
  uint64_t carry = 0;
  for (uint32_t word : a) {
    carry |= uint64_t{word} << bits;
    result.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  result.push_back(static_cast<uint32_t>(carry));
  trim(result);
  return result;
}

Exact Exact::operator-() const {
  Exact result = *this;
  result.negative_ = !negative_;
  return result;
}

Exact operator+(const Exact& a, const Exact& b) {
  if (a.words_.empty()) return b;
  if (b.words_.empty()) return a;
  Exact result;
  result.exponent_ = std::min(a.exponent_, b.exponent_);
  Exact::Words x = Exact::shifted(a.words_, a.exponent_ - result.exponent_);
  Exact::Words y = Exact::shifted(b.words_, b.exponent_ - result.exponent_);
  bool negative = a.negative_;
  if (Exact::compare(x, y) < 0) {
    std::swap(x, y);
    negative = b.negative_;
  }
  y.resize(x.size(), 0);
  int64_t carry = 0;
  const bool same = a.negative_ == b.negative_;
  for (size_t i = 0; i < x.size(); ++i) {
    carry += same ? int64_t{x[i]} + y[i] : int64_t{x[i]} - y[i];
    result.words_.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  result.words_.push_back(static_cast<uint32_t>(carry));
  Exact::trim(result.words_);
  result.negative_ = negative;
  return result;
}

Exact operator*(const Exact& a, const Exact& b) {
  Exact result;
  result.exponent_ = a.exponent_ + b.exponent_;
  result.negative_ = a.negative_ != b.negative_;
  result.words_.assign(a.words_.size() + b.words_.size(), 0);
  for (size_t i = 0; i < a.words_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.words_.size(); ++j) {
      carry += uint64_t{a.words_[i]} * b.words_[j] + result.words_[i + j];
      result.words_[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    result.words_[i + b.words_.size()] = static_cast<uint32_t>(carry);
  }
  Exact::trim(result.words_);
  return result;
}

Exact FloatFormat::value(uint64_t bits) const {
  const uint64_t magnitude = bits & ~sign_bit();
  const int field = static_cast<int>(magnitude >> fraction);
  uint64_t significand = magnitude & ((uint64_t{1} << fraction) - 1);
  if (field != 0) significand |= uint64_t{1} << fraction;
  const Exact result = Exact::natural(significand, std::max(field, 1) - bias() - fraction);
  return bits & sign_bit() ? -result : result;
}

namespace {

// The same for magnitudes and a value that is not negative; `up` rounds away from zero.
bool is_rounded_magnitude(const FloatFormat& format, char how, uint64_t magnitude,
                          const std::function<int(const Exact&)>& sign_against) {
  const Exact own = format.value(magnitude);
  const Exact half(1, -1);
  const bool infinite = magnitude == format.infinity();
  const int against = sign_against(own);
  switch (how) {
    case 'z':
      if (infinite) return false;
      return against >= 0 &&
             (magnitude + 1 == format.infinity() || sign_against(format.value(magnitude + 1)) < 0);
    case 'u':
      return (infinite || against <= 0) &&
             (magnitude == 0 || sign_against(format.value(magnitude - 1)) > 0);
    default: break;
  }
  if (!infinite) {
    const int above = sign_against((own + format.value(magnitude + 1)) * half);
    if (above > 0 || (above == 0 && (how == 'a' || (magnitude & 1)))) return false;
  }
  if (magnitude == 0) return true;
  const int below = sign_against((own + format.value(magnitude - 1)) * half);
  return below > 0 || (below == 0 && (how == 'a' || !(magnitude & 1)));
}

char away_or_to_zero(const std::string& rounding, bool negative) {
  if (rounding == "rn") return 'n';
  if (rounding == "rna") return 'a';
  if (rounding == "rz") return 'z';
  return (rounding == "rp") != negative ? 'u' : 'z';
}

}  // namespace

bool is_rounded(const FloatFormat& format, const std::string& rounding, uint64_t result,
                const std::function<int(const Exact&)>& sign_against) {
  if (format.is_nan(result)) return false;
  const bool negative = (result & format.sign_bit()) != 0;
  const int sign = sign_against(Exact());
  const uint64_t magnitude = result & ~format.sign_bit();
  if (sign == 0) return magnitude == 0;
  if (magnitude != 0 && (sign < 0) != negative) return false;
  return is_rounded_magnitude(
      format, away_or_to_zero(rounding, sign < 0), magnitude,
      [&](const Exact& x) { return sign < 0 ? -sign_against(-x) : sign_against(x); });
}

uint64_t rounded(const FloatFormat& format, const std::string& rounding,
                 const std::function<int(const Exact&)>& sign_against, bool negative_zero) {
  const int sign = sign_against(Exact());
  if (sign == 0) return negative_zero ? format.sign_bit() : 0;
  const auto magnitude_against = [&](const Exact& x) {
    return sign < 0 ? -sign_against(-x) : sign_against(x);
  };
  // The largest magnitude that is not above the value, then it or the next one.
  uint64_t low = 0, high = format.infinity();
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (magnitude_against(format.value(middle)) >= 0 ? low : high) = middle;
  }
  const char how = away_or_to_zero(rounding, sign < 0);
  const uint64_t magnitude =
      is_rounded_magnitude(format, how, low, magnitude_against) ? low : low + 1;
  return magnitude | (sign < 0 ? format.sign_bit() : 0);
}

}  // namespace emulator_test
