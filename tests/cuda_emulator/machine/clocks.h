#pragma once

// Happens-before among the threads of a block, and through global memory among blocks: vector
// clocks (one component a thread, advanced when it releases). Lanes of a warp are threads like any
// other: nothing orders them but what the program says.

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/cuda_emulator/machine/lanes.h"

namespace emulator {

// An immutable set of what happened before, shared by the threads that know the same.
struct Knowledge;
using Known = std::shared_ptr<const Knowledge>;

class Clocks {
 public:
  Clocks(uint64_t block, unsigned threads);
  ~Clocks();

  // Everything the lanes did and know is known to all of them: a barrier, bar.warp.sync. A mask a
  // warp, as many as there are warps.
  void join(const std::vector<Mask>& lanes_of_warp);
  void join_warp(unsigned warp, Mask lanes);

  // All lanes of the warp that have not exited executed an instruction together (mma.sync,
  // shfl.sync ...). That orders no memory, but a value that one of them read before it cannot be
  // changed by what another writes after it: such a write does not race with the read.
  void meet(unsigned warp);

  // What these lanes did up to now and what they know, for someone who acquires it later; advances
  // their clocks. bar.arrive, mbarrier.arrive, st.release.
  Known release(unsigned warp, Mask lanes);
  // Adds to what `known` holds; either may be null.
  static Known merge(const Known& a, const Known& b);
  // These lanes know that from here on.
  void acquire(unsigned warp, Mask lanes, const Known& known);

  // The rest is for memory.cpp and races.cpp.
  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace emulator
