#include "tests/cuda_emulator/cublaslt/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace cublaslt_emulator {
namespace {

void* open_library() {
  const char* path = std::getenv("KRAIT_LIBCUDA");
  if (path && *path) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return dlopen("libcuda_emulator.so", RTLD_NOW | RTLD_NOLOAD);
}

template <class F>
bool look_up(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool fill(void* library, Driver& driver) {
  return look_up(library, "cuCtxGetCurrent", driver.get_current) &&
         look_up(library, "cuCtxSynchronize", driver.synchronize) &&
         look_up(library, "cuMemHostAlloc", driver.allocate) &&
         look_up(library, "cuMemFreeHost", driver.free) &&
         look_up(library, "cuMemcpyDtoHAsync_v2", driver.to_host) &&
         look_up(library, "cuMemcpyHtoDAsync_v2", driver.to_device) &&
         look_up(library, "cuMemcpy2DAsync_v2", driver.copy_rows) &&
         look_up(library, "cuMemsetD8Async", driver.fill) &&
         look_up(library, "cuLaunchHostFunc", driver.call_host) &&
         look_up(library, "cuStreamIsCapturing", driver.is_capturing) &&
         look_up(library, "cuThreadExchangeStreamCaptureMode", driver.exchange_mode);
}

}  // namespace

const Driver* driver() {
  // Looked for again until it is found; never closed, since programs destroy handles late.
  static Driver found;
  static bool complete = false;
  if (complete) return &found;
  void* library = open_library();
  if (!library) return nullptr;
  complete = fill(library, found);
  return complete ? &found : nullptr;
}

}  // namespace cublaslt_emulator
