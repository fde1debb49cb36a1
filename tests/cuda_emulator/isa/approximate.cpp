// Approximate functions of f32 and f64: the values of the exact functions rounded to f32
// (reciprocals of f64: to the 20 bits that the ISA gives them), with the special cases of the ISA.
// A GPU may differ from them within the bounds that the ISA states for each function.

#include <cmath>

#include "tests/cuda_emulator/isa/floating.h"

namespace emulator {

using ptx::Type;

namespace {

constexpr double kInfinity = HUGE_VAL;

// Each is a function of an f32's value, exact but for the rounding of the host's double precision.
struct Reciprocal {
  static double of(double a) { return 1 / a; }
};
struct Root {
  static double of(double a) { return std::sqrt(a); }
};
struct ReciprocalRoot {
  static double of(double a) { return a == 0 ? std::copysign(kInfinity, a) : 1 / std::sqrt(a); }
};
struct Sine {
  static double of(double a) { return std::sin(a); }
};
struct Cosine {
  static double of(double a) { return std::cos(a); }
};
struct Logarithm {
  static double of(double a) { return std::log2(a); }
};
struct Power {
  static double of(double a) { return std::exp2(a); }
};
struct Tangent {
  static double of(double a) { return std::tanh(a); }
};

template <class Function, bool ftz>
Run function_run() {
  return lanewise([](float a) {
    const auto value = static_cast<float>(Function::of(source_of<ftz>(a)));
    return result_of<ftz, false>(value);
  });
}

// {.ftz}.f32 with one source.
template <class Function>
Op decode_function(Decoding& decoding, Modifiers& modifiers) {
  const bool ftz = modifiers.take("ftz");
  modifiers.type({Type::f32});
  modifiers.end();
  return make_lanewise(decoding, Class::special,
                       ftz ? function_run<Function, true>() : function_run<Function, false>(),
                       Type::f32, {Type::f32});
}

void take_approx(const Decoding& decoding, Modifiers& modifiers) {
  if (!modifiers.take("approx")) decoding.fail("needs .approx");
}

template <class Function>
Op decode_approximate(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  take_approx(decoding, modifiers);
  return decode_function<Function>(decoding, modifiers);
}

Op decode_tanh(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  take_approx(decoding, modifiers);
  modifiers.type({Type::f32});
  modifiers.end();
  require(decoding, 70, 75);
  return make_lanewise(decoding, Class::special, function_run<Tangent, false>(), Type::f32,
                       {Type::f32});
}

// Quotients are products with the reciprocal, which is zero for divisors from 2^126 on.
float approximate_quotient(float a, float b) {
  if (std::fabs(b) > 0x1p126f && std::isfinite(b)) {
    return a * std::copysign(0.0f, b);
  }
  return static_cast<float>(static_cast<double>(a) / b);
}
float full_quotient(float a, float b) { return static_cast<float>(static_cast<double>(a) / b); }

template <bool ftz>
Run quotient_run(bool full) {
  if (full) {
    return lanewise([](float a, float b) {
      return result_of<ftz, false>(full_quotient(source_of<ftz>(a), source_of<ftz>(b)));
    });
  }
  return lanewise([](float a, float b) {
    return result_of<ftz, false>(approximate_quotient(source_of<ftz>(a), source_of<ftz>(b)));
  });
}

// The upper 32 bits alone are read and written; subnormal numbers are zeros.
double upper(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value) & 0xffffffff00000000;
  const bool normal = (bits & 0x7ff0000000000000) != 0;
  return std::bit_cast<double>(normal ? bits : bits & 0x8000000000000000);
}
double rounded_upper(double value) {
  if (!std::isfinite(value)) return value;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t rounded = bits + 0x7fffffff + (bits >> 32 & 1);
  return upper(std::bit_cast<double>(rounded));
}
// NaN as the ISA's tables have it.
double upper_result(double value) {
  return value == value ? rounded_upper(value) : std::bit_cast<double>(uint64_t{0x7fffffff} << 32);
}

template <class Function>
Op make_upper(Decoding& decoding) {
  const Run run = lanewise([](double a) { return upper_result(Function::of(upper(a))); });
  return make_lanewise(decoding, Class::special, run, Type::f64, {Type::f64});
}

Op decode_rsqrt(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  take_approx(decoding, modifiers);
  const bool ftz = modifiers.take("ftz");
  const Type type = modifiers.type({Type::f32, Type::f64});
  modifiers.end();
  if (type == Type::f32) {
    const Run run =
        ftz ? function_run<ReciprocalRoot, true>() : function_run<ReciprocalRoot, false>();
    return make_lanewise(decoding, Class::special, run, type, {type});
  }
  if (ftz) {
    require(decoding, 40, 20);
    return make_upper<ReciprocalRoot>(decoding);
  }
  return make_lanewise(decoding, Class::special,
                       lanewise([](double a) { return ReciprocalRoot::of(a); }), type, {type});
}

}  // namespace

Op decode_div_approximate(Decoding& decoding, Modifiers& modifiers, bool full) {
  const bool ftz = modifiers.take("ftz");
  modifiers.type({Type::f32});
  modifiers.end();
  return make_lanewise(decoding, Class::special,
                       ftz ? quotient_run<true>(full) : quotient_run<false>(full), Type::f32,
                       {Type::f32, Type::f32});
}

Op decode_rcp_approximate(Decoding& decoding, Modifiers& modifiers) {
  if (decoding.instruction->modifiers.back() != "f64") {
    return decode_function<Reciprocal>(decoding, modifiers);
  }
  if (!modifiers.take("ftz")) decoding.fail("needs .ftz");
  modifiers.type({Type::f64});
  modifiers.end();
  require(decoding, 21, 20);
  return make_upper<Reciprocal>(decoding);
}

Op decode_sqrt_approximate(Decoding& decoding, Modifiers& modifiers) {
  return decode_function<Root>(decoding, modifiers);
}

void add_approximate(Decoders& decoders) {
  decoders.add("rsqrt", decode_rsqrt);
  decoders.add("sin", decode_approximate<Sine>);
  decoders.add("cos", decode_approximate<Cosine>);
  decoders.add("lg2", decode_approximate<Logarithm>);
  decoders.add("ex2", {Type::f32}, decode_approximate<Power>);
  decoders.add("tanh", {Type::f32}, decode_tanh);
}

}  // namespace emulator
