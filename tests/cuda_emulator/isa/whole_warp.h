#pragma once

// Instructions that 32 threads execute as one: mma, ldmatrix, stmatrix, movmatrix. The ISA leaves
// them undefined where a thread of the warp has exited or never was; here that is a report.

#include <bit>
#include <string>

#include "tests/cuda_emulator/machine/report.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {

inline void require_whole_warp(const Warp& warp, const Op& op, Mask lanes) {
  if (lanes == kAll) [[likely]]
    return;
  const int missing = std::countr_one(lanes);
  const char* why = warp.existing >> missing & 1 ? " does not take part" : " does not exist";
  fail(warp, op, std::countr_zero(lanes), Fault::divergence,
       "needs all 32 threads of the warp, but lane " + std::to_string(missing) + why);
}

}  // namespace emulator
