#pragma once

// Races, and what asynchronous copies have under way.
//
// Two accesses to the same bytes race where at least one writes, one is weak or their scopes do not
// include one another, and neither happened before the other: by barriers of a block (bar,
// mbarrier, bar.warp.sync), by release and acquire patterns of chapter 8 (fences with strong
// accesses, .release and .acquire, updates continuing what was released), or by the order of one
// thread. Lanes of a warp are threads like any other. Launches come one after another.
//
// More lenient than chapter 8, as programs rely on it:
// - A barrier of the block is a fence for what strong reads saw before it, and hands on what its
//   threads fenced: the ticket of the last block may be taken between two barriers by a thread that
//   has no fence of its own behind them. It orders what threads did that exited instead of coming.
// - A value that a lane read before an instruction of the whole warp (mma.sync, shfl.sync of all
//   ...) is not changed by what another lane writes after it. The other way, a write before it and
//   a read after it, is a race without bar.warp.sync.
// - Unordered writes of the value that stands there already are no race with one another.
// - A weak read does not race with atom.cas: loops that emulate an atomic operation begin so.
//
// Races that are missed, so that none is reported that is not there: a word of four bytes has one
// mark for its last write and one a warp (in global memory one or two, of different blocks where
// there are) for reads since then. So a write hides earlier ones to other bytes of the word by
// other warps, an ordered one hides what came before it, a strong write hides unordered strong
// accesses, the earlier of two reads by a warp counts for both, and lanes that touched different
// bytes of a word at the same time count together. Only the interleaving that ran is looked at,
// though what happened before what depends on it only where threads wait for one another.

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
