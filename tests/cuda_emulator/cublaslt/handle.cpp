// Handles, and what the library says of itself.

#include "tests/cuda_emulator/cublaslt/handle.h"

#include <new>
#include <set>

#include "tests/cuda_emulator/cublaslt/exported.h"

namespace cublaslt_emulator {
namespace {

// Never destroyed: programs destroy handles at their very end.
std::mutex& handles_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::set<Handle*>& handles() {
  static auto* all = new std::set<Handle*>;
  return *all;
}

// A thread that captures may allocate and free page-locked memory only in this mode.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) {
    active_ = driver_.exchange_mode(&mode_) == CUDA_SUCCESS;
  }
  ~RelaxedCapture() {
    if (active_) driver_.exchange_mode(&mode_);
  }

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool active_ = false;
};

}  // namespace

Staging* Handle::take(size_t bytes) {
  std::lock_guard lock(mutex_);
  Staging* best = nullptr;
  for (const auto& staging : all_)
    if (!staging->busy.load(std::memory_order_acquire) && staging->bytes >= bytes &&
        (!best || staging->bytes < best->bytes))
      best = staging.get();
  if (!best) {
    auto fresh = std::make_unique<Staging>();
    const RelaxedCapture relaxed(driver);
    void* memory = nullptr;
    if (driver.allocate(&memory, bytes, 0) != CUDA_SUCCESS) return nullptr;
    fresh->memory = static_cast<std::byte*>(memory);
    fresh->bytes = bytes;
    all_.push_back(std::move(fresh));
    best = all_.back().get();
  }
  best->busy = true;
  return best;
}

Handle::~Handle() {
  const RelaxedCapture relaxed(driver);
  // What is under way still uses the memory; after an error it never will.
  driver.synchronize();
  for (const auto& staging : all_) driver.free(staging->memory);
}

Handle* get(cublasLtHandle_t handle) {
  std::lock_guard lock(handles_mutex());
  Handle* own = reinterpret_cast<Handle*>(handle);
  return handles().count(own) ? own : nullptr;
}

}  // namespace cublaslt_emulator

using namespace cublaslt_emulator;

// Without a driver, or without a current context, the library does not initialise.
EXPORTED cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle) {
  if (!lightHandle) return CUBLAS_STATUS_INVALID_VALUE;
  *lightHandle = nullptr;
  const Driver* found = driver();
  if (!found) return CUBLAS_STATUS_NOT_INITIALIZED;
  CUcontext context = nullptr;
  if (found->get_current(&context) != CUDA_SUCCESS || !context)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  Handle* handle = new (std::nothrow) Handle(*found);
  if (!handle) return CUBLAS_STATUS_ALLOC_FAILED;
  std::lock_guard lock(handles_mutex());
  handles().insert(handle);
  *lightHandle = reinterpret_cast<cublasLtHandle_t>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  Handle* handle = reinterpret_cast<Handle*>(lightHandle);
  {
    std::lock_guard lock(handles_mutex());
    if (!handles().erase(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
#define NAME(status) \
  case status: return #status
    NAME(CUBLAS_STATUS_SUCCESS);
    NAME(CUBLAS_STATUS_NOT_INITIALIZED);
    NAME(CUBLAS_STATUS_ALLOC_FAILED);
    NAME(CUBLAS_STATUS_INVALID_VALUE);
    NAME(CUBLAS_STATUS_ARCH_MISMATCH);
    NAME(CUBLAS_STATUS_MAPPING_ERROR);
    NAME(CUBLAS_STATUS_EXECUTION_FAILED);
    NAME(CUBLAS_STATUS_INTERNAL_ERROR);
    NAME(CUBLAS_STATUS_NOT_SUPPORTED);
    NAME(CUBLAS_STATUS_LICENSE_ERROR);
#undef NAME
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

EXPORTED const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "an invalid value was used as a parameter";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "an absent device architectural feature is required";
    case CUBLAS_STATUS_MAPPING_ERROR: return "an access to GPU memory space failed";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the GPU program failed to execute";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR: return "a license error occurred";
  }
  return "unknown status";
}

EXPORTED size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

EXPORTED size_t cublasLtGetCudartVersion() { return CUDA_VERSION; }

EXPORTED cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION: *value = CUBLAS_VER_MAJOR; break;
    case MINOR_VERSION: *value = CUBLAS_VER_MINOR; break;
    case PATCH_LEVEL: *value = CUBLAS_VER_PATCH; break;
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
