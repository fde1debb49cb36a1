#pragma once

#include "tests/cuda_emulator/driver/cuda_api.h"

namespace emulator::driver {

// The stream that the _ptsz form of an entry point means.
inline CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace emulator::driver
