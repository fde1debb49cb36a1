#include "tests/cuda_emulator/isa/atomic_updates.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace emulator {
namespace {

using ptx::Type;

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
bool write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
  return true;
}

// Formats of 16 bits by the width of their fraction: 10 for f16, 7 for bf16.
template <int kFraction>
struct Half {
  static constexpr int kExponentBits = 15 - kFraction, kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kTop = (1 << kExponentBits) - 1;

  static double value(uint16_t bits) {
    const int exponent = bits >> kFraction & kTop, fraction = bits & ((1 << kFraction) - 1);
    double magnitude = exponent == 0
                           ? std::ldexp(fraction, 1 - kBias - kFraction)
                           : std::ldexp(fraction + (1 << kFraction), exponent - kBias - kFraction);
    if (exponent == kTop) magnitude = fraction ? NAN : INFINITY;
    return bits >> 15 ? -magnitude : magnitude;
  }
  static bool nan(uint16_t bits) { return (bits & 0x7fff) > kTop << kFraction; }
  // Rounded to the nearest, ties to even.
  static uint16_t bits(double value) {
    if (std::isnan(value)) return 0x7fff;
    const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
    const int unit = std::max(exponent - 1, 1 - kBias) - kFraction;
    const double units = std::nearbyint(std::ldexp(magnitude, -unit));
    if (std::ldexp(units, unit) >= std::ldexp(1.0, kBias + 1))
      return static_cast<uint16_t>(sign | kTop << kFraction);
    // A carry out of the fraction moves into the exponent by itself.
    const auto biased = static_cast<uint16_t>(unit + kFraction + kBias);
    return static_cast<uint16_t>(sign |
                                 (static_cast<uint16_t>(units) + ((biased - 1) << kFraction)));
  }
};

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

template <bool kFlush>
bool add_f32(const std::byte* old, const std::byte* b, const std::byte*, std::byte* fresh) {
  float x = read<float>(old), y = read<float>(b);
  if (kFlush) x = flushed(x), y = flushed(y);
  const float sum = kFlush ? flushed(x + y) : x + y;
  return std::isnan(sum) ? write(fresh, uint32_t{0x7fffffff}) : write(fresh, sum);
}

bool add_f64(const std::byte* old, const std::byte* b, const std::byte*, std::byte* fresh) {
  return write(fresh, read<double>(old) + read<double>(b));
}

// The sum of two halves in f64 is exact for f16, and for bf16 so close that rounding it again gives
// the nearest: 53 bits are more than twice 8 and two more.
template <int kFraction, Atomic kOperation>
uint16_t half(uint16_t x, uint16_t y) {
  using H = Half<kFraction>;
  if constexpr (kOperation == Atomic::add) {
    return H::bits(H::value(x) + H::value(y));
  } else {
    if (H::nan(x) || H::nan(y)) return H::nan(x) ? (H::nan(y) ? 0x7fff : y) : x;
    const double a = H::value(x), b = H::value(y);
    if (a == b) {  // zeros may differ in sign
      return kOperation == Atomic::min ? x | y : x & y;
    }
    return (a < b) == (kOperation == Atomic::min) ? x : y;
  }
}

template <int kFraction, Atomic kOperation, int kCount>
bool halves(const std::byte* old, const std::byte* b, const std::byte*, std::byte* fresh) {
  for (int i = 0; i < kCount; ++i)
    write(fresh + 2 * i,
          half<kFraction, kOperation>(read<uint16_t>(old + 2 * i), read<uint16_t>(b + 2 * i)));
  return true;
}

template <int kFraction, int kCount>
Element half_element(Atomic operation) {
  switch (operation) {
    case Atomic::add: return halves<kFraction, Atomic::add, kCount>;
    case Atomic::min: return halves<kFraction, Atomic::min, kCount>;
    case Atomic::max: return halves<kFraction, Atomic::max, kCount>;
    default: return nullptr;
  }
}

template <class T, class F>
bool combine(const std::byte* old, const std::byte* b, std::byte* fresh, F f) {
  return write<T>(fresh, f(read<T>(old), read<T>(b)));
}

