#pragma once

// Basic blocks of a function and the order in which they are laid out.

#include <cstdint>
#include <vector>

#include "tests/cuda_emulator/ptx/module.h"

namespace emulator {

struct FlowGraph {
  struct Block {
    uint32_t first = 0, last = 0;  // instructions [first, last)
    std::vector<uint32_t> successors;
    bool falls_through = false;  // into the block of `last`
  };
  std::vector<Block> blocks;  // as written; the last one is empty and stands for the end
  // Every block once: predecessors first but for the branches back of loops, each loop in a row, so
  // that lanes which wait at the lowest position meet where their ways join. Blocks that nothing
  // reaches are last.
  std::vector<uint32_t> order;
  std::vector<uint32_t> block_of;  // by instruction; one more for the end
};

FlowGraph flow_graph(const ptx::Function& function);

}  // namespace emulator
