#pragma once

// A block that runs: its warps, its shared memory, its barriers, its clocks and counts.

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/cuda_emulator/machine/clocks.h"
#include "tests/cuda_emulator/machine/counters.h"
#include "tests/cuda_emulator/machine/device.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {

struct Grid;          // what all blocks of a launch share; see grid.h
struct SharedShadow;  // who touched shared memory last; see races.h
struct Mbarriers;     // see isa/mbarrier.cpp
struct AsyncCopies;   // see isa/async.cpp

class Block {
 public:
  Block(Grid& grid, Dim index, uint64_t linear);
  ~Block();

  Grid& grid;
  Dim index;
  uint64_t linear = 0;
  std::vector<Warp> warps;
  unsigned threads = 0;

  // Variables with guard zones between them; `valid` is 1 for bytes that belong to one.
  std::vector<std::byte> shared;
  std::vector<uint8_t> shared_defined, shared_valid;
  std::shared_ptr<SharedShadow> shared_shadow;  // null at first, like the two below
  Clocks clocks;
  Counters counters;
  std::shared_ptr<Mbarriers> mbarriers;
  std::shared_ptr<AsyncCopies> async_copies;

  // Counts changes to memory and barriers: while it stands still nobody who waits can go on.
  uint64_t progress = 0;

  // Barriers and the order of warps; see state.h.
  struct State;
  std::unique_ptr<State> state;
};

}  // namespace emulator
