#pragma once

#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {

struct Shape {
  Dim grid, block;
  unsigned dynamic_shared = 0;
  bool cooperative = false;
  int priority = 0;
};

void check_shape(const Limits& limits, const Function& function, const Shape& shape);
// Checks a launch as the device does and copies its parameters.
KernelAction checked_launch(Call& call, const std::shared_ptr<Function>& function,
                            const Shape& shape, void** parameters, void** extra);

// Blocks of that size that fit a multiprocessor at once; 0 where one does not.
unsigned resident_blocks(const Limits& limits, const Function& function, unsigned threads,
                         uint64_t dynamic_shared);

}  // namespace emulator::driver
