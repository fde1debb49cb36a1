// Instructions of f32 and f64 that are exact or round exactly.

#include "tests/cuda_emulator/isa/floating.h"

#include <algorithm>

namespace emulator {

using ptx::Type;

Rounding take_rounding(const Decoding& decoding, Modifiers& modifiers, bool required) {
  constexpr Rounding roundings[] = {Rounding::nearest, Rounding::zero, Rounding::down,
                                    Rounding::up};
  const int found = modifiers.take_one({"rn", "rz", "rm", "rp"});
  if (found < 0 && required) decoding.fail("needs .rn, .rz, .rm or .rp");
  return roundings[std::max(found, 0)];
}

namespace {

Class class_of(Type type) { return type == Type::f64 ? Class::float64 : Class::float32; }

// {.rnd}{.ftz}{.sat}.f32 or {.rnd}.f64 with so many sources.
Op decode_rounded(Decoding& decoding, Modifiers& modifiers, Arithmetic operation, int sources,
                  bool required, bool may_saturate) {
  FloatingMode mode;
  mode.rounding = take_rounding(decoding, modifiers, required);
  mode.ftz = modifiers.take("ftz");
  mode.sat = may_saturate && modifiers.take("sat");
  const Type type =
      mode.ftz || mode.sat ? modifiers.type({Type::f32}) : modifiers.type({Type::f32, Type::f64});
  modifiers.end();
  const Run run = rounded_run(operation, type, mode);
  Op op = sources == 1   ? make_lanewise(decoding, class_of(type), run, type, {type})
          : sources == 2 ? make_lanewise(decoding, class_of(type), run, type, {type, type})
                         : make_lanewise(decoding, class_of(type), run, type, {type, type, type});
  keep_mode(op, mode);
  return op;
}

template <Arithmetic operation>
Op decode_sum(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  return decode_rounded(decoding, modifiers, operation, 2, false, true);
}

Op decode_fma(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  return decode_rounded(decoding, modifiers, Arithmetic::fma, 3, true, true);
}

// Pairs of f32, whose name is no type of registers: {.rnd}{.ftz}.f32x2.
template <Arithmetic operation>
Op decode_pair(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  FloatingMode mode;
  mode.rounding = take_rounding(decoding, modifiers, operation == Arithmetic::fma);
  mode.ftz = modifiers.take("ftz");
  if (!modifiers.take("f32x2")) decoding.fail("there is no such instruction of that type");
  modifiers.end();
  require(decoding, 86, 100);
  const Run run = rounded_pair_run(operation, mode);
  Op op = operation == Arithmetic::fma
              ? make_lanewise(decoding, Class::float32, run, Type::b64,
                              {Type::b64, Type::b64, Type::b64})
              : make_lanewise(decoding, Class::float32, run, Type::b64, {Type::b64, Type::b64});
  keep_mode(op, mode);
  return op;
}

Op decode_div(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const int approximate = modifiers.take_one({"approx", "full"});
  if (approximate >= 0) return decode_div_approximate(decoding, modifiers, approximate == 1);
  return decode_rounded(decoding, modifiers, Arithmetic::div, 2, true, false);
}

Op decode_rcp(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take("approx")) return decode_rcp_approximate(decoding, modifiers);
  return decode_rounded(decoding, modifiers, Arithmetic::rcp, 1, true, false);
}

Op decode_sqrt(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take("approx")) return decode_sqrt_approximate(decoding, modifiers);
  return decode_rounded(decoding, modifiers, Arithmetic::sqrt, 1, true, false);
}

// Signs alone, of NaN too.
template <bool ftz>
float negated(float a) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(source_of<ftz>(a)) ^ 0x80000000);
}
template <bool ftz>
float magnitude(float a) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(source_of<ftz>(a)) & 0x7fffffff);
}

template <class Plain, class Flushed, class Double>
Op decode_sign(Decoding& decoding, Plain plain, Flushed flushed, Double wide) {
  Modifiers modifiers(*decoding.instruction);
  const bool ftz = modifiers.take("ftz");
  const Type type = ftz ? modifiers.type({Type::f32}) : modifiers.type({Type::f32, Type::f64});
  modifiers.end();
  const Run run = ftz ? lanewise(flushed) : type == Type::f32 ? lanewise(plain) : lanewise(wide);
  return make_lanewise(decoding, class_of(type), run, type, {type});
}

Op decode_abs(Decoding& decoding) {
  return decode_sign(
      decoding, [](float a) { return magnitude<false>(a); },
      [](float a) { return magnitude<true>(a); }, [](double a) { return std::fabs(a); });
}

Op decode_neg(Decoding& decoding) {
  return decode_sign(
      decoding, [](float a) { return negated<false>(a); }, [](float a) { return negated<true>(a); },
      [](double a) { return -a; });
}

// What mode[0] of min and max holds.
enum Extreme : uint32_t { kFlush = 1, kNan = 2, kXorsign = 4, kAbsolute = 8 };

// -0 is less than +0, a NaN gives the other operand but for .NaN.
template <bool maximum, class T>
T extreme(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) == maximum ? b : a;
  return (a > b) == maximum ? a : b;
}

// The same for f32 without branches: numbers are in the order of their bits once those of negative
// ones are turned round.
template <bool maximum>
float plain_extreme(float a, float b) {
  const auto key = [](float value) {
    const auto bits = std::bit_cast<int32_t>(value);
    return bits ^ (bits >> 31 & 0x7fffffff);
  };
  const float chosen = (key(a) > key(b)) == maximum ? a : b;
  const float first = b == b ? chosen : a;
  return canonical(a == a ? first : b);
}

