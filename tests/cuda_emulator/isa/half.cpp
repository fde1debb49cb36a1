// f16 and bf16, alone and in pairs: every result is computed exactly, or to odd with more digits,
// and rounded once to the nearest. NaN results are the canonical one, 0x7fff. What of tanh and ex2
// is approximate on a GPU is here the function's value rounded. Not handled: fma.oob, whose special
// NaN the ISA does not give, and instructions that the ISA has for .rn but assemblers take with
// .rz.

#include <algorithm>
#include <cmath>

#include "tests/cuda_emulator/isa/floating.h"

namespace emulator {

using ptx::Type;

namespace {

struct HalfFormat {
  static constexpr uint16_t kNan = kHalfNan, kOne = 0x3c00, kInfinity = 0x7c00;
  static constexpr uint16_t kExponent = 0x7c00;
  static float value(uint16_t bits) { return half_value(bits); }
  static uint16_t nearest(float value) { return nearest_half(value); }
};
struct BfloatFormat {
  static constexpr uint16_t kNan = kBfloatNan, kOne = 0x3f80, kInfinity = 0x7f80;
  static constexpr uint16_t kExponent = 0x7f80;
  static float value(uint16_t bits) { return bfloat_value(bits); }
  static uint16_t nearest(float value) { return nearest_bfloat(value); }
};

struct Flags {
  bool ftz = false, sat = false, relu = false;
};

template <class Format, bool ftz>
uint16_t flushed(uint16_t bits) {
  return ftz && !(bits & Format::kExponent) ? bits & 0x8000 : bits;
}
template <class Format>
bool is_nan(uint16_t bits) {
  return (bits & 0x7fff) > Format::kInfinity;
}

// Sums of two, and products of f16, lose nothing that matters in single precision: it has more than
// twice the digits. Products of bf16 may underflow there.
struct Add {
  template <class Format>
  static float of(float a, float b, float) {
    return a + b;
  }
};
struct Sub {
  template <class Format>
  static float of(float a, float b, float) {
    return a - b;
  }
};
struct Mul {
  template <class Format>
  static float of(float a, float b, float) {
    return std::is_same_v<Format, HalfFormat> ? a * b : odd_single(double{a} * b);
  }
};
struct Fma {
  template <class Format>
  static float of(float a, float b, float c) {
    return odd_single(odd_sum(double{a} * b, c));
  }
};
struct Tangent {
  template <class Format>
  static float of(float a, float, float) {
    return std::tanh(a);
  }
};
struct Power {
  template <class Format>
  static float of(float a, float, float) {
    return std::exp2(a);
  }
};

template <class Format, class Operation, bool ftz>
uint16_t calculate(uint16_t a, uint16_t b, uint16_t c) {
  const auto value = [](uint16_t bits) { return Format::value(flushed<Format, ftz>(bits)); };
  return flushed<Format, ftz>(
      Format::nearest(Operation::template of<Format>(value(a), value(b), value(c))));
}

// After the rounding, which keeps the order of numbers.
template <class Format>
uint16_t clamped(uint16_t bits, bool sat, bool relu) {
  const bool nan = is_nan<Format>(bits), negative = (bits & 0x8000) != 0;
  if (sat) return nan || negative ? uint16_t{0} : std::min(bits, Format::kOne);
  return relu && negative && !nan ? uint16_t{0} : bits;
}

constexpr uint32_t kSat = 1, kRelu = 2;

template <class Format, class Operation, bool ftz>
uint16_t element(const Op& op, uint16_t a, uint16_t b, uint16_t c) {
  const uint16_t result = calculate<Format, Operation, ftz>(a, b, c);
  return op.mode[0] ? clamped<Format>(result, op.mode[0] & kSat, op.mode[0] & kRelu) : result;
}

uint16_t low(uint32_t pair) { return static_cast<uint16_t>(pair); }
uint16_t high(uint32_t pair) { return static_cast<uint16_t>(pair >> 16); }
uint32_t both(uint16_t lower, uint16_t upper) { return lower | uint32_t{upper} << 16; }

template <class Format, class Operation, bool ftz>
Run element_run(bool packed, int sources) {
  if (packed) {
    const auto of = [](const Op& op, uint32_t a, uint32_t b, uint32_t c) {
      return both(element<Format, Operation, ftz>(op, low(a), low(b), low(c)),
                  element<Format, Operation, ftz>(op, high(a), high(b), high(c)));
    };
    using Of = decltype(of);
    switch (sources) {
      case 1: return halfwise([](const Op& op, uint32_t a) { return Of{}(op, a, 0, 0); });
      case 2:
        return halfwise([](const Op& op, uint32_t a, uint32_t b) { return Of{}(op, a, b, 0); });
      default: return halfwise(of);
    }
  }
  switch (sources) {
    case 1:
      return lanewise(
          [](const Op& op, uint16_t a) { return element<Format, Operation, ftz>(op, a, 0, 0); });
    case 2:
      return lanewise([](const Op& op, uint16_t a, uint16_t b) {
        return element<Format, Operation, ftz>(op, a, b, 0);
      });
    default:
      return lanewise([](const Op& op, uint16_t a, uint16_t b, uint16_t c) {
        return element<Format, Operation, ftz>(op, a, b, c);
      });
  }
}

bool is_packed(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }
bool is_bfloat(Type type) { return type == Type::bf16 || type == Type::bf16x2; }
// Registers of packed types may be of any kind.
Type operand_type(Type type) { return is_packed(type) ? Type::b32 : type; }

constexpr auto kHalves = {Type::f16, Type::f16x2};
constexpr auto kBfloats = {Type::bf16, Type::bf16x2};
constexpr auto kAll16 = {Type::f16, Type::f16x2, Type::bf16, Type::bf16x2};

Op make_half(Decoding& decoding, Class kind, Run run, Type type, int sources) {
  const Type operand = operand_type(type);
  decoding.expect_operands(static_cast<size_t>(sources) + 1);
  for (int i = 0; i <= sources; ++i) require_format(decoding, static_cast<size_t>(i), type);
  switch (sources) {
    case 1: return make_lanewise(decoding, kind, run, operand, {operand});
    case 2: return make_lanewise(decoding, kind, run, operand, {operand, operand});
    default: return make_lanewise(decoding, kind, run, operand, {operand, operand, operand});
  }
}

template <class Operation>
Op make_arithmetic(Decoding& decoding, Type type, const Flags& flags, int sources) {
  const bool packed = is_packed(type);
  const Run run = is_bfloat(type) ? element_run<BfloatFormat, Operation, false>(packed, sources)
                  : flags.ftz     ? element_run<HalfFormat, Operation, true>(packed, sources)
                                  : element_run<HalfFormat, Operation, false>(packed, sources);
  Op op = make_half(decoding, Class::float16, run, type, sources);
  op.mode[0] = (flags.sat ? kSat : 0) | (flags.relu ? kRelu : 0);
  return op;
}

// add{.rnd}{.sat}.f32.f16 and the like: the halves are exact in single precision.
Op decode_mixed(Decoding& decoding, Modifiers& modifiers, Arithmetic operation, int sources,
                bool required) {
  FloatingMode mode;
  mode.rounding = take_rounding(decoding, modifiers, required);
  mode.sat = modifiers.take("sat");
  modifiers.type({Type::f32});
  const Type half = modifiers.type({Type::f16, Type::bf16});
  modifiers.end();
  require(decoding, 86, 100);
  const Run run = rounded_mixed_run(operation, half, mode);
  Op op = sources == 3
              ? make_lanewise(decoding, Class::float32, run, Type::f32, {half, half, Type::f32})
              : make_lanewise(decoding, Class::float32, run, Type::f32, {half, Type::f32});
  for (int i = 1; i < sources; ++i) require_format(decoding, static_cast<size_t>(i), half);
  keep_mode(op, mode);
  return op;
}

bool is_mixed(const Decoding& decoding) {
  const auto& modifiers = decoding.instruction->modifiers;
  return modifiers.size() >= 2 && modifiers[modifiers.size() - 2] == "f32";
}

template <class Operation, Arithmetic mixed>
Op decode_sum(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (mixed != Arithmetic::mul && is_mixed(decoding)) {
    return decode_mixed(decoding, modifiers, mixed, 2, false);
  }
  Flags flags;
  modifiers.take("rn");
  flags.ftz = modifiers.take("ftz");
  flags.sat = modifiers.take("sat");
  const Type type = modifiers.type(flags.ftz || flags.sat ? kHalves : kAll16);
  modifiers.end();
  is_bfloat(type) ? require(decoding, 78, 90) : require(decoding, 42, 53);
  return make_arithmetic<Operation>(decoding, type, flags, 2);
}

Op decode_fma(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (is_mixed(decoding)) return decode_mixed(decoding, modifiers, Arithmetic::fma, 3, true);
  if (!modifiers.take("rn")) decoding.fail("needs .rn");
  Flags flags;
  flags.ftz = modifiers.take("ftz");
  flags.sat = modifiers.take("sat");
  flags.relu = !flags.sat && modifiers.take("relu");
  const Type type = modifiers.type(flags.ftz || flags.sat ? kHalves : kAll16);
  modifiers.end();
  is_bfloat(type) || flags.relu ? require(decoding, 70, 80) : require(decoding, 42, 53);
  return make_arithmetic<Fma>(decoding, type, flags, 3);
}

Op decode_tanh(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (!modifiers.take("approx")) decoding.fail("needs .approx");
  const Type type = modifiers.type(kAll16);
  modifiers.end();
  is_bfloat(type) ? require(decoding, 78, 90) : require(decoding, 70, 75);
  Op op = make_arithmetic<Tangent>(decoding, type, {}, 1);
  op.kind = Class::special;
  return op;
}

// Subnormal results of bf16 are flushed; those of f16 are kept.
struct FlushedPower {
  template <class Format>
  static float of(float a, float, float) {
    return flush(std::exp2(flush(a)));
  }
};

Op decode_ex2(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (!modifiers.take("approx")) decoding.fail("needs .approx");
  const bool ftz = modifiers.take("ftz");
  const Type type = modifiers.type(ftz ? kBfloats : kHalves);
  modifiers.end();
  ftz ? require(decoding, 78, 90) : require(decoding, 70, 75);
  Op op = ftz ? make_arithmetic<FlushedPower>(decoding, type, {}, 1)
              : make_arithmetic<Power>(decoding, type, {}, 1);
  op.kind = Class::special;
  return op;
}

// neg and abs: the sign alone, of NaN too. mode[0]: bits of a half to flip, mode[1]: to clear.
template <bool ftz>
uint16_t signed_half(const Op& op, uint16_t bits) {
  const uint16_t value = flushed<HalfFormat, ftz>(bits);
  return static_cast<uint16_t>((value ^ op.mode[0]) & ~op.mode[1]);
}

template <bool ftz>
Run sign_run(bool packed) {
  if (!packed) {
    return lanewise([](const Op& op, uint16_t a) { return signed_half<ftz>(op, a); });
  }
  return halfwise([](const Op& op, uint32_t a) {
    return both(signed_half<ftz>(op, low(a)), signed_half<ftz>(op, high(a)));
  });
}

template <bool absolute>
Op decode_sign(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool ftz = modifiers.take("ftz");
  const Type type = modifiers.type(ftz ? kHalves : kAll16);
  modifiers.end();
  // In terms of PTX: abs came with 6.5, neg with 6.0.
  is_bfloat(type) ? require(decoding, 70, 80) : require(decoding, absolute ? 65 : 60, 53);
  const bool packed = is_packed(type);
  Op op = make_half(decoding, Class::float16,
                    ftz ? sign_run<true>(packed) : sign_run<false>(packed), type, 1);
  op.mode[absolute ? 1 : 0] = 0x8000;
  return op;
}

// What mode[0] of min and max holds.
enum Extreme : uint32_t { kPropagate = 1, kXorsign = 2, kMaximum = 4 };

// -0 is less than +0, so magnitudes with signs order all numbers.
int order(uint16_t bits) { return bits & 0x8000 ? -1 - (bits & 0x7fff) : bits; }

template <class Format, bool ftz>
uint16_t extreme(const Op& op, uint16_t a, uint16_t b) {
  a = flushed<Format, ftz>(a);
  b = flushed<Format, ftz>(b);
  const uint32_t mode = op.mode[0];
  const bool a_nan = is_nan<Format>(a), b_nan = is_nan<Format>(b);
  if ((a_nan && b_nan) || ((a_nan || b_nan) && (mode & kPropagate))) return Format::kNan;
  const auto sign = static_cast<uint16_t>((a ^ b) & 0x8000);
  if (mode & kXorsign) {
    a &= 0x7fff;
    b &= 0x7fff;
  }
  const bool first = b_nan || (!a_nan && (order(a) > order(b)) == ((mode & kMaximum) != 0));
  const uint16_t result = first ? a : b;
  return mode & kXorsign ? static_cast<uint16_t>(result | sign) : result;
}

template <class Format, bool ftz>
Run extreme_run(bool packed) {
  if (!packed) {
    return lanewise(
        [](const Op& op, uint16_t a, uint16_t b) { return extreme<Format, ftz>(op, a, b); });
  }
  return halfwise([](const Op& op, uint32_t a, uint32_t b) {
    return both(extreme<Format, ftz>(op, low(a), low(b)),
                extreme<Format, ftz>(op, high(a), high(b)));
  });
}

template <bool maximum>
Op decode_extreme(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool ftz = modifiers.take("ftz");
  const bool propagate = modifiers.take("NaN");
  const bool xorsign = modifiers.take("xorsign");
  if (xorsign && !modifiers.take("abs")) decoding.fail(".xorsign needs .abs");
  const Type type = modifiers.type(ftz ? kHalves : kAll16);
  modifiers.end();
  xorsign ? require(decoding, 72, 86) : require(decoding, 70, 80);
  const bool packed = is_packed(type);
  const Run run = is_bfloat(type) ? extreme_run<BfloatFormat, false>(packed)
                  : ftz           ? extreme_run<HalfFormat, true>(packed)
                                  : extreme_run<HalfFormat, false>(packed);
  Op op = make_half(decoding, Class::float16, run, type, 2);
  op.mode[0] =
      (propagate ? kPropagate : 0u) | (xorsign ? kXorsign : 0u) | (maximum ? kMaximum : 0u);
  return op;
}

}  // namespace

void add_half(Decoders& decoders) {
  decoders.add("add", kAll16, decode_sum<Add, Arithmetic::add>);
  decoders.add("sub", kAll16, decode_sum<Sub, Arithmetic::sub>);
  decoders.add("mul", kAll16, decode_sum<Mul, Arithmetic::mul>);
  decoders.add("fma", kAll16, decode_fma);
  decoders.add("tanh", kAll16, decode_tanh);
  decoders.add("ex2", kAll16, decode_ex2);
  decoders.add("neg", kAll16, decode_sign<false>);
  decoders.add("abs", kAll16, decode_sign<true>);
  decoders.add("min", kAll16, decode_extreme<false>);
  decoders.add("max", kAll16, decode_extreme<true>);
}

}  // namespace emulator
