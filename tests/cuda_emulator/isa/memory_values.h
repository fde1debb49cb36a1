#pragma once

// Values between registers and bytes as memory.h takes them: lane l's begin at l * stride, with a
// byte of definedness, 0xff or 0, for every byte.

#include <array>
#include <cstring>

#include "tests/cuda_emulator/machine/lanes.h"

namespace emulator {

// A bit for each byte that is 0xff, and the other way.
inline uint8_t bits_of(uint64_t bytes) {
  return static_cast<uint8_t>((bytes & 0x8040201008040201) * 0x0101010101010101 >> 56);
}
inline constexpr std::array<uint64_t, 256> kBytesOf = [] {
  std::array<uint64_t, 256> table{};
  for (uint64_t bits = 0; bits < 256; ++bits)
    for (int i = 0; i < 8; ++i)
      if (bits >> i & 1) table[bits] |= uint64_t{0xff} << 8 * i;
  return table;
}();

// The bits of definedness that go with a value in a register of `width` bytes: those of bytes that
// extend the value are those of its sign, or set for zeros; those that the register lacks are set.
template <class T>
inline uint8_t extended_bits(uint8_t bits, unsigned width, bool sign) {
  if (!sign || (bits >> (sizeof(T) - 1) & 1)) bits |= static_cast<uint8_t>(~0u << sizeof(T));
  return width < 8 ? static_cast<uint8_t>(bits | ~0u << width) : bits;
}

template <class T>
void defined_to_register(uint8_t* to, unsigned width, bool sign, Mask lanes, const uint8_t* defined,
                         unsigned stride) {
  T all = static_cast<T>(~T{0});
  each_lane(lanes, [&](int lane) {
    T part;
    std::memcpy(&part, defined + lane * stride, sizeof part);
    all &= part;
  });
  const bool wide = width == 16;
  if (all == static_cast<T>(~T{0})) [[likely]] {
    each_lane(lanes, [&](int lane) { to[lane] = 0xff; });
    if (wide) each_lane(lanes, [&](int lane) { to[64 + lane] = 0xff; });
    return;
  }
  each_lane(lanes, [&](int lane) {
    T part;
    std::memcpy(&part, defined + lane * stride, sizeof part);
    to[lane] = extended_bits<T>(bits_of(part), width, sign);
    if (wide) to[64 + lane] = sign && !(to[lane] >> 7 & 1) ? 0 : 0xff;
  });
}

// One value of every lane from bytes `stride` apart into a register of `width` bytes.
template <class T>
void to_register(const Registers& registers, Arg arg, unsigned width, bool sign, Mask lanes,
                 const std::byte* data, const uint8_t* defined, unsigned stride) {
  if (arg.kind != Arg::Kind::reg) return;  // a sink
  defined_to_register<T>(registers.defined_out(arg), width, sign, lanes, defined, stride);
  const auto value_of = [&](int lane) {
    T value;
    std::memcpy(&value, data + lane * stride, sizeof value);
    return value;
  };
  if (sizeof(T) <= 4 && width <= 4 && !(sign && sizeof(T) < width)) {
    uint32_t* to = registers.out<uint32_t>(arg);
    each_lane(lanes, [&](int lane) { to[lane] = static_cast<uint32_t>(value_of(lane)); });
    return;
  }
  const int fill = sign ? 64 - 8 * static_cast<int>(sizeof(T)) : 0;
  const uint64_t kept = width < 8 ? (uint64_t{1} << 8 * width) - 1 : ~uint64_t{0};
  each_lane(lanes, [&](int lane) {
    uint64_t wide = value_of(lane);
    if (fill) wide = static_cast<uint64_t>(static_cast<int64_t>(wide << fill) >> fill);
    if (width == 8) {
      registers.out<uint64_t>(arg)[lane] = wide;
    } else if (width < 8) {
      registers.out<uint32_t>(arg)[lane] = static_cast<uint32_t>(wide & kept);
    } else {
      registers.out<uint64_t>(arg)[2 * lane] = wide;
      registers.out<uint64_t>(arg)[2 * lane + 1] = sign && wide >> 63 ? ~uint64_t{0} : 0;
    }
  });
}

inline void to_wide_register(const Registers& registers, Arg arg, Mask lanes, const std::byte* data,
                             const uint8_t* defined, unsigned stride) {
  if (arg.kind != Arg::Kind::reg) return;
  uint8_t* to_defined = registers.defined_out(arg);
  each_lane(lanes, [&](int lane) {
    std::memcpy(registers.out<std::byte>(arg) + 16 * lane, data + lane * stride, 16);
    uint64_t halves[2];
    std::memcpy(halves, defined + lane * stride, 16);
    to_defined[lane] = bits_of(halves[0]);
    to_defined[64 + lane] = bits_of(halves[1]);
  });
}

template <class T>
void from_register(const Registers& registers, Arg arg, unsigned width, Mask lanes, std::byte* data,
                   uint8_t* defined, unsigned stride) {
  const uint8_t* from_defined = registers.defined_in(arg);
  each_lane(lanes, [&](int lane) {
    const T value = static_cast<T>(width < 8    ? registers.in<uint32_t>(arg)[lane]
                                   : width == 8 ? registers.in<uint64_t>(arg)[lane]
                                                : registers.in<uint64_t>(arg)[2 * lane]);
    const T value_defined = static_cast<T>(kBytesOf[from_defined[lane]]);
    std::memcpy(data + lane * stride, &value, sizeof value);
    std::memcpy(defined + lane * stride, &value_defined, sizeof value);
  });
}

inline void from_wide_register(const Registers& registers, Arg arg, Mask lanes, std::byte* data,
                               uint8_t* defined, unsigned stride) {
  const uint8_t* from_defined = registers.defined_in(arg);
  each_lane(lanes, [&](int lane) {
    std::memcpy(data + lane * stride, registers.in<std::byte>(arg) + 16 * lane, 16);
    const bool constant = arg.kind == Arg::Kind::constant;
    const uint64_t halves[2] = {kBytesOf[from_defined[lane]],
                                constant ? ~uint64_t{0} : kBytesOf[from_defined[64 + lane]]};
    std::memcpy(defined + lane * stride, halves, 16);
  });
}

// Of `element` bytes into a register of `width` bytes, filled up with zeros or copies of the sign.
inline void to_register(const Registers& registers, Arg arg, unsigned element, unsigned width,
                        bool sign, Mask lanes, const std::byte* data, const uint8_t* defined,
                        unsigned stride) {
  const auto move = [&]<class T>(T) {
    to_register<T>(registers, arg, width, sign, lanes, data, defined, stride);
  };
  switch (element) {
    case 1: return move(uint8_t{});
    case 2: return move(uint16_t{});
    case 4: return move(uint32_t{});
    case 8: return move(uint64_t{});
    default: to_wide_register(registers, arg, lanes, data, defined, stride);
  }
}

// The low `element` bytes of a register of `width` bytes.
inline void from_register(const Registers& registers, Arg arg, unsigned element, unsigned width,
                          Mask lanes, std::byte* data, uint8_t* defined, unsigned stride) {
  const auto move = [&]<class T>(T) {
    from_register<T>(registers, arg, width, lanes, data, defined, stride);
  };
  switch (element) {
    case 1: return move(uint8_t{});
    case 2: return move(uint16_t{});
    case 4: return move(uint32_t{});
    case 8: return move(uint64_t{});
    default: from_wide_register(registers, arg, lanes, data, defined, stride);
  }
}

}  // namespace emulator
