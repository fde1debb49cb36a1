// Integer arithmetic: everything wraps. What the ISA leaves open: a quotient or remainder by zero
// has all bits set; the least value divided by -1 is itself, with remainder 0.

#include "tests/cuda_emulator/isa/integer.h"

#include <algorithm>
#include <limits>

#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

using ptx::Type;

namespace {

constexpr auto kIntegers = {Type::u16, Type::u32, Type::u64, Type::s16, Type::s32, Type::s64};
constexpr auto kWithPacked = {Type::u16, Type::u32, Type::u64,   Type::s16,
                              Type::s32, Type::s64, Type::u16x2, Type::s16x2};

template <class T>
T plus(T a, T b) {
  return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
}
template <class T>
T minus(T a, T b) {
  return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
}
template <class T>
T times(T a, T b) {
  return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
}

template <class T>
T high_product(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(Wide(a) * Wide(b) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>(Wide(a) * Wide(b) >> (8 * sizeof(T)));
  }
}

int32_t saturate(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

// f(low half, low half) and f(high half, high half) of packed values of T.
template <class T, class F>
uint32_t packed(uint32_t a, uint32_t b, F f) {
  const auto low = static_cast<uint16_t>(f(static_cast<T>(a), static_cast<T>(b)));
  const auto high = static_cast<uint16_t>(f(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
  return low | uint32_t{high} << 16;
}

Op decode_packed(Decoding& decoding, Run run) {
  require(decoding, 80, 90);
  Op op = make_lanewise(decoding, Class::integer, run, Type::b32, {Type::b32, Type::b32});
  for (size_t i = 0; i < 3; ++i) require_format(decoding, i, Type::b32);
  return op;
}

Op decode_add(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take("cc")) return decode_add_carry(decoding, modifiers);
  const bool sat = modifiers.take("sat");
  const Type type = sat ? modifiers.type({Type::s32}) : modifiers.type(kWithPacked);
  modifiers.end();
  if (type == Type::u16x2 || type == Type::s16x2) {
    return decode_packed(decoding, halfwise([](uint32_t a, uint32_t b) {
                           return packed<uint16_t>(a, b, plus<uint16_t>);
                         }));
  }
  const Run run = sat ? lanewise([](int32_t a, int32_t b) { return saturate(int64_t{a} + b); })
                      : for_integer(type, []<class T>(T) {
                          return lanewise([](T a, T b) { return plus(a, b); });
                        });
  return make_lanewise(decoding, Class::integer, run, type, {type, type});
}

Op decode_sub(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take("cc")) return decode_sub_carry(decoding, modifiers);
  const bool sat = modifiers.take("sat");
  const Type type = sat ? modifiers.type({Type::s32}) : modifiers.type(kIntegers);
  modifiers.end();
  const Run run = sat ? lanewise([](int32_t a, int32_t b) { return saturate(int64_t{a} - b); })
                      : for_integer(type, []<class T>(T) {
                          return lanewise([](T a, T b) { return minus(a, b); });
                        });
  return make_lanewise(decoding, Class::integer, run, type, {type, type});
}

// The type of twice the width; none for 64 bits.
Type wide(Type type) {
  switch (type) {
    case Type::u16: return Type::u32;
    case Type::s16: return Type::s32;
    case Type::u32: return Type::u64;
    case Type::s32: return Type::s64;
    default: return Type::none;
  }
}

template <class T>
struct Wide;
template <>
struct Wide<uint16_t> {
  using type = uint32_t;
};
template <>
struct Wide<int16_t> {
  using type = int32_t;
};
template <>
struct Wide<uint32_t> {
  using type = uint64_t;
};
template <>
struct Wide<int32_t> {
  using type = int64_t;
};

enum class Part { low, high, wide };

Part take_part(const Decoding& decoding, Modifiers& modifiers) {
  const int part = modifiers.take_one({"lo", "hi", "wide"});
  if (part < 0) decoding.fail("needs .lo, .hi or .wide");
  return static_cast<Part>(part);
}

Run mul_run(Type type, Part part) {
  return for_integer(type, [part]<class T>(T) -> Run {
    if (part == Part::low) return lanewise([](T a, T b) { return times(a, b); });
    if (part == Part::high) return lanewise([](T a, T b) { return high_product(a, b); });
    if constexpr (sizeof(T) < 8) {
      using W = typename Wide<T>::type;
      return lanewise([](T a, T b) { return static_cast<W>(W{a} * W{b}); });
    } else {
      return nullptr;
    }
  });
}

Op decode_mul(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Part part = take_part(decoding, modifiers);
  const Type type = part == Part::wide
                        ? modifiers.type({Type::u16, Type::u32, Type::s16, Type::s32})
                        : modifiers.type(kIntegers);
  modifiers.end();
  return make_lanewise(decoding, Class::integer, mul_run(type, part),
                       part == Part::wide ? wide(type) : type, {type, type});
}

Run mad_run(Type type, Part part) {
  return for_integer(type, [part]<class T>(T) -> Run {
    if (part == Part::low) return lanewise([](T a, T b, T c) { return plus(times(a, b), c); });
    if (part == Part::high) {
      return lanewise([](T a, T b, T c) { return plus(high_product(a, b), c); });
    }
    if constexpr (sizeof(T) < 8) {
      using W = typename Wide<T>::type;
      return lanewise([](T a, T b, W c) { return plus(static_cast<W>(W{a} * W{b}), c); });
    } else {
      return nullptr;
    }
  });
}

Op decode_mad(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Part part = take_part(decoding, modifiers);
  if (part != Part::wide && modifiers.take("cc")) {
    return decode_mad_carry(decoding, modifiers, part == Part::high);
  }
  const bool sat = part == Part::high && modifiers.take("sat");
  const Type type = sat ? modifiers.type({Type::s32})
                    : part == Part::wide
                        ? modifiers.type({Type::u16, Type::u32, Type::s16, Type::s32})
                        : modifiers.type(kIntegers);
  modifiers.end();
  const Run run = sat ? lanewise([](int32_t a, int32_t b, int32_t c) {
    return saturate(int64_t{high_product(a, b)} + c);
  })
                      : mad_run(type, part);
  const Type sum = part == Part::wide ? wide(type) : type;
  return make_lanewise(decoding, Class::integer, run, sum, {type, type, sum});
}

// Bits 47 to 16 or 31 to 0 of the product of values of 24 bits.
template <bool is_signed, bool high>
uint32_t product_24(uint32_t a, uint32_t b) {
  const auto value = [](uint32_t x) -> int64_t {
    return is_signed ? static_cast<int32_t>(x << 8) >> 8 : static_cast<int64_t>(x & 0xffffff);
  };
  return static_cast<uint32_t>(value(a) * value(b) >> (high ? 16 : 0));
}

template <bool is_signed>
Run mul24_run(bool high) {
  return high ? lanewise([](uint32_t a, uint32_t b) { return product_24<is_signed, true>(a, b); })
              : lanewise([](uint32_t a, uint32_t b) { return product_24<is_signed, false>(a, b); });
}
template <bool is_signed>
Run mad24_run(bool high) {
  return high ? lanewise([](uint32_t a, uint32_t b, uint32_t c) {
    return product_24<is_signed, true>(a, b) + c;
  })
              : lanewise([](uint32_t a, uint32_t b, uint32_t c) {
                  return product_24<is_signed, false>(a, b) + c;
                });
}

bool take_high(const Decoding& decoding, Modifiers& modifiers) {
  const int part = modifiers.take_one({"lo", "hi"});
  if (part < 0) decoding.fail("needs .lo or .hi");
  return part == 1;
}

Op decode_mul24(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool high = take_high(decoding, modifiers);
  const Type type = modifiers.type({Type::u32, Type::s32});
  modifiers.end();
  const Run run = type == Type::s32 ? mul24_run<true>(high) : mul24_run<false>(high);
  return make_lanewise(decoding, Class::integer, run, type, {type, type});
}

Op decode_mad24(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool high = take_high(decoding, modifiers);
  const bool sat = high && modifiers.take("sat");
  const Type type = sat ? modifiers.type({Type::s32}) : modifiers.type({Type::u32, Type::s32});
  modifiers.end();
  const Run run = sat                 ? lanewise([](uint32_t a, uint32_t b, int32_t c) {
    return saturate(int64_t{static_cast<int32_t>(product_24<true, true>(a, b))} + c);
  })
                  : type == Type::s32 ? mad24_run<true>(high)
                                      : mad24_run<false>(high);
  return make_lanewise(decoding, Class::integer, run, type, {type, type, type});
}

Op decode_sad(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type(kIntegers);
  modifiers.end();
  const Run run = for_integer(type, []<class T>(T) {
    return lanewise([](T a, T b, T c) { return plus(c, a < b ? minus(b, a) : minus(a, b)); });
  });
  return make_lanewise(decoding, Class::integer, run, type, {type, type, type});
}

template <class T>
bool overflows(T a, T b) {
  return std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1);
}
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  return overflows(a, b) ? a : static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  return overflows(a, b) ? T{0} : static_cast<T>(a % b);
}

