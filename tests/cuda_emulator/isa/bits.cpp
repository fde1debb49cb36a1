// Counting, finding, extracting and inserting bits.

#include <algorithm>
#include <bit>

#include "tests/cuda_emulator/isa/integer.h"
#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

using ptx::Type;

namespace {

constexpr auto kWords = {Type::u32, Type::u64, Type::s32, Type::s64};

template <class T>
constexpr int kWidth = 8 * sizeof(T);

template <class F32, class F64>
Op decode_count(Decoding& decoding, F32 narrow, F64 wide) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::b32, Type::b64});
  modifiers.end();
  return make_lanewise(decoding, Class::integer,
                       type == Type::b32 ? lanewise(narrow) : lanewise(wide), Type::u32, {type});
}

Op decode_popc(Decoding& decoding) {
  return decode_count(
      decoding, [](uint32_t a) { return static_cast<uint32_t>(std::popcount(a)); },
      [](uint64_t a) { return static_cast<uint32_t>(std::popcount(a)); });
}

Op decode_clz(Decoding& decoding) {
  return decode_count(
      decoding, [](uint32_t a) { return static_cast<uint32_t>(std::countl_zero(a)); },
      [](uint64_t a) { return static_cast<uint32_t>(std::countl_zero(a)); });
}

// Position of the highest bit that differs from the sign; all ones where there is none.
template <class T>
uint32_t find(T a) {
  using U = std::make_unsigned_t<T>;
  const U bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
  return static_cast<uint32_t>(kWidth<T> - 1 - std::countl_zero(bits));
}
template <class T>
uint32_t find_shift(T a) {
  const uint32_t found = find(a);
  return found == ~0u ? found : static_cast<uint32_t>(kWidth<T> - 1) - found;
}

Op decode_bfind(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool shift = modifiers.take("shiftamt");
  const Type type = modifiers.type(kWords);
  modifiers.end();
  const Run run = for_integer(type, [shift]<class T>(T) {
    return shift ? lanewise([](T a) { return find_shift(a); })
                 : lanewise([](T a) { return find(a); });
  });
  return make_lanewise(decoding, Class::integer, run, Type::u32, {type});
}

// The |offset|-th set bit from base on, upwards or downwards; only base itself for offset 0.
uint32_t nth_set(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31) return ~0u;  // not specified
  if (offset == 0) return mask >> base & 1 ? base : ~0u;
  int64_t left = offset > 0 ? offset : -int64_t{offset};
  const int step = offset > 0 ? 1 : -1;
  for (int position = static_cast<int>(base); position >= 0 && position < 32; position += step) {
    if ((mask >> position & 1) && --left == 0) return static_cast<uint32_t>(position);
  }
  return ~0u;
}

Op decode_fns(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  modifiers.type({Type::b32});
  modifiers.end();
  require(decoding, 60, 30);
  const Run run = lanewise(
      [](uint32_t mask, uint32_t base, int32_t offset) { return nth_set(mask, base, offset); });
  return make_lanewise(decoding, Class::integer, run, Type::b32, {Type::b32, Type::b32, Type::s32});
}

// Neighbours change places, then pairs of them, and so on up to halves of the value.
template <class T>
T reverse(T a) {
  T mask = static_cast<T>(~T{0});
  for (int half = kWidth<T> / 2; half > 0; half /= 2) {
    mask = static_cast<T>(mask ^ (mask << half));
    a = static_cast<T>((a >> half & mask) | (a & mask) << half);
  }
  return a;
}

Op decode_brev(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::b32, Type::b64});
  modifiers.end();
  const Run run = for_bits(type, []<class T>(T) {
    return bitwise([](T a) { return reverse(a); }, [](Bits<T> a) { return reverse(a.defined); });
  });
  return make_lanewise(decoding, Class::logic, run, type, {type});
}

// The field of `length` bits from `position` on, with the fill for what lies above it: the highest
// bit of the field that the value has, for signed types.
template <class T>
T extract(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  const int pos = static_cast<int>(position & 0xff), len = static_cast<int>(length & 0xff);
  if (len == 0) return 0;
  const bool fill = std::is_signed_v<T> && (a >> std::min(pos + len - 1, kWidth<T> - 1) & 1);
  const U field = pos < kWidth<T> ? static_cast<U>(static_cast<U>(a) >> pos) : U{0};
  const int kept = std::clamp(kWidth<T> - pos, 0, len);
  const U mask = kept >= kWidth<T> ? ~U{0} : (U{1} << kept) - 1;
  return static_cast<T>((field & mask) | (fill ? ~mask : U{0}));
}

