#pragma once

#include <optional>

#include "tests/cuda_emulator/driver/cuda_api.h"
#include "tests/cuda_emulator/machine/device.h"

namespace emulator::driver {

// None for what cuda.h does not list. 0 for features that the emulator does not have, and for sizes
// of textures and surfaces.
std::optional<int> attribute_of(const Limits& limits, CUdevice_attribute attribute);

}  // namespace emulator::driver
