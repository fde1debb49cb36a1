#pragma once

// A warp of a running block, as the instructions of isa/ see it.

#include <cstdint>
#include <vector>

#include "tests/cuda_emulator/machine/clocks.h"
#include "tests/cuda_emulator/machine/counters.h"
#include "tests/cuda_emulator/machine/lanes.h"
#include "tests/cuda_emulator/machine/memory.h"
#include "tests/cuda_emulator/machine/report.h"

namespace emulator {

class Block;

class Warp {
 public:
  Block* block = nullptr;
  unsigned index = 0;    // in the block
  Registers registers;   // of the frame that runs now
  Predicate carry;       // of each lane: what add.cc leaves for addc; not kept over calls
  Mask existing = kAll;  // lanes that are threads: fewer in the last warp of an odd block
  Mask exited = 0;
  // Set by an instruction whose wait was not successful (mbarrier.try_wait): nothing changes for
  // this group of lanes before something in the block does, so others run first; when all doze it
  // is a deadlock.
  bool dozes = false;

  unsigned thread(int lane) const { return index * kLanes + lane; }  // linear, in the block
  Dim thread_index(int lane) const;
  // Local memory of a lane, from offset 0 of the warp's stack; bounds are the current frame's and
  // its callers'. Null beyond.
  std::byte* local(int lane, uint64_t offset, unsigned bytes, uint8_t** defined);
  // .param space: that of the running kernel, or what a call passes. Null beyond.
  std::byte* param(int lane, uint64_t offset, unsigned bytes, uint8_t** defined, bool write);

  // What the machine itself needs; see warp.cpp.
  struct State;
  std::unique_ptr<State> state;

  Warp();
  ~Warp();
};

}  // namespace emulator
