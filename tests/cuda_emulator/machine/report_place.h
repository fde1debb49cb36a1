#pragma once

#include "tests/cuda_emulator/machine/report.h"

namespace emulator {

// The place of another access of the launch: its instruction by the line of the PTX.
Place place_of(const Warp& warp, int line, uint64_t block, unsigned warp_of_block, int lane);

}  // namespace emulator