Op decode_div(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type(kIntegers);
  modifiers.end();
  const Run run = for_integer(
      type, []<class T>(T) { return lanewise([](T a, T b) { return quotient(a, b); }); });
  return make_lanewise(decoding, Class::integer, run, type, {type, type});
}

Op decode_rem(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type(kIntegers);
  modifiers.end();
  const Run run = for_integer(
      type, []<class T>(T) { return lanewise([](T a, T b) { return remainder(a, b); }); });
  return make_lanewise(decoding, Class::integer, run, type, {type, type});
}

Op decode_abs(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::s16, Type::s32, Type::s64});
  modifiers.end();
  const Run run = for_integer(
      type, []<class T>(T) { return lanewise([](T a) { return a < 0 ? minus(T{0}, a) : a; }); });
  return make_lanewise(decoding, Class::integer, run, type, {type});
}

Op decode_neg(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::s16, Type::s32, Type::s64});
  modifiers.end();
  const Run run =
      for_integer(type, []<class T>(T) { return lanewise([](T a) { return minus(T{0}, a); }); });
  return make_lanewise(decoding, Class::integer, run, type, {type});
}

template <bool maximum, class T>
T extreme(T a, T b) {
  return maximum ? std::max(a, b) : std::min(a, b);
}
template <bool maximum, class T>
T extreme_relu(T a, T b) {
  return std::max(extreme<maximum>(a, b), T{0});
}

