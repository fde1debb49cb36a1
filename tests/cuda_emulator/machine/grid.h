#pragma once

// What all blocks of a launch share.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/cuda_emulator/machine/device.h"

namespace emulator {

class Program;

struct Grid {
  const Launch& launch;
  const Limits& limits;
  DeviceMemory& memory;
  const Program& program;
  uint64_t id = 0;                    // of the launch, from 1: ages the marks in memory
  std::vector<std::byte> constant;    // module constants, as they stood at the launch
  std::atomic<uint64_t> progress{0};  // changes to global memory; see Block::progress
  std::atomic<bool> failed{false};    // a block reported: the others stop
  std::atomic<uint64_t> sectors_read{0}, sectors_written{0}, sectors_any{0};  // distinct ones
};

}  // namespace emulator
