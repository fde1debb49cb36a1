#pragma once

// Who touched memory last, and what asynchronous copies have under way.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/cuda_emulator/machine/memory.h"

namespace emulator {

// Marks of a block's shared memory: made by Block for as many bytes as `shared` has.
struct SharedShadow {
  explicit SharedShadow(size_t bytes);
  ~SharedShadow();

  struct Impl;
  std::unique_ptr<Impl> impl;
};

// Copies of the lanes of one cp.async: lane l copies the first `read[l]` bytes from global memory
// at `from[l]` to shared memory at offset `to[l]`, and zeros up to `bytes`. Where read[l] is 0 the
// source is not looked at. Undefined bytes stay undefined in shared memory: a copy is a mere move.
struct AsyncCopy {
  Mask lanes = 0;
  unsigned bytes = 16;  // 4, 8 or 16, also the alignment of both addresses
  uint64_t to[kLanes] = {}, from[kLanes] = {};
  uint8_t read[kLanes] = {};
};

// When the instruction is executed: checks both sides as a load and a store would be (bounds,
// alignment, races with what happened before), counts both, and marks the destination as under way:
// until it lands any access to those bytes is a race, by the issuing thread too, and so is another
// copy to them.
void async_issue(Warp& warp, const Op& op, const AsyncCopy& copy);

// When the copies complete, at the latest in the wait: reads the source (races with what was
// written since the issue are reported), writes the destination as those lanes at their clocks of
// now, and takes the mark away. `op` is that of the issue. Lanes of a copy may land at different
// times, each once.
void async_land(Warp& warp, const Op& op, const AsyncCopy& copy, Mask lanes);

}  // namespace emulator
