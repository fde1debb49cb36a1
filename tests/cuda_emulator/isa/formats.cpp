#include "tests/cuda_emulator/isa/formats.h"

#include <algorithm>

namespace emulator {

uint64_t round_magnitude(const Format& format, uint64_t significand, int exponent,
                         Rounding rounding, bool negative) {
  const int shift = std::countl_zero(significand);
  significand <<= shift;
  const int top = exponent - shift + 63;  // exponent of the leading bit
  const int below = std::max(format.least - top, 0);
  const int dropped = 63 - format.fraction + below;
  const uint64_t kept = dropped < 64 ? significand >> dropped : 0;
  // What is dropped against half of the last kept bit.
  const uint64_t half = dropped <= 64 ? uint64_t{1} << (dropped - 1) : 0;
  const uint64_t rest = dropped < 64 ? significand & ((half << 1) - 1) : significand;
  const bool any = rest != 0;
  const bool above = half != 0 && rest > half, tie = half != 0 && rest == half;
  bool increment = false;
  switch (rounding) {
    case Rounding::nearest: increment = above || (tie && (kept & 1)); break;
    case Rounding::away: increment = above || tie; break;
    case Rounding::zero: break;
    case Rounding::down: increment = any && negative; break;
    case Rounding::up: increment = any && !negative; break;
  }
  const uint64_t biased = static_cast<uint64_t>(std::max(top - format.least, 0));
  return (biased << format.fraction) + kept + (increment ? 1 : 0);
}

}  // namespace emulator
