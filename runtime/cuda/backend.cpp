#include "runtime/cuda/backend.h"

#include <array>

#include "dsl/error.h"
#include "runtime/cuda/facts.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/nvrtc_build.h"

namespace krait {

CudaExecutable::~CudaExecutable() {
  try {
    const CurrentContext current(*context_);
    context_->driver().cuModuleUnload(module_);
  } catch (const std::exception&) {
    // A context that cannot be entered is gone with its modules.
  }
}

void CudaExecutable::allow_shared(std::int64_t bytes) const {
  if (bytes <= shared_) return;
  const CudaDriver& driver = context_->driver();
  driver.check(driver.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(bytes)),
               text("shared memory of ", bytes, " bytes").c_str());
  shared_ = bytes;
}

Toolchain CudaBackend::toolchain(DiskCache* memory) const {
  return {target_.architecture, {{"nvrtc", nvrtc_build(memory)}}};
}

CompiledCode CudaBackend::compile(const KernelSource& source) const { return nvrtc_code(source); }

std::shared_ptr<Executable> CudaBackend::load(const KernelSource& source, const std::string& key,
                                              const CompiledCode& code) const {
  const CudaDriver& driver = context_->driver();
  const CurrentContext current(*context_);
  CUmodule module = nullptr;
  std::array<char, 4096> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!ptx_only_ && !code.binary.empty())
    result = driver.cuModuleLoadDataEx(&module, code.binary.data(), 2, options, values);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
    ptx_only_ = true;
    result = driver.cuModuleLoadDataEx(&module, code.text.c_str(), 2, options, values);
  }
  if (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_PTX)
    throw InternalError(text("kernel ", source.name, " cannot be loaded: ", log.data()));
  driver.check(result, ("loading " + source.name + ": " + log.data()).c_str());
  CUfunction function = nullptr;
  const CUresult found = driver.cuModuleGetFunction(&function, module, source.entry.c_str());
  if (found != CUDA_SUCCESS) {
    driver.cuModuleUnload(module);
    if (found == CUDA_ERROR_NOT_FOUND)
      throw InternalError("kernel " + source.name + " has no function " + source.entry);
    driver.check(found, source.name.c_str());
  }
  return std::make_shared<CudaExecutable>(source.name, key, code.log, context_, module, function);
}

}  // namespace krait
