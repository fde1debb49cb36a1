#pragma once

// Copies of cp.async that threads of a block have under way; see async.cpp.

#include <memory>

#include "tests/cuda_emulator/machine/lanes.h"

namespace emulator {

class Warp;

// Block::async_copies. Made at the first cp.async of a block.
struct AsyncCopies {
  AsyncCopies();
  ~AsyncCopies();

  struct Impl;
  std::unique_ptr<Impl> impl;
};

}  // namespace emulator
