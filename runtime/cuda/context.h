// The primary context of a GPU, which frameworks use too, and krait's own stream in it.
#pragma once

#include "runtime/cuda/driver.h"
#include "runtime/stream.h"

namespace krait {

class CudaContext {
 public:
  /// Throws EnvironmentError where the driver refuses.
  CudaContext(const CudaDriver& driver, CUdevice device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const CudaDriver& driver() const { return driver_; }
  CUdevice device() const { return device_; }
  CUcontext handle() const { return context_; }
  CUstream stream(Stream stream) const {
    return stream.handle() != nullptr ? static_cast<CUstream>(stream.handle()) : own_;
  }

 private:
  const CudaDriver& driver_;
  CUdevice device_;
  CUcontext context_ = nullptr;
  CUstream own_ = nullptr;
};

/// Makes a context the thread's current one; at the end of its life what was current is so again.
class CurrentContext {
 public:
  explicit CurrentContext(const CudaContext& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaDriver& driver_;
  bool pushed_ = false;
};

}  // namespace krait