template <bool maximum>
Run packed_extreme_run(Type type, bool relu) {
  if (type == Type::u16x2) {
    return halfwise(
        [](uint32_t a, uint32_t b) { return packed<uint16_t>(a, b, extreme<maximum, uint16_t>); });
  }
  if (relu) {
    return halfwise([](uint32_t a, uint32_t b) {
      return packed<int16_t>(a, b, extreme_relu<maximum, int16_t>);
    });
  }
  return halfwise(
      [](uint32_t a, uint32_t b) { return packed<int16_t>(a, b, extreme<maximum, int16_t>); });
}

template <bool maximum>
Op decode_extreme(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  bool relu = modifiers.take("relu");
  const Type type = relu ? modifiers.type({Type::s16x2, Type::s32}) : modifiers.type(kWithPacked);
  // After the type as well, where compilers write it.
  if (type == Type::s16x2 || type == Type::s32) relu = modifiers.take("relu") || relu;
  modifiers.end();
  if (type == Type::u16x2 || type == Type::s16x2) {
    return decode_packed(decoding, packed_extreme_run<maximum>(type, relu));
  }
  if (relu) require(decoding, 80, 90);
  const Run run = relu ? lanewise([](int32_t a, int32_t b) { return extreme_relu<maximum>(a, b); })
                       : for_integer(type, []<class T>(T) {
                           return lanewise([](T a, T b) { return extreme<maximum>(a, b); });
                         });
  return make_lanewise(decoding, Class::integer, run, type, {type, type});
}

