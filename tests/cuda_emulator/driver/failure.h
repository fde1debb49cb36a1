#pragma once

#include "tests/cuda_emulator/driver/cuda_api.h"

namespace emulator::driver {

// Leaves an entry point with that code.
struct Failure {
  CUresult code;
};

[[noreturn]] inline void fail(CUresult code = CUDA_ERROR_INVALID_VALUE) { throw Failure{code}; }

inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) fail(code);
}

}  // namespace emulator::driver
