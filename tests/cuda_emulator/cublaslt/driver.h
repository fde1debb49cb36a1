#pragma once

// The emulated driver's entry points that a product needs: looked up in the library that
// KRAIT_LIBCUDA names or, without it, in a libcuda_emulator.so that the program has loaded.

#include <cuda.h>

namespace cublaslt_emulator {

struct Driver {
  decltype(&::cuCtxGetCurrent) get_current = nullptr;
  decltype(&::cuCtxSynchronize) synchronize = nullptr;
  decltype(&::cuMemHostAlloc) allocate = nullptr;
  decltype(&::cuMemFreeHost) free = nullptr;
  decltype(&::cuMemcpyDtoHAsync) to_host = nullptr;
  decltype(&::cuMemcpyHtoDAsync) to_device = nullptr;
  decltype(&::cuMemcpy2DAsync) copy_rows = nullptr;
  decltype(&::cuMemsetD8Async) fill = nullptr;
  decltype(&::cuLaunchHostFunc) call_host = nullptr;
  decltype(&::cuStreamIsCapturing) is_capturing = nullptr;
  decltype(&::cuThreadExchangeStreamCaptureMode) exchange_mode = nullptr;
};

// Null where there is none, or one that lacks an entry point.
const Driver* driver();

}  // namespace cublaslt_emulator
