// Arithmetic that rounds exactly, by the host's own: x86 and others with IEEE 754 arithmetic round
// single and double precision once, in the direction that the processor is set to. This file is
// compiled to expect other directions than the nearest.

#include <cfenv>
#include <cmath>

#include "tests/cuda_emulator/isa/floating.h"

namespace emulator {

using ptx::Type;

namespace {

// The direction of the processor for as long as it lives.
class Direction {
 public:
  explicit Direction(Rounding rounding) : before_(std::fegetround()) {
    std::fesetround(rounding == Rounding::zero   ? FE_TOWARDZERO
                    : rounding == Rounding::down ? FE_DOWNWARD
                    : rounding == Rounding::up   ? FE_UPWARD
                                                 : FE_TONEAREST);
  }
  ~Direction() { std::fesetround(before_); }
  Direction(const Direction&) = delete;
  Direction& operator=(const Direction&) = delete;

 private:
  int before_;
};

template <Arithmetic operation, class T>
T calculate(T a, T b, T c) {
  switch (operation) {
    case Arithmetic::add: return a + b;
    case Arithmetic::sub: return a - b;
    case Arithmetic::mul: return a * b;
    case Arithmetic::fma: return std::fma(a, b, c);
    case Arithmetic::div: return a / b;
    case Arithmetic::rcp: return T{1} / a;
    case Arithmetic::sqrt: return std::sqrt(a);
  }
}

constexpr int operands(Arithmetic operation) {
  switch (operation) {
    case Arithmetic::fma: return 3;
    case Arithmetic::rcp:
    case Arithmetic::sqrt: return 1;
    default: return 2;
  }
}

// Not inlined: calls that set the direction stay before and after it.
template <Arithmetic operation, class T, bool ftz, bool sat>
[[gnu::noinline]] void run_nearest(Warp& warp, const Op& op, Mask lanes) {
  const auto one = [](T a, T b, T c) {
    const T result = calculate<operation>(source_of<ftz>(a), source_of<ftz>(b), source_of<ftz>(c));
    return result_of<ftz, sat>(result);
  };
  if constexpr (operands(operation) == 1) {
    apply_lanes<T, T>(warp, op, lanes, [&](T a) { return one(a, T{}, T{}); });
  } else if constexpr (operands(operation) == 2) {
    apply_lanes<T, T, T>(warp, op, lanes, [&](T a, T b) { return one(a, b, T{}); });
  } else {
    apply_lanes<T, T, T, T>(warp, op, lanes, one);
  }
}

template <Arithmetic operation, class T, bool ftz, bool sat>
void run_directed(Warp& warp, const Op& op, Mask lanes) {
  const Direction direction(static_cast<Rounding>(op.mode[0]));
  run_nearest<operation, T, ftz, sat>(warp, op, lanes);
}

// Two values of f32 in a register of 64 bits, each as defined as its own bytes.
template <Arithmetic operation, bool ftz>
[[gnu::noinline]] void run_pair(Warp& warp, const Op& op, Mask lanes) {
  constexpr int count = operands(operation);
  const Registers registers = warp.registers;
  const uint64_t* from[3] = {};
  const uint8_t* from_defined[3] = {};
  for (int i = 0; i < count; ++i) {
    from[i] = registers.in<uint64_t>(op.args[1 + i]);
    from_defined[i] = registers.defined_in(op.args[1 + i]);
  }
  uint64_t* to = registers.out<uint64_t>(op.args[0]);
  uint8_t* defined = registers.defined_out(op.args[0]);
  const auto half = [&](int lane, int shift) -> uint64_t {
    float value[3] = {};
    for (int i = 0; i < count; ++i) {
      value[i] = source_of<ftz>(from_cell<float>(static_cast<uint32_t>(from[i][lane] >> shift)));
    }
    const float result = calculate<operation>(value[0], value[1], value[2]);
    return uint64_t{to_cell(result_of<ftz, false>(result))} << shift;
  };
  each_lane(lanes, [&](int lane) {
    to[lane] = half(lane, 0) | half(lane, 32);
    unsigned all = 0xff;
    for (int i = 0; i < count; ++i) all &= from_defined[i][lane];
    defined[lane] =
        static_cast<uint8_t>(((all & 15) == 15 ? 15 : 0) | ((all & 0xf0) == 0xf0 ? 0xf0 : 0));
  });
}

template <Arithmetic operation, bool ftz>
void run_pair_directed(Warp& warp, const Op& op, Mask lanes) {
  const Direction direction(static_cast<Rounding>(op.mode[0]));
  run_pair<operation, ftz>(warp, op, lanes);
}

template <Arithmetic operation, float (*value)(uint16_t), bool sat>
[[gnu::noinline]] void run_mixed(Warp& warp, const Op& op, Mask lanes) {
  if constexpr (operation == Arithmetic::fma) {
    apply_lanes<float, uint16_t, uint16_t, float>(
        warp, op, lanes, [](uint16_t a, uint16_t b, float c) {
          return result_of<false, sat>(calculate<operation>(value(a), value(b), c));
        });
  } else {
    apply_lanes<float, uint16_t, float>(warp, op, lanes, [](uint16_t a, float c) {
      return result_of<false, sat>(calculate<operation>(value(a), c, 0.0f));
    });
  }
}

template <Arithmetic operation, float (*value)(uint16_t), bool sat>
void run_mixed_directed(Warp& warp, const Op& op, Mask lanes) {
  const Direction direction(static_cast<Rounding>(op.mode[0]));
  run_mixed<operation, value, sat>(warp, op, lanes);
}

template <Arithmetic operation, float (*value)(uint16_t)>
Run mixed_by_mode(const FloatingMode& mode) {
  return mode.sat ? run_mixed_directed<operation, value, true>
                  : run_mixed_directed<operation, value, false>;
}

template <Arithmetic operation, class T, bool ftz, bool sat>
Run by_rounding(Rounding rounding) {
  return rounding == Rounding::nearest ? run_nearest<operation, T, ftz, sat>
                                       : run_directed<operation, T, ftz, sat>;
}

template <Arithmetic operation>
Run by_mode(Type type, const FloatingMode& mode) {
  if (type == Type::f64) return by_rounding<operation, double, false, false>(mode.rounding);
  if constexpr (operation == Arithmetic::add || operation == Arithmetic::sub ||
                operation == Arithmetic::mul || operation == Arithmetic::fma) {
    if (mode.sat) {
      return mode.ftz ? by_rounding<operation, float, true, true>(mode.rounding)
                      : by_rounding<operation, float, false, true>(mode.rounding);
    }
  }
  return mode.ftz ? by_rounding<operation, float, true, false>(mode.rounding)
                  : by_rounding<operation, float, false, false>(mode.rounding);
}

template <Arithmetic operation>
Run pair_by_mode(const FloatingMode& mode) {
  if (mode.rounding == Rounding::nearest) {
    return mode.ftz ? run_pair<operation, true> : run_pair<operation, false>;
  }
  return mode.ftz ? run_pair_directed<operation, true> : run_pair_directed<operation, false>;
}

}  // namespace

Run rounded_run(Arithmetic operation, Type type, const FloatingMode& mode) {
  switch (operation) {
    case Arithmetic::add: return by_mode<Arithmetic::add>(type, mode);
    case Arithmetic::sub: return by_mode<Arithmetic::sub>(type, mode);
    case Arithmetic::mul: return by_mode<Arithmetic::mul>(type, mode);
    case Arithmetic::fma: return by_mode<Arithmetic::fma>(type, mode);
    case Arithmetic::div: return by_mode<Arithmetic::div>(type, mode);
    case Arithmetic::rcp: return by_mode<Arithmetic::rcp>(type, mode);
    case Arithmetic::sqrt: return by_mode<Arithmetic::sqrt>(type, mode);
  }
  return nullptr;
}

Run rounded_pair_run(Arithmetic operation, const FloatingMode& mode) {
  switch (operation) {
    case Arithmetic::add: return pair_by_mode<Arithmetic::add>(mode);
    case Arithmetic::sub: return pair_by_mode<Arithmetic::sub>(mode);
    case Arithmetic::mul: return pair_by_mode<Arithmetic::mul>(mode);
    default: return pair_by_mode<Arithmetic::fma>(mode);
  }
}

Run rounded_mixed_run(Arithmetic operation, Type half, const FloatingMode& mode) {
  const bool bfloat = half == Type::bf16;
  switch (operation) {
    case Arithmetic::add:
      return bfloat ? mixed_by_mode<Arithmetic::add, bfloat_value>(mode)
                    : mixed_by_mode<Arithmetic::add, half_value>(mode);
    case Arithmetic::sub:
      return bfloat ? mixed_by_mode<Arithmetic::sub, bfloat_value>(mode)
                    : mixed_by_mode<Arithmetic::sub, half_value>(mode);
    default:
      return bfloat ? mixed_by_mode<Arithmetic::fma, bfloat_value>(mode)
                    : mixed_by_mode<Arithmetic::fma, half_value>(mode);
  }
}

}  // namespace emulator
