#pragma once

#include "tests/cuda_emulator/machine/memory.h"

namespace emulator {

// Reports an access to shared memory (access.space) that touches a live mbarrier object, unless
// `op` is one of the instructions for them. For memory.cpp, on accesses of blocks that have
// Block::mbarriers.
void check_mbarriers(const Warp& warp, const Op& op, const Access& access);

// Offsets in shared memory of the objects that an instruction names by base + op.imm[0].
void object_addresses(Warp& warp, const Op& op, Mask lanes, Arg base, bool generic,
                      uint64_t (&to)[kLanes]);

}  // namespace emulator
