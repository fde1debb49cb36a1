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

// One value of every lane from bytes `stride` apart into a register of `width` bytes.
template <class T>
void to_register(const Registers& registers, Arg arg, unsigned width, bool sign, Mask lanes,
                 const std::byte* data, const uint8_t* defined, unsigned stride) {
  if (arg.kind != Arg::Kind::reg) return;  // a sink
  uint8_t* to_defined = registers.defined_out(arg);
  constexpr auto above = static_cast<uint8_t>(~0u << sizeof(T));
  const int fill = sign ? 64 - 8 * static_cast<int>(sizeof(T)) : 0;
  const uint64_t kept = width < 8 ? (uint64_t{1} << 8 * width) - 1 : ~uint64_t{0};
  each_lane(lanes, [&](int lane) {
    T value, value_defined;
    std::memcpy(&value, data + lane * stride, sizeof value);
    std::memcpy(&value_defined, defined + lane * stride, sizeof value);
    uint64_t wide = value;
    uint8_t bits = bits_of(value_defined);
    if (fill) wide = static_cast<uint64_t>(static_cast<int64_t>(wide << fill) >> fill);
    if (!fill || (bits >> (sizeof(T) - 1) & 1)) bits |= above;
    // Bytes that the register does not have count as defined.
    to_defined[lane] = width < 8 ? static_cast<uint8_t>(bits | ~0u << width) : bits;
    if (width == 8) {
      registers.out<uint64_t>(arg)[lane] = wide;
    } else if (width < 8) {
      registers.out<uint32_t>(arg)[lane] = static_cast<uint32_t>(wide & kept);
    } else {
      registers.out<uint64_t>(arg)[2 * lane] = wide;
      registers.out<uint64_t>(arg)[2 * lane + 1] = sign && wide >> 63 ? ~uint64_t{0} : 0;
      to_defined[64 + lane] = sign && !(bits >> 7 & 1) ? 0 : 0xff;
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