template <class T>
Element arithmetic(Atomic operation) {
  using Bytes = const std::byte*;
  switch (operation) {
    case Atomic::add:
      return [](Bytes old, Bytes b, Bytes, std::byte* fresh) {
        using U = std::make_unsigned_t<T>;
        return combine<U>(old, b, fresh, [](U x, U y) { return static_cast<U>(x + y); });
      };
    case Atomic::min:
      return [](Bytes old, Bytes b, Bytes, std::byte* fresh) {
        return combine<T>(old, b, fresh, [](T x, T y) { return x < y ? x : y; });
      };
    case Atomic::max:
      return [](Bytes old, Bytes b, Bytes, std::byte* fresh) {
        return combine<T>(old, b, fresh, [](T x, T y) { return x < y ? y : x; });
      };
    default: return nullptr;
  }
}

bool increment(const std::byte* old, const std::byte* b, const std::byte*, std::byte* fresh) {
  return combine<uint32_t>(old, b, fresh,
                           [](uint32_t x, uint32_t y) { return x >= y ? 0 : x + 1; });
}
bool decrement(const std::byte* old, const std::byte* b, const std::byte*, std::byte* fresh) {
  return combine<uint32_t>(old, b, fresh,
                           [](uint32_t x, uint32_t y) { return x == 0 || x > y ? y : x - 1; });
}

template <class T>
Element bitwise(Atomic operation) {
  using Bytes = const std::byte*;
  switch (operation) {
    case Atomic::and_:
      return [](Bytes old, Bytes b, Bytes, std::byte* fresh) {
        return combine<T>(old, b, fresh, [](T x, T y) { return x & y; });
      };
    case Atomic::or_:
      return [](Bytes old, Bytes b, Bytes, std::byte* fresh) {
        return combine<T>(old, b, fresh, [](T x, T y) { return x | y; });
      };
    case Atomic::xor_:
      return [](Bytes old, Bytes b, Bytes, std::byte* fresh) {
        return combine<T>(old, b, fresh, [](T x, T y) { return x ^ y; });
      };
    default: return nullptr;
  }
}

template <unsigned kBytes>
Element exchange(Atomic operation) {
  using Bytes = const std::byte*;
  if (operation == Atomic::exch)
    return [](Bytes, Bytes b, Bytes, std::byte* fresh) {
      std::memcpy(fresh, b, kBytes);
      return true;
    };
  if (operation == Atomic::cas)
    return [](Bytes old, Bytes b, Bytes c, std::byte* fresh) {
      if (std::memcmp(old, b, kBytes) != 0) return false;
      std::memcpy(fresh, c, kBytes);
      return true;
    };
  return nullptr;
}

}  // namespace

Element element_of(Atomic operation, Type type, bool flush) {
  const bool swaps = operation == Atomic::exch || operation == Atomic::cas;
  const bool adds = operation == Atomic::add;
  switch (type) {
    case Type::b16: return operation == Atomic::cas ? exchange<2>(operation) : nullptr;
    case Type::b32: return swaps ? exchange<4>(operation) : bitwise<uint32_t>(operation);
    case Type::b64: return swaps ? exchange<8>(operation) : bitwise<uint64_t>(operation);
    case Type::b128: return exchange<16>(operation);
    case Type::u32:
      if (operation == Atomic::inc) return increment;
      if (operation == Atomic::dec) return decrement;
      return arithmetic<uint32_t>(operation);
    case Type::s32: return arithmetic<int32_t>(operation);
    case Type::u64: return arithmetic<uint64_t>(operation);
    case Type::s64: return adds ? nullptr : arithmetic<int64_t>(operation);
    case Type::f32: return !adds ? nullptr : flush ? add_f32<true> : add_f32<false>;
    case Type::f64: return adds ? add_f64 : nullptr;
    case Type::f16: return half_element<10, 1>(operation);
    case Type::f16x2: return half_element<10, 2>(operation);
    case Type::bf16: return half_element<7, 1>(operation);
    case Type::bf16x2: return half_element<7, 2>(operation);
    default: return nullptr;
  }
}

}  // namespace emulator
