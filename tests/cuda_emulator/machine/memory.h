#pragma once

// Memory as instructions see it: one call moves the lanes of a warp, with all checks (bounds,
// alignment, freed, undefined addresses and stored values, races) and all counts.

#include <cstddef>
#include <cstdint>

#include "tests/cuda_emulator/machine/lanes.h"
#include "tests/cuda_emulator/machine/op.h"

namespace emulator {

// Windows of the generic address space. Addresses of shared, local, constant and param space start
// at 0 in instructions that name the space, and at these in generic ones. A global address is
// generic as it stands, and lies outside of all windows.
inline constexpr uint64_t kSharedWindow = 0x7e00'0000'0000, kLocalWindow = 0x7e10'0000'0000,
                          kConstantWindow = 0x7e20'0000'0000, kParamWindow = 0x7e30'0000'0000,
                          kWindowBytes = 0x10'0000'0000;

// PTX chapter 8: strength and scope of an access.
enum class Scope : uint8_t { cta, cluster, gpu, sys };
enum class Semantics : uint8_t {
  weak,
  relaxed,
  acquire,
  release,
  acq_rel
};  // volatile is relaxed.sys
struct Order {
  Semantics semantics = Semantics::weak;
  Scope scope = Scope::sys;
};

// What a warp accesses: lane l touches bytes [address[l], address[l] + bytes).
struct Access {
  ptx::Space space = ptx::Space::global;
  unsigned bytes = 4;      // a lane: 1, 2, 4, 8, 16 or 32
  unsigned alignment = 4;  // required
  Mask lanes = 0;
  const uint64_t* address = nullptr;  // of 32 lanes
  Order order;
  bool counted = true;           // false: the instruction has counts of its own
  bool keeps_undefined = false;  // a store that leaves undefined bytes without a report
  bool compares = false;         // an atomic compare-and-swap
};

// Reads into data[lane * bytes ...]; defined has a byte per byte, 0xff or 0. Undefined bytes are
// read without a report.
void load(Warp& warp, const Op& op, const Access& access, std::byte* data, uint8_t* defined);
// Writes; reports an undefined byte, except in local and param space, where it is kept as
// undefined.
void store(Warp& warp, const Op& op, const Access& access, const std::byte* data,
           const uint8_t* defined);

// An atomic update of one location a lane, lanes in rising order: update(lane, old, new) computes
// the new bytes from the old ones and gives false where nothing is to be stored. Undefined old
// bytes are reported unless the update ignores them (exchange).
void atomic(Warp& warp, const Op& op, const Access& access, bool ignores_old, const void* context,
            bool (*update)(const void* context, int lane, const std::byte* old, std::byte* fresh),
            std::byte* old_data);

// fence and membar.
void fence(Warp& warp, const Op& op, Mask lanes, Order order);

// Addresses base + offset of the active lanes; reports an undefined base.
void addresses(Warp& warp, const Op& op, Mask lanes, Arg base, int64_t offset,
               uint64_t (&to)[kLanes]);

// The counts of a shared-memory access without performing it, as ldmatrix needs for its rows: how
// many wavefronts lanes [first, first + count) with 16 bytes each take.
unsigned shared_wavefronts(const uint64_t* address, Mask lanes, unsigned bytes);

}  // namespace emulator
