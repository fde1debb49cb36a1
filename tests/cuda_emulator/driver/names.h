#pragma once

#include <string>
#include <vector>

#include "tests/cuda_emulator/driver/cuda_api.h"

namespace emulator::driver {

// An entry point's name without version and stream suffix: cuMemcpy2D_v2_ptds is cuMemcpy2D.
std::string plain_name(std::string name);

struct NamedEntry {
  const char* name;  // plain
  int version;       // of CUDA, from which on the name means this
  bool per_thread;   // the form for the per-thread default stream
  void* address;
};
const std::vector<NamedEntry>& named_entries();

}  // namespace emulator::driver
