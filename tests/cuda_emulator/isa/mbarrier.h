#pragma once

// The mbarrier objects of a block; see mbarrier.cpp.

#include <cstdint>
#include <memory>

#include "tests/cuda_emulator/machine/memory.h"

namespace emulator {

// Block::mbarriers. Made at the first mbarrier.init of a block.
struct Mbarriers {
  Mbarriers();
  ~Mbarriers();

  struct Impl;
  std::unique_ptr<Impl> impl;
};

// Reports an access to shared memory that touches a live mbarrier object, unless `op` is one of the
// instructions for them. For memory.cpp, on accesses of blocks that have Block::mbarriers.
void check_mbarriers(const Warp& warp, const Op& op, const Access& access);

}  // namespace emulator