// Zeros above an unsigned field are defined.
template <class T>
std::make_unsigned_t<T> extract_defined(Bits<T> a, Bits<uint32_t> position, Bits<uint32_t> length) {
  using U = std::make_unsigned_t<T>;
  if (!position.whole() || !length.whole()) return 0;
  const U undefined = static_cast<U>(~a.defined);
  return static_cast<U>(
      ~static_cast<U>(extract(static_cast<T>(undefined), position.value, length.value)));
}

Op decode_bfe(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type(kWords);
  modifiers.end();
  const Run run = for_integer(type, []<class T>(T) {
    return bitwise(
        [](T a, uint32_t b, uint32_t c) { return extract(a, b, c); },
        [](Bits<T> a, Bits<uint32_t> b, Bits<uint32_t> c) { return extract_defined(a, b, c); });
  });
  return make_lanewise(decoding, Class::integer, run, type, {type, Type::u32, Type::u32});
}

template <class T>
T insert(T a, T b, uint32_t position, uint32_t length) {
  const int pos = static_cast<int>(position & 0xff), len = static_cast<int>(length & 0xff);
  if (pos >= kWidth<T> || len == 0) return b;
  const T field = len >= kWidth<T> ? ~T{0} : (T{1} << len) - 1;
  const T mask = field << pos;
  return (b & ~mask) | ((a << pos) & mask);
}

Op decode_bfi(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::b32, Type::b64});
  modifiers.end();
  const Run run = for_bits(type, []<class T>(T) {
    return bitwise(
        [](T a, T b, uint32_t position, uint32_t length) { return insert(a, b, position, length); },
        [](Bits<T> a, Bits<T> b, Bits<uint32_t> position, Bits<uint32_t> length) {
          if (!position.whole() || !length.whole()) return T{0};
          return insert(a.defined, b.defined, position.value, length.value);
        });
  });
  return make_lanewise(decoding, Class::integer, run, type, {type, type, Type::u32, Type::u32});
}

template <bool wrap, bool is_signed>
uint32_t extend(uint32_t a, uint32_t b) {
  if (!wrap && b >= 32) return a;
  const uint32_t width = b & 31;
  if (width == 0) return 0;
  const uint32_t mask = ~0u << width;
  const bool sign = is_signed && (a >> (width - 1) & 1);
  return (a & ~mask) | (sign ? mask : 0);
}

template <bool wrap, bool is_signed>
Run extend_run() {
  return bitwise([](uint32_t a, uint32_t b) { return extend<wrap, is_signed>(a, b); },
                 [](Bits<uint32_t> a, Bits<uint32_t> b) {
                   return b.whole() ? ~extend<wrap, is_signed>(~a.defined, b.value) : 0u;
                 });
}

bool take_wrap(const Decoding& decoding, Modifiers& modifiers) {
  const int mode = modifiers.take_one({"clamp", "wrap"});
  if (mode < 0) decoding.fail("needs .clamp or .wrap");
  return mode == 1;
}

Op decode_szext(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool wrap = take_wrap(decoding, modifiers);
  const Type type = modifiers.type({Type::u32, Type::s32});
  modifiers.end();
  require(decoding, 76, 70);
  const Run run = type == Type::s32 ? wrap ? extend_run<true, true>() : extend_run<false, true>()
                  : wrap ? extend_run<true, false>()
                                    : extend_run<false, false>();
  return make_lanewise(decoding, Class::integer, run, type, {type, Type::u32});
}

// `width` ones from bit `position` on.
template <bool wrap>
uint32_t bit_mask(uint32_t position, uint32_t width) {
  if (!wrap && position >= 32) return 0;
  const uint32_t low = position & 31;
  if (!wrap && width >= 32) return ~0u << low;
  const uint64_t ones = (uint64_t{1} << (width & 31)) - 1;
  return static_cast<uint32_t>(ones << low);
}

Op decode_bmsk(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool wrap = take_wrap(decoding, modifiers);
  modifiers.type({Type::b32});
  modifiers.end();
  require(decoding, 76, 70);
  const Run run = wrap ? lanewise([](uint32_t a, uint32_t b) { return bit_mask<true>(a, b); })
                       : lanewise([](uint32_t a, uint32_t b) { return bit_mask<false>(a, b); });
  return make_lanewise(decoding, Class::integer, run, Type::b32, {Type::b32, Type::b32});
}

}  // namespace

void add_bits(Decoders& decoders) {
  decoders.add("popc", decode_popc);
  decoders.add("clz", decode_clz);
  decoders.add("bfind", decode_bfind);
  decoders.add("fns", decode_fns);
  decoders.add("brev", decode_brev);
  decoders.add("bfe", decode_bfe);
  decoders.add("bfi", decode_bfi);
  decoders.add("szext", decode_szext);
  decoders.add("bmsk", decode_bmsk);
}

}  // namespace emulator
