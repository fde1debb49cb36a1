#pragma once

#include <string>

#include "tests/cuda_emulator/machine/report.h"

namespace emulator {

// The variable or allocation that holds an address, or the nearest one and how far it is, in words;
// "" where nothing is known.
std::string locate(const Warp& warp, ptx::Space space, uint64_t address, unsigned bytes);

}  // namespace emulator
