#pragma once

#include <string>
#include <vector>

#include "tests/cuda_emulator/machine/device.h"

namespace emulator::driver {

// The format that emulator.h describes.
std::string json_of(const std::vector<LaunchStatistics>& launches);

}  // namespace emulator::driver
