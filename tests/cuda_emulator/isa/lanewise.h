#pragma once

// Lane templates of the arithmetic: a function of one lane's values becomes the `run` of an
// instruction, with the rules of definedness. Destinations are taken to overlap no source unless
// they are the same register.

#include <bit>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/lanes.h"
#include "tests/cuda_emulator/machine/op.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {

using Run = void (*)(Warp&, const Op&, Mask);

// What a lane of a register is read and written as: 32 bits, or 64 for wider values.
template <class T>
using Cell = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

namespace detail {
template <size_t bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using type = uint8_t;
};
template <>
struct BitsOf<2> {
  using type = uint16_t;
};
template <>
struct BitsOf<4> {
  using type = uint32_t;
};
template <>
struct BitsOf<8> {
  using type = uint64_t;
};
}  // namespace detail
template <class T>
using BitsOf = typename detail::BitsOf<sizeof(T)>::type;

template <class T>
inline T from_cell(Cell<T> cell) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(cell));
}
template <class T>
inline Cell<T> to_cell(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

// Definedness bits of the bytes that a value of T does not have.
template <class T>
inline constexpr uint8_t kAbsent = sizeof(T) >= 8 ? uint8_t{0}
                                                  : static_cast<uint8_t>(0xff << sizeof(T));

// Whether all lanes of the registers are wholly defined, of lanes that do not run too: the usual
// case, tested at once.
template <class... Defined>
inline bool all_defined(const Defined*... defined) {
  const auto whole = [](const uint8_t* d) {
    uint64_t words[kLanes / 8];
    std::memcpy(words, d, sizeof words);
    return (words[0] & words[1] & words[2] & words[3]) == ~uint64_t{0};
  };
  return (whole(defined) && ...);
}

// The rule of arithmetic for a result of type R: defined where all sources are.
template <class R, class... Defined>
inline void define(Mask lanes, uint8_t* to, const Defined*... from) {
  each_lane(lanes,
            [&](int lane) { to[lane] = (0xff & ... & from[lane]) == 0xff ? 0xff : kAbsent<R>; });
}

// The same for two halves of 16 bits that do not depend on each other.
template <class... Defined>
inline void define_halves(Mask lanes, uint8_t* to, const Defined*... from) {
  each_lane(lanes, [&](int lane) {
    const unsigned all = (0xff & ... & from[lane]);
    to[lane] = static_cast<uint8_t>(((all & 3) == 3 ? 3 : 0) | ((all & 12) == 12 ? 0xfc : 0xf0));
  });
}

// A bit per lane from f(lane), which gives a bool; lanes that do not run give 0.
template <class F>
inline Mask mask_of(Mask lanes, F&& f) {
  Mask result = 0;
  if (lanes == kAll) {
    alignas(32) uint8_t flags[kLanes];
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) flags[lane] = f(lane) ? 1 : 0;
    for (int i = 0; i < kLanes / 8; ++i) {
      uint64_t eight = 0;
      for (int k = 0; k < 8; ++k) eight |= uint64_t{flags[i * 8 + k]} << (8 * k);
      result |= static_cast<Mask>((eight * 0x0102040810204080) >> 56) << (8 * i);
    }
  } else {
    for (Mask rest = lanes; rest; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      result |= static_cast<Mask>(f(lane) ? 1 : 0) << lane;
    }
  }
  return result;
}

// Lanes whose sources are all defined.
template <class... Defined>
inline Mask defined_mask(Mask lanes, const Defined*... from) {
  if (all_defined(from...)) return lanes;
  return mask_of(lanes, [&](int lane) { return (from[lane] & ...) == 0xff; });
}

// Bits of a lane for its bytes' definedness, and back: a byte is defined where all its bits are.
inline uint64_t bits_defined(uint8_t bytes) {
  uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits |= (bytes >> i & 1) ? uint64_t{0xff} << (8 * i) : 0;
  return bits;
}
template <class T>
inline uint8_t bytes_defined(T bits) {
  uint8_t bytes = kAbsent<T>;
  for (size_t i = 0; i < sizeof(T); ++i) {
    if ((bits >> (8 * i) & 0xff) == 0xff) bytes = static_cast<uint8_t>(bytes | 1 << i);
  }
  return bytes;
}

// args[0] = f(args[1], ...) in each lane, values of types R and A...; define(lanes, to, from...)
// sets what is defined.
template <class R, class... A, class F, class Define, size_t... I>
inline void apply_lanes(Warp& warp, const Op& op, Mask lanes, F&& f, Define&& definer,
                        std::index_sequence<I...>) {
  const Registers registers = warp.registers;
  Cell<R>* to = registers.out<Cell<R>>(op.args[0]);
  const std::tuple<const Cell<A>*...> from{registers.in<Cell<A>>(op.args[1 + I])...};
  each_lane(lanes,
            [&](int lane) { to[lane] = to_cell<R>(f(from_cell<A>(std::get<I>(from)[lane])...)); });
  definer(lanes, registers.defined_out(op.args[0]), registers.defined_in(op.args[1 + I])...);
}
template <class R, class... A, class F>
inline void apply_lanes(Warp& warp, const Op& op, Mask lanes, F&& f) {
  apply_lanes<R, A...>(
      warp, op, lanes, f,
      [](Mask running, uint8_t* to, auto*... from) { define<R>(running, to, from...); },
      std::index_sequence_for<A...>{});
}
template <class R, class... A, class F>
inline void apply_halves(Warp& warp, const Op& op, Mask lanes, F&& f) {
  apply_lanes<R, A...>(
      warp, op, lanes, f,
      [](Mask running, uint8_t* to, auto*... from) { define_halves(running, to, from...); },
      std::index_sequence_for<A...>{});
}

