#pragma once

// One access of a warp by space, between memory.cpp and the files that do it. Addresses are those
// of the space, not generic ones; alignment was checked.

#include <cstring>
#include <string>

#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/grid.h"
#include "tests/cuda_emulator/machine/memory.h"

namespace emulator {

using Update = bool (*)(const void* context, int lane, const std::byte* old, std::byte* fresh);

void load_shared(Warp&, const Op&, const Access&, std::byte* data, uint8_t* defined);
void store_shared(Warp&, const Op&, const Access&, const std::byte* data, const uint8_t* defined);
void atomic_shared(Warp&, const Op&, const Access&, bool ignores_old, const void* context,
                   Update update, std::byte* old_data);

void load_global(Warp&, const Op&, const Access&, std::byte* data, uint8_t* defined);
void store_global(Warp&, const Op&, const Access&, const std::byte* data, const uint8_t* defined);
void atomic_global(Warp&, const Op&, const Access&, bool ignores_old, const void* context,
                   Update update, std::byte* old_data);

// The same as a load, of sizes[lane] bytes up to access.bytes; for asynchronous copies.
void load_for_copy(Warp&, const Op&, const Access&, const uint8_t* sizes, std::byte* data,
                   uint8_t* defined);
// The destination of a copy: checked as that of a store and marked as under way; written at last.
void claim_shared(Warp&, const Op&, const Access&);
void land_shared(Warp&, const Op&, const Access&, const std::byte* data, const uint8_t* defined);

// Local, constant and param space: no other thread is involved.
void load_private(Warp&, const Op&, const Access&, std::byte* data, uint8_t* defined);
void store_private(Warp&, const Op&, const Access&, const std::byte* data, const uint8_t* defined);

// Whether bytes are all defined, or not reported where the access lets undefined ones pass.
inline bool all_defined(const uint8_t* defined, unsigned bytes) {
  uint8_t all = 0xff;
  for (unsigned i = 0; i < bytes; ++i) all &= defined[i];
  return all == 0xff;
}

template <unsigned kBytes>
inline bool all_defined(const uint8_t* defined) {
  if constexpr (kBytes < 8) {
    uint32_t bytes = ~0u;
    std::memcpy(&bytes, defined, kBytes);
    return bytes == ~0u;
  } else {
    uint64_t all = ~uint64_t{0};
    for (unsigned i = 0; i < kBytes; i += 8) {
      uint64_t part;
      std::memcpy(&part, defined + i, 8);
      all &= part;
    }
    return all == ~uint64_t{0};
  }
}

// Calls f(lane) for the lanes of a mask in rising order.
template <class F>
inline void in_order(Mask lanes, F&& f) {
  for (Mask rest = lanes; rest; rest &= rest - 1) f(std::countr_zero(rest));
}

void check_alignment(const Warp& warp, const Op& op, const Access& access);
// Calls f with the bytes of a lane as a constant.
template <class F>
inline void for_bytes(const Access& access, F&& f) {
  switch (access.bytes) {
    case 1: return f(std::integral_constant<unsigned, 1>());
    case 2: return f(std::integral_constant<unsigned, 2>());
    case 4: return f(std::integral_constant<unsigned, 4>());
    case 8: return f(std::integral_constant<unsigned, 8>());
    case 16: return f(std::integral_constant<unsigned, 16>());
    default: return f(std::integral_constant<unsigned, 32>());
  }
}

[[noreturn]] void fail_undefined_store(const Warp& warp, const Op& op, int lane,
                                       const Access& access);
[[noreturn]] void fail_undefined_old(const Warp& warp, const Op& op, int lane,
                                     const Access& access);

}  // namespace emulator
