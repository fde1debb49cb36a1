#pragma once

// Registers of a warp as vectors over its lanes, and the loops over lanes.
//
// A frame holds `units`: 128 bytes of values (32 lanes of four bytes) and 32 bytes of definedness.
// A register of up to four bytes is one unit; 8-byte registers are two units in a row, as one array
// of 32 64-bit values; 16-byte registers are four, as 32 pairs of u64. An 8- or 16-bit value lies
// in the low bits of its 32-bit lane, and the bits above it are zero. Definedness has a bit per
// byte of a lane's value, bit 0 for its lowest byte, and lies in the first unit of the register
// (for 16-byte registers: bytes 0-7 in the first unit, 8-15 in the third); bits for bytes that the
// type does not have are always 1, so that 0xff means "all of it is defined".
//
// Predicates are masks over lanes: a value and a definedness each.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace emulator {

inline constexpr int kLanes = 32;
using Mask = uint32_t;
inline constexpr Mask kAll = ~Mask{0};

// What an instruction reads or writes, after decoding.
struct Arg {
  enum class Kind : uint8_t { none, reg, constant, predicate, sink };
  uint32_t unit = 0;  // of the frame, of the program's constants, or the number of a predicate
  Kind kind = Kind::none;
  bool negated = false;  // predicates only
};

struct Predicate {
  Mask value = 0, defined = 0;
};

// Registers of one activation of a function by the lanes of one warp.
struct Registers {
  std::byte* values = nullptr;  // 64-byte aligned
  uint8_t* defined = nullptr;
  Predicate* predicates = nullptr;
  const std::byte* constants = nullptr;        // the program's, all defined
  const uint8_t* constants_defined = nullptr;  // 32 times 0xff

  template <class T>
  const T* in(Arg arg) const {
    const std::byte* base = arg.kind == Arg::Kind::constant ? constants : values;
    return reinterpret_cast<const T*>(base + size_t{arg.unit} * 128);
  }
  template <class T>
  T* out(Arg arg) const {
    return reinterpret_cast<T*>(values + size_t{arg.unit} * 128);
  }
  const uint8_t* defined_in(Arg arg) const {
    return arg.kind == Arg::Kind::constant ? constants_defined : defined + size_t{arg.unit} * 32;
  }
  uint8_t* defined_out(Arg arg) const { return defined + size_t{arg.unit} * 32; }

  // Of a predicate operand, with its negation; a constant one is not handled (there is none in
  // PTX).
  Mask predicate(Arg arg) const {
    const Mask value = predicates[arg.unit].value;
    return arg.negated ? ~value : value;
  }
  Mask predicate_defined(Arg arg) const { return predicates[arg.unit].defined; }
  void set_predicate(Arg arg, Mask lanes, Mask value, Mask value_defined = kAll) const {
    if (arg.kind != Arg::Kind::predicate) return;  // a sink
    Predicate& p = predicates[arg.unit];
    p.value = (p.value & ~lanes) | (value & lanes);
    p.defined = (p.defined & ~lanes) | (value_defined & lanes);
  }
};

// Calls f(lane) for every lane of the mask; with all of them, in a loop a compiler can vectorise.
template <class F>
inline void each_lane(Mask lanes, F&& f) {
  if (lanes == kAll) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (Mask rest = lanes; rest; rest &= rest - 1) f(std::countr_zero(rest));
  }
}

}  // namespace emulator
