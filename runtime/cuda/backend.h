// The CUDA compiler as a Compiler asks it, and the kernels that it gives.
#pragma once

#include <atomic>
#include <memory>

#include "codegen/cuda/cuda_target.h"
#include "runtime/compile.h"
#include "runtime/cuda/context.h"
#include "schedules/target.h"

namespace krait {

class CudaExecutable : public Executable {
 public:
  CudaExecutable(std::string name, std::string key, std::string log,
                 std::shared_ptr<const CudaContext> context, CUmodule module, CUfunction function)
      : Executable(std::move(name), std::move(key), std::move(log)),
        context_(std::move(context)),
        module_(module),
        function_(function) {}
  ~CudaExecutable() override;

  CUfunction function() const { return function_; }
  /// Lets launches have so much dynamic shared memory; the context is current.
  void allow_shared(std::int64_t bytes) const;

 private:
  std::shared_ptr<const CudaContext> context_;
  CUmodule module_;
  CUfunction function_;
  mutable std::atomic<std::int64_t> shared_ = 48 << 10;  // what every kernel may have
};

class CudaBackend : public CompilerBackend {
 public:
  CudaBackend(std::shared_ptr<const CudaContext> context, CudaTarget target)
      : context_(std::move(context)), target_(std::move(target)) {}

  Toolchain toolchain(DiskCache* memory) const override;
  CompiledCode compile(const KernelSource& source) const override;
  /// The device image; where the driver has no use for it (an emulated device), the PTX, and from
  /// then on PTX alone.
  std::shared_ptr<Executable> load(const KernelSource& source, const std::string& key,
                                   const CompiledCode& code) const override;

 private:
  std::shared_ptr<const CudaContext> context_;
  CudaTarget target_;
  mutable std::atomic<bool> ptx_only_ = false;
};

}  // namespace krait