template <bool maximum>
float extreme_of(uint32_t mode, const float* values, int count) {
  bool all_nan = true, any_nan = false, sign = false;
  float result = 0;
  for (int i = 0; i < count; ++i) {
    float value = mode & kFlush ? flush(values[i]) : values[i];
    sign ^= std::signbit(value);
    if (mode & kAbsolute) value = magnitude<false>(value);
    all_nan &= value != value;
    any_nan |= value != value;
    result = i == 0 ? value : extreme<maximum>(result, value);
  }
  if (all_nan || (any_nan && (mode & kNan))) return std::bit_cast<float>(kSingleNan);
  return mode & kXorsign ? std::copysign(result, sign ? -1.0f : 1.0f) : result;
}

template <bool maximum>
Run extreme_run(Type type, size_t sources, uint32_t mode) {
  if (type == Type::f64) {
    return lanewise([](double a, double b) {
      const double result = extreme<maximum>(a, b);
      return result == result ? result : std::bit_cast<double>(uint64_t{0xfff8} << 48);
    });
  }
  if (sources == 2 && mode == 0) {
    return lanewise([](float a, float b) { return plain_extreme<maximum>(a, b); });
  }
  if (sources == 2) {
    return lanewise([](const Op& op, float a, float b) {
      const float values[] = {a, b};
      return extreme_of<maximum>(op.mode[0], values, 2);
    });
  }
  return lanewise([](const Op& op, float a, float b, float c) {
    const float values[] = {a, b, c};
    return extreme_of<maximum>(op.mode[0], values, 3);
  });
}

template <bool maximum>
Op decode_extreme(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  uint32_t mode = 0;
  if (modifiers.take("ftz")) mode |= kFlush;
  if (modifiers.take("NaN")) mode |= kNan;
  const size_t sources = decoding.instruction->operands.size() == 4 ? 3 : 2;
  if (sources == 3) {
    if (modifiers.take("abs")) mode |= kAbsolute;
  } else if (modifiers.take("xorsign")) {
    mode |= kXorsign | kAbsolute;
    if (!modifiers.take("abs")) decoding.fail(".xorsign needs .abs");
  }
  const Type type =
      mode || sources == 3 ? modifiers.type({Type::f32}) : modifiers.type({Type::f32, Type::f64});
  modifiers.end();
  if (mode & kNan) require(decoding, 70, 80);
  if (mode & kXorsign) require(decoding, 72, 86);
  if (sources == 3) require(decoding, 88, 100);
  const Run run = extreme_run<maximum>(type, sources, mode);
  Op op = sources == 3 ? make_lanewise(decoding, class_of(type), run, type, {type, type, type})
                       : make_lanewise(decoding, class_of(type), run, type, {type, type});
  op.mode[0] = mode;
  return op;
}

Op decode_copysign(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::f32, Type::f64});
  modifiers.end();
  const Run run = type == Type::f32
                      ? lanewise([](float a, float b) { return std::copysign(b, a); })
                      : lanewise([](double a, double b) { return std::copysign(b, a); });
  return make_lanewise(decoding, class_of(type), run, type, {type, type});
}

enum class Property : uint32_t { finite, infinite, number, notanumber, normal, subnormal };

// Zero counts as normal.
template <class T>
bool has(Property property, T value) {
  switch (property) {
    case Property::finite: return std::isfinite(value);
    case Property::infinite: return std::isinf(value);
    case Property::number: return !std::isnan(value);
    case Property::notanumber: return std::isnan(value);
    case Property::normal: return std::isnormal(value) || value == 0;
    case Property::subnormal: return std::fpclassify(value) == FP_SUBNORMAL;
  }
  return false;
}

template <class T>
void run_testp(Warp& warp, const Op& op, Mask lanes) {
  const Registers registers = warp.registers;
  const auto* from = registers.in<Cell<T>>(op.args[1]);
  const auto property = static_cast<Property>(op.mode[0]);
  const Mask value =
      mask_of(lanes, [&](int lane) { return has(property, from_cell<T>(from[lane])); });
  registers.set_predicate(op.args[0], lanes, value,
                          defined_mask(lanes, registers.defined_in(op.args[1])));
}

Op decode_testp(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const int property =
      modifiers.take_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (property < 0) decoding.fail("needs a property");
  const Type type = modifiers.type({Type::f32, Type::f64});
  modifiers.end();
  Op op =
      make_lanewise(decoding, class_of(type),
                    type == Type::f32 ? run_testp<float> : run_testp<double>, Type::pred, {type});
  op.mode[0] = static_cast<uint32_t>(property);
  return op;
}

}  // namespace

void add_floating(Decoders& decoders) {
  static constexpr auto types = {Type::f32, Type::f64};
  decoders.add("add", types, decode_sum<Arithmetic::add>);
  decoders.add("sub", types, decode_sum<Arithmetic::sub>);
  decoders.add("mul", types, decode_sum<Arithmetic::mul>);
  decoders.add("fma", types, decode_fma);
  decoders.add("mad", types, decode_fma);
  decoders.add("div", types, decode_div);
  decoders.add("rcp", types, decode_rcp);
  decoders.add("sqrt", types, decode_sqrt);
  decoders.add("abs", types, decode_abs);
  decoders.add("neg", types, decode_neg);
  decoders.add("min", types, decode_extreme<false>);
  decoders.add("max", types, decode_extreme<true>);
  decoders.add("add", decode_pair<Arithmetic::add>);
  decoders.add("sub", decode_pair<Arithmetic::sub>);
  decoders.add("mul", decode_pair<Arithmetic::mul>);
  decoders.add("fma", decode_pair<Arithmetic::fma>);
  decoders.add("copysign", decode_copysign);
  decoders.add("testp", decode_testp);
}

}  // namespace emulator
