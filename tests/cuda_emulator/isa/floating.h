#pragma once

// Single and double precision: what the files of it share. NaN results of f32 are the canonical
// one, 0x7fffffff; those of f64 keep what the host's arithmetic makes of an operand.

#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/cuda_emulator/isa/formats.h"
#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

// Zero of the same sign for a subnormal number.
inline float flush(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(bits & 0x7f800000 ? bits : bits & 0x80000000);
}
// Into [0, 1]; NaN becomes +0.
inline float saturate(float value) { return value > 0 ? value < 1 ? value : 1.0f : 0.0f; }
inline float canonical(float value) {
  return value == value ? value : std::bit_cast<float>(kSingleNan);
}

// Sources and results of f32 instructions with .ftz and .sat; f64 has neither.
template <bool ftz>
inline float source_of(float value) {
  return ftz ? flush(value) : value;
}
template <bool ftz>
inline double source_of(double value) {
  return value;
}
template <bool ftz, bool sat>
inline float result_of(float value) {
  if (ftz) value = flush(value);
  return sat ? saturate(value) : canonical(value);
}
template <bool ftz, bool sat>
inline double result_of(double value) {
  return value;
}

// Operations that round, exactly and once.
enum class Arithmetic : uint8_t { add, sub, mul, fma, div, rcp, sqrt };

struct FloatingMode {
  bool ftz = false, sat = false;
  Rounding rounding = Rounding::nearest;
};

// The run of an operation on f32 or f64; `keep_mode` has to be called for its Op.
Run rounded_run(Arithmetic operation, ptx::Type type, const FloatingMode& mode);
// On f32x2.
Run rounded_pair_run(Arithmetic operation, const FloatingMode& mode);
// On an f32 and one or, for fma, two values of f16 or bf16 before it.
Run rounded_mixed_run(Arithmetic operation, ptx::Type half, const FloatingMode& mode);
inline void keep_mode(Op& op, const FloatingMode& mode) {
  op.mode[0] = static_cast<uint32_t>(mode.rounding);
}

// The next modifier as .rn, .rz, .rm or .rp; nearest where there is none, an error if required.
Rounding take_rounding(const Decoding& decoding, Modifiers& modifiers, bool required);

// The .approx and .full forms of f32 and f64, by approximate.cpp; the modifier was taken.
Op decode_div_approximate(Decoding& decoding, Modifiers& modifiers, bool full);
Op decode_rcp_approximate(Decoding& decoding, Modifiers& modifiers);
Op decode_sqrt_approximate(Decoding& decoding, Modifiers& modifiers);

}  // namespace emulator