// Byte or half `index` of a word.
template <class T>
int64_t field(uint32_t word, int index) {
  return static_cast<T>(word >> (8 * sizeof(T) * static_cast<unsigned>(index)));
}

template <class A, class B>
Run dp4a_run() {
  return lanewise([](uint32_t a, uint32_t b, uint32_t c) {
    int64_t sum = c;
    for (int i = 0; i < 4; ++i) sum += field<A>(a, i) * field<B>(b, i);
    return static_cast<uint32_t>(sum);
  });
}

template <class A, class B>
Run dp2a_run(bool high) {
  if (high) {
    return lanewise([](uint32_t a, uint32_t b, uint32_t c) {
      const int64_t sum = field<A>(a, 0) * field<B>(b, 2) + field<A>(a, 1) * field<B>(b, 3);
      return static_cast<uint32_t>(sum + c);
    });
  }
  return lanewise([](uint32_t a, uint32_t b, uint32_t c) {
    const int64_t sum = field<A>(a, 0) * field<B>(b, 0) + field<A>(a, 1) * field<B>(b, 1);
    return static_cast<uint32_t>(sum + c);
  });
}

Op make_dot(Decoding& decoding, Run run, Type a, Type b) {
  require(decoding, 50, 61);
  const Type sum = a == Type::u32 && b == Type::u32 ? Type::u32 : Type::s32;
  return make_lanewise(decoding, Class::integer, run, sum, {a, b, sum});
}

Op decode_dp4a(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type a = modifiers.type({Type::u32, Type::s32});
  const Type b = modifiers.type({Type::u32, Type::s32});
  modifiers.end();
  const Run run = a == Type::u32
                      ? b == Type::u32 ? dp4a_run<uint8_t, uint8_t>() : dp4a_run<uint8_t, int8_t>()
                  : b == Type::u32 ? dp4a_run<int8_t, uint8_t>()
                                   : dp4a_run<int8_t, int8_t>();
  return make_dot(decoding, run, a, b);
}

Op decode_dp2a(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool high = take_high(decoding, modifiers);
  const Type a = modifiers.type({Type::u32, Type::s32});
  const Type b = modifiers.type({Type::u32, Type::s32});
  modifiers.end();
  const Run run = a == Type::u32   ? b == Type::u32 ? dp2a_run<uint16_t, uint8_t>(high)
                                                    : dp2a_run<uint16_t, int8_t>(high)
                    : b == Type::u32 ? dp2a_run<int16_t, uint8_t>(high)
                                   : dp2a_run<int16_t, int8_t>(high);
  return make_dot(decoding, run, a, b);
}

}  // namespace

void add_integer(Decoders& decoders) {
  decoders.add("add", kWithPacked, decode_add);
  decoders.add("sub", kIntegers, decode_sub);
  decoders.add("mul", kIntegers, decode_mul);
  decoders.add("mad", kIntegers, decode_mad);
  decoders.add("mul24", decode_mul24);
  decoders.add("mad24", decode_mad24);
  decoders.add("sad", decode_sad);
  decoders.add("div", kIntegers, decode_div);
  decoders.add("rem", decode_rem);
  decoders.add("abs", kIntegers, decode_abs);
  decoders.add("neg", kIntegers, decode_neg);
  decoders.add("min", kWithPacked, decode_extreme<false>);
  decoders.add("max", kWithPacked, decode_extreme<true>);
  decoders.add("dp4a", decode_dp4a);
  decoders.add("dp2a", decode_dp2a);
  add_bits(decoders);
  add_carry(decoders);
  add_video(decoders);
}

}  // namespace emulator
