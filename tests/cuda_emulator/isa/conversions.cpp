// Conversions between scalar types, lane by lane.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/cuda_emulator/isa/convert.h"
#include "tests/cuda_emulator/isa/floating.h"

namespace emulator {

using ptx::Type;

uint16_t to_half(double value, Rounding rounding, bool relu, bool satfinite) {
  if (value != value) return kHalfNan;
  if (relu && !(value > 0)) return 0;
  if (std::isinf(value)) {
    return static_cast<uint16_t>((satfinite ? 0x7bff : 0x7c00) | (value < 0 ? 0x8000 : 0));
  }
  const auto bits = static_cast<uint16_t>(encode(kHalf, 16, parts_of(value), rounding));
  return satfinite && (bits & 0x7fff) == 0x7c00 ? static_cast<uint16_t>(bits - 1) : bits;
}

uint16_t to_bfloat(double value, Rounding rounding, bool relu, bool satfinite) {
  if (value != value) return kBfloatNan;
  if (relu && !(value > 0)) return 0;
  if (std::isinf(value)) {
    return static_cast<uint16_t>((satfinite ? 0x7f7f : 0x7f80) | (value < 0 ? 0x8000 : 0));
  }
  const auto bits = static_cast<uint16_t>(encode(kBfloat, 16, parts_of(value), rounding));
  return satfinite && (bits & 0x7fff) == 0x7f80 ? static_cast<uint16_t>(bits - 1) : bits;
}

namespace {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

double number(Half value) { return half_value(value.bits); }
double number(Bfloat value) { return bfloat_value(value.bits); }
double number(float value) { return value; }
double number(double value) { return value; }

template <class T>
inline constexpr bool kIsSingle = std::is_same_v<T, float>;

// A finite number in a format by its parts, or by the host where that is the nearest one.
template <class T>
T finite(const Parts& parts, Rounding rounding);
template <>
Half finite<Half>(const Parts& parts, Rounding rounding) {
  return {static_cast<uint16_t>(encode(kHalf, 16, parts, rounding))};
}
template <>
Bfloat finite<Bfloat>(const Parts& parts, Rounding rounding) {
  return {static_cast<uint16_t>(encode(kBfloat, 16, parts, rounding))};
}
template <>
float finite<float>(const Parts& parts, Rounding rounding) {
  return std::bit_cast<float>(static_cast<uint32_t>(encode(kSingle, 32, parts, rounding)));
}
template <>
double finite<double>(const Parts& parts, Rounding rounding) {
  return std::bit_cast<double>(encode(kDouble, 64, parts, rounding));
}

template <class T>
T nearest(double value);
template <>
Half nearest<Half>(double value) {
  return {nearest_half(odd_single(value))};
}
template <>
Bfloat nearest<Bfloat>(double value) {
  return {nearest_bfloat(odd_single(value))};
}
template <>
float nearest<float>(double value) {
  return canonical(static_cast<float>(value));
}
template <>
double nearest<double>(double value) {
  return value;
}

template <class T>
T rounded(double value, Rounding rounding) {
  if (rounding == Rounding::nearest || !std::isfinite(value)) return nearest<T>(value);
  return finite<T>(parts_of(value), rounding);
}

double whole(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero: return std::trunc(value);
    case Rounding::down: return std::floor(value);
    case Rounding::up: return std::ceil(value);
    default: return std::nearbyint(value);
  }
}

// Single precision alone is flushed, as a source or a result.
template <class From>
double source_number(const Conversion& how, From from) {
  double value = number(from);
  if (kIsSingle<From> && how.ftz && std::fabs(value) < 0x1p-126) value = std::copysign(0.0, value);
  return value;
}
template <class To>
To flushed_result(const Conversion& how, To to) {
  if constexpr (kIsSingle<To>) {
    if (how.ftz) return flush(to);
  }
  return to;
}

template <class To, class From>
void float_to_float(const Conversion& how, Mask lanes, const void* from, void* to) {
  const auto* in = static_cast<const Cell<From>*>(from);
  auto* out = static_cast<Cell<To>*>(to);
  if (how.plain) {
    each_lane(lanes, [&](int lane) {
      out[lane] = to_cell(nearest<To>(number(from_cell<From>(in[lane]))));
    });
    return;
  }
  each_lane(lanes, [&](int lane) {
    double value = source_number(how, from_cell<From>(in[lane]));
    if (how.integral) value = whole(value, how.rounding);
    // Saturation leaves nothing that rounds to a number out of [0, 1].
    if (how.sat) value = value > 0 ? std::min(value, 1.0) : 0.0;
    const Rounding rounding = how.integral ? Rounding::nearest : how.rounding;
    out[lane] = to_cell(flushed_result(how, rounded<To>(value, rounding)));
  });
}

// f32 to f16 and bf16 with .relu and .satfinite.
template <class To>
void narrowed(const Conversion& how, Mask lanes, const void* from, void* to) {
  if (!how.relu && !how.satfinite) return float_to_float<To, float>(how, lanes, from, to);
  const auto* in = static_cast<const uint32_t*>(from);
  auto* out = static_cast<uint32_t*>(to);
  each_lane(lanes, [&](int lane) {
    const double value = from_cell<float>(in[lane]);
    out[lane] = std::is_same_v<To, Half> ? to_half(value, how.rounding, how.relu, how.satfinite)
                                         : to_bfloat(value, how.rounding, how.relu, how.satfinite);
  });
}

// What NaN becomes: zero, but half of the range of 64-bit values and of those from f64.
template <class To, class From>
constexpr To kFromNan = sizeof(To) == 8 || std::is_same_v<From, double>
                            ? static_cast<To>(BitsOf<To>{1} << (8 * sizeof(To) - 1))
                            : To{0};

// The nearest value of the type to a whole number.
template <class To>
To clamped(double value) {
  // Powers of two, exact in double precision; the largest value itself may not be.
  constexpr double end =
      0x1p1 * static_cast<double>(BitsOf<To>{1} << (8 * sizeof(To) - 1 - std::is_signed_v<To>));
  constexpr double begin = std::is_signed_v<To> ? -end : 0.0;
  if (value >= end) return std::numeric_limits<To>::max();
  if (value <= begin) return std::numeric_limits<To>::min();
  return static_cast<To>(value);
}

template <class To, class From>
void float_to_integer(const Conversion& how, Mask lanes, const void* from, void* to) {
  const auto* in = static_cast<const Cell<From>*>(from);
  auto* out = static_cast<Cell<To>*>(to);
  each_lane(lanes, [&](int lane) {
    const double value = source_number(how, from_cell<From>(in[lane]));
    const To result = value == value ? clamped<To>(whole(value, how.rounding)) : kFromNan<To, From>;
    out[lane] = to_cell(result);
  });
}

template <class From>
Parts integer_parts(From value) {
  const bool negative = value < 0;
  const auto bits = static_cast<uint64_t>(value);
  return {negative, negative ? 0 - bits : bits, 0};
}

template <class To, class From>
To integer_number(From value, Rounding rounding) {
  if constexpr (std::is_floating_point_v<To>) {
    if (rounding == Rounding::nearest) return static_cast<To>(value);
  }
  return finite<To>(integer_parts(value), rounding);
}

template <class To, class From>
void integer_to_float(const Conversion& how, Mask lanes, const void* from, void* to) {
  const auto* in = static_cast<const Cell<From>*>(from);
  auto* out = static_cast<Cell<To>*>(to);
  each_lane(lanes, [&](int lane) {
    From value = from_cell<From>(in[lane]);
    if (how.sat) value = std::clamp<From>(value, 0, 1);
    out[lane] = to_cell(integer_number<To>(value, how.rounding));
  });
}

template <class To, class From>
To saturated(From value) {
  if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (std::cmp_greater(value, std::numeric_limits<To>::max())) {
    return std::numeric_limits<To>::max();
  }
  return static_cast<To>(value);
}

template <class To, class From>
void integer_to_integer(const Conversion& how, Mask lanes, const void* from, void* to) {
  const auto* in = static_cast<const Cell<From>*>(from);
  auto* out = static_cast<Cell<To>*>(to);
  if (how.sat) {
    each_lane(lanes,
              [&](int lane) { out[lane] = to_cell(saturated<To>(from_cell<From>(in[lane]))); });
  } else {
    each_lane(lanes,
              [&](int lane) { out[lane] = to_cell(static_cast<To>(from_cell<From>(in[lane]))); });
  }
}

template <class To, class From>
decltype(Conversion::convert) conversion_of() {
  constexpr bool to_integer = std::is_integral_v<To>, from_integer = std::is_integral_v<From>;
  if constexpr (to_integer && from_integer) {
    return integer_to_integer<To, From>;
  } else if constexpr (to_integer) {
    return float_to_integer<To, From>;
  } else if constexpr (from_integer) {
    return integer_to_float<To, From>;
  } else if constexpr (kIsSingle<From> && sizeof(To) == 2) {
    return narrowed<To>;
  } else {
    return float_to_float<To, From>;
  }
}

// f with a value of the C++ type that has the type's values.
template <class F>
auto with_type(Type type, F&& f) -> decltype(f(0)) {
  switch (type) {
    case Type::u8: return f(uint8_t{});
    case Type::u16: return f(uint16_t{});
    case Type::u32: return f(uint32_t{});
    case Type::u64: return f(uint64_t{});
    case Type::s8: return f(int8_t{});
    case Type::s16: return f(int16_t{});
    case Type::s32: return f(int32_t{});
    case Type::s64: return f(int64_t{});
    case Type::f16: return f(Half{});
    case Type::bf16: return f(Bfloat{});
    case Type::f32: return f(float{});
    case Type::f64: return f(double{});
    default: return nullptr;
  }
}

}  // namespace

decltype(Conversion::convert) conversion(Type to, Type from) {
  return with_type(to, [from]<class To>(To) {
    return with_type(from, []<class From>(From) { return conversion_of<To, From>(); });
  });
}

}  // namespace emulator
