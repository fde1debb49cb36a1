// In place of the CUDA device, where krait is built without the headers of a toolkit.
#include "dsl/error.h"
#include "runtime/cuda/device.h"

namespace krait {

std::shared_ptr<Device> make_cuda_device(int ordinal, int) {
  throw EnvironmentError(text("there is no device cuda:", ordinal,
                              ": krait was built without the headers of CUDA; `./dev deps` brings "
                              "them, then build again"));
}

std::string ptx_of(const KernelSource&) {
  throw EnvironmentError(
      "NVRTC cannot be asked: krait was built without the headers of CUDA; `./dev deps` brings "
      "them, then build again");
}

}  // namespace krait
