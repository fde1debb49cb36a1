#pragma once

// Functions that CUDA's runtime provides to kernels.

#include "tests/cuda_emulator/machine/decoding.h"

namespace emulator {

void run_builtin(Warp& warp, const Op& op, const Call& call, Mask lanes);

}  // namespace emulator
