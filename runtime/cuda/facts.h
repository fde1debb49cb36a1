// What there is of CUDA on this machine, and code for a GPU that need not be there. Everything
// throws EnvironmentError where a library is missing, with what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "codegen/kernel_source.h"
#include "runtime/compile.h"

namespace krait {

struct NvrtcFacts {
  std::string path, version;      // "13.0"
  std::vector<int> capabilities;  // that it compiles for, 90 for 9.0
};
NvrtcFacts nvrtc_facts();

struct CudaFacts {
  struct Part {
    std::string name, capability;  // "9.0"
    std::int64_t memory_bytes = 0, multiprocessors = 0;
  };
  std::string path, version;  // of the driver, "13.0"
  std::vector<Part> parts;    // cuda:0, cuda:1, ...
};
CudaFacts cuda_facts();

/// NVRTC as a Compiler asks it, for a part that need not be here: what it loads cannot be launched.
std::shared_ptr<const CompilerBackend> nvrtc_backend(const CudaTarget& target);

/// A source compiled by NVRTC, past the kernel cache.
CompiledCode nvrtc_code(const KernelSource& source);

}  // namespace krait
