// In place of the CUDA device, where krait is built without the headers of a toolkit.
#include "dsl/error.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/facts.h"

namespace krait {

namespace {

constexpr const char* kAbsent =
    "krait was built without the headers of CUDA; `./dev deps` brings them, then build again";

}  // namespace

std::shared_ptr<Device> make_cuda_device(int ordinal, int) {
  throw EnvironmentError(text("there is no device cuda:", ordinal, ": ", kAbsent));
}

CompiledCode nvrtc_code(const KernelSource&) {
  throw EnvironmentError(text("NVRTC cannot be asked: ", kAbsent));
}

std::shared_ptr<const CompilerBackend> nvrtc_backend(const CudaTarget&) {
  throw EnvironmentError(text("NVRTC cannot be asked: ", kAbsent));
}

NvrtcFacts nvrtc_facts() { throw EnvironmentError(kAbsent); }

CudaFacts cuda_facts() { throw EnvironmentError(kAbsent); }

}  // namespace krait