namespace detail {

template <class F>
struct Lanewise;
template <class F, class R, class... A>
struct Lanewise<R (F::*)(A...) const> {
  static void whole(Warp& warp, const Op& op, Mask lanes) {
    apply_lanes<R, A...>(warp, op, lanes, F{});
  }
  static void halves(Warp& warp, const Op& op, Mask lanes) {
    apply_halves<R, A...>(warp, op, lanes, F{});
  }
};
template <class F, class R, class... A>
struct Lanewise<R (F::*)(const Op&, A...) const> {
  static void whole(Warp& warp, const Op& op, Mask lanes) {
    apply_lanes<R, A...>(warp, op, lanes, [&op](A... a) { return F{}(op, a...); });
  }
  static void halves(Warp& warp, const Op& op, Mask lanes) {
    apply_halves<R, A...>(warp, op, lanes, [&op](A... a) { return F{}(op, a...); });
  }
};

}  // namespace detail

// The run of an instruction with one destination, args[0], and a source register for each parameter
// of f, which captures nothing; a first parameter `const Op&` gives f the instruction.
template <class F>
Run lanewise(F) {
  return &detail::Lanewise<decltype(&F::operator())>::whole;
}
// The same for values of two halves of 16 bits that do not depend on each other.
template <class F>
Run halfwise(F) {
  return &detail::Lanewise<decltype(&F::operator())>::halves;
}

// A value and which of its bits are defined.
template <class T>
struct Bits {
  using Word = BitsOf<T>;
  T value{};
  Word defined{};
  bool whole() const { return defined == static_cast<Word>(~Word{0}); }
};

// As lanewise, for functions that move bits: g gives the defined bits of the result from sources as
// Bits, and is asked only where something is not wholly defined.
template <class F, class G, class R, class... A, size_t... I>
inline void apply_bits(Warp& warp, const Op& op, Mask lanes, R (F::*)(A...) const,
                       std::index_sequence<I...>) {
  const Registers registers = warp.registers;
  const std::tuple<const Cell<A>*...> from{registers.in<Cell<A>>(op.args[1 + I])...};
  uint8_t* defined = registers.defined_out(op.args[0]);
  if (all_defined(registers.defined_in(op.args[1 + I])...)) {
    define<R>(lanes, defined);
  } else {
    each_lane(lanes, [&](int lane) {
      defined[lane] = bytes_defined<BitsOf<R>>(G{}(Bits<A>{
          from_cell<A>(std::get<I>(from)[lane]),
          static_cast<BitsOf<A>>(bits_defined(registers.defined_in(op.args[1 + I])[lane]))}...));
    });
  }
  Cell<R>* to = registers.out<Cell<R>>(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[lane] = to_cell<R>(F{}(from_cell<A>(std::get<I>(from)[lane])...));
  });
}
namespace detail {
template <class Member>
struct Parameters;
template <class F, class R, class... A>
struct Parameters<R (F::*)(A...) const> {
  using Sequence = std::index_sequence_for<A...>;
};
}  // namespace detail
template <class F, class G>
Run bitwise(F, G) {
  return [](Warp& warp, const Op& op, Mask lanes) {
    constexpr auto member = &F::operator();
    apply_bits<F, G>(warp, op, lanes, member,
                     typename detail::Parameters<decltype(&F::operator())>::Sequence{});
  };
}

// An instruction with one destination and as many operands as types.
inline Op make_lanewise(Decoding& decoding, Class kind, Run run, ptx::Type to,
                        std::initializer_list<ptx::Type> from) {
  decoding.expect_operands(1 + from.size());
  std::vector<Arg> args{decoding.target(0, to)};
  size_t i = 0;
  for (const ptx::Type type : from) args.push_back(decoding.source(++i, type));
  return decoding.make(kind, run, args);
}

// Error where the module is for an older architecture or PTX version than the instruction is in.
inline void require(const Decoding& decoding, int version, int architecture) {
  if (decoding.version() < version) {
    decoding.fail("needs PTX " + std::to_string(version / 10) + "." + std::to_string(version % 10));
  }
  if (decoding.architecture() < architecture) {
    decoding.fail("needs sm_" + std::to_string(architecture));
  }
}

// Error where operand i, of a half or a packed type, is not a register of that type or of bits:
// these types have no literals.
inline void require_format(const Decoding& decoding, size_t i, ptx::Type type) {
  using ptx::Type;
  const Type found = decoding.register_type(decoding.instruction->operands.at(i));
  const bool bits = found == Type::b8 || found == Type::b16 || found == Type::b32;
  if (!bits && found != type) {
    decoding.fail("operand " + std::to_string(i + 1) + " is no register of type ." +
                  std::string(ptx::name_of(type)) + " or of bits");
  }
}

// f with a value of the C++ type of an integer type; .b types are unsigned.
template <class F>
inline Run for_integer(ptx::Type type, F&& f) {
  using ptx::Type;
  switch (type) {
    case Type::u16:
    case Type::b16: return f(uint16_t{});
    case Type::u32:
    case Type::b32: return f(uint32_t{});
    case Type::u64:
    case Type::b64: return f(uint64_t{});
    case Type::s16: return f(int16_t{});
    case Type::s32: return f(int32_t{});
    case Type::s64: return f(int64_t{});
    default: return nullptr;
  }
}

// The same for .b16, .b32 and .b64 alone.
template <class F>
inline Run for_bits(ptx::Type type, F&& f) {
  switch (type) {
    case ptx::Type::b16: return f(uint16_t{});
    case ptx::Type::b32: return f(uint32_t{});
    case ptx::Type::b64: return f(uint64_t{});
    default: return nullptr;
  }
}

// Unsigned arithmetic of T's width or more, which wraps instead of overflowing.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

}  // namespace emulator
