#include "runtime/cuda/context.h"

namespace krait {

CudaContext::CudaContext(const CudaDriver& driver, CUdevice device)
    : driver_(driver), device_(device) {
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "a context");
  try {
    const CurrentContext current(*this);
    driver_.check(driver_.cuStreamCreate(&own_, CU_STREAM_NON_BLOCKING), "a stream");
  } catch (...) {
    driver_.cuDevicePrimaryCtxRelease(device_);
    throw;
  }
}

CudaContext::~CudaContext() {
  // A context that is lost refuses everything, and takes the stream along.
  CUcontext before = nullptr;
  if (driver_.cuCtxPushCurrent(context_) == CUDA_SUCCESS) {
    driver_.cuStreamDestroy(own_);
    driver_.cuCtxPopCurrent(&before);
  }
  driver_.cuDevicePrimaryCtxRelease(device_);
}

CurrentContext::CurrentContext(const CudaContext& context) : driver_(context.driver()) {
  CUcontext now = nullptr;
  driver_.check(driver_.cuCtxGetCurrent(&now), "the current context");
  if (now == context.handle()) return;
  driver_.check(driver_.cuCtxPushCurrent(context.handle()), "entering the context");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.cuCtxPopCurrent(&popped);
}

}  // namespace krait
