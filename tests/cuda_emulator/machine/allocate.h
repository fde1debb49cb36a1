#pragma once

// Registers to units of a frame.

#include <cstdint>
#include <vector>

#include "tests/cuda_emulator/machine/flow.h"

namespace emulator {

// Registers that an instruction reads and writes.
struct Accesses {
  std::vector<uint32_t> reads, writes;
  bool guarded = false;  // writes may not happen
};

struct Allocation {
  std::vector<uint32_t> unit;           // by register; predicates have numbers of their own
  std::vector<uint32_t> live_at_start;  // registers that may be read before they are written
  uint32_t units = 0, predicates = 0;
  uint32_t pressure = 0;  // most units in use at one place
};

// Registers that are in use at the same place never share a unit, registers of different sizes
// never do, and what an instruction reads
// never shares one with what it writes, unless it is the same register.
Allocation allocate(const FlowGraph& graph, const std::vector<Accesses>& accesses,
                    const std::vector<ptx::Type>& types);

}  // namespace emulator
