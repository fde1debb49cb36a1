#include "runtime/cuda/driver.h"

#include "dsl/error.h"
#include "runtime/library.h"

// The names that the header gives to what the library calls otherwise (cuMemAlloc is
// cuMemAlloc_v2).
#define KRAIT_TEXT_OF(name) #name
#define KRAIT_NAME_OF(name) KRAIT_TEXT_OF(name)

namespace krait {
namespace {

/// What to do about a code, "" where its meaning says all.
const char* remedy(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return "; smaller sizes, or fewer tensors at once, may fit";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "; the context of the device is lost, with all memory in it, and so is every call "
             "that "
             "follows: let go of the device and of all that was made on it and make it anew, or, "
             "where others hold the context too, start the program again";
    default: return "";
  }
}

}  // namespace

void CudaDriver::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* meaning = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &meaning);
  throw EnvironmentError(text("CUDA: ", what, ": ", meaning != nullptr ? meaning : "unknown error",
                              " (", name != nullptr ? name : std::to_string(result), ")",
                              remedy(result)));
}

namespace {

CudaDriver open() {
  const Library library =
      open_library("the CUDA driver", "KRAIT_LIBCUDA", {"libcuda.so.1"},
                   "install the driver of the GPU, or name its library in KRAIT_LIBCUDA");
  CudaDriver driver;
  driver.path = library.path;
#define KRAIT_FIND(name) library.find(KRAIT_NAME_OF(name), driver.name)
  KRAIT_FIND(cuInit);
  KRAIT_FIND(cuDriverGetVersion);
  KRAIT_FIND(cuDeviceGet);
  KRAIT_FIND(cuDeviceGetCount);
  KRAIT_FIND(cuDeviceGetName);
  KRAIT_FIND(cuDeviceGetAttribute);
  KRAIT_FIND(cuDeviceTotalMem);
  KRAIT_FIND(cuDevicePrimaryCtxRetain);
  KRAIT_FIND(cuDevicePrimaryCtxRelease);
  KRAIT_FIND(cuCtxGetCurrent);
  KRAIT_FIND(cuCtxPushCurrent);
  KRAIT_FIND(cuCtxPopCurrent);
  KRAIT_FIND(cuCtxSynchronize);
  KRAIT_FIND(cuMemAlloc);
  KRAIT_FIND(cuMemAllocAsync);
  KRAIT_FIND(cuMemFree);
  KRAIT_FIND(cuMemGetInfo);
  KRAIT_FIND(cuPointerGetAttributes);
  KRAIT_FIND(cuMemsetD8Async);
  KRAIT_FIND(cuMemcpyHtoDAsync);
  KRAIT_FIND(cuMemcpyDtoHAsync);
  KRAIT_FIND(cuMemcpyDtoDAsync);
  KRAIT_FIND(cuStreamCreate);
  KRAIT_FIND(cuStreamDestroy);
  KRAIT_FIND(cuStreamSynchronize);
  KRAIT_FIND(cuStreamWaitEvent);
  KRAIT_FIND(cuStreamIsCapturing);
  KRAIT_FIND(cuStreamBeginCapture);
  KRAIT_FIND(cuStreamEndCapture);
  KRAIT_FIND(cuGraphGetNodes);
  KRAIT_FIND(cuGraphInstantiate);
  KRAIT_FIND(cuGraphExecUpdate);
  KRAIT_FIND(cuGraphLaunch);
  KRAIT_FIND(cuGraphExecDestroy);
  KRAIT_FIND(cuGraphDestroy);
  KRAIT_FIND(cuEventCreate);
  KRAIT_FIND(cuEventDestroy);
  KRAIT_FIND(cuEventRecord);
  KRAIT_FIND(cuEventQuery);
  KRAIT_FIND(cuEventSynchronize);
  // The header's name for it, with _v2, came with 12.8; what it does is the same.
  library.find("cuEventElapsedTime", driver.cuEventElapsedTime);
  KRAIT_FIND(cuModuleLoadDataEx);
  KRAIT_FIND(cuModuleUnload);
  KRAIT_FIND(cuModuleGetFunction);
  KRAIT_FIND(cuFuncSetAttribute);
  KRAIT_FIND(cuLaunchKernel);
  KRAIT_FIND(cuGetErrorName);
  KRAIT_FIND(cuGetErrorString);
#undef KRAIT_FIND
  try {
    driver.check(driver.cuInit(0), "initialising");
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(
        text(error.what(), ", by ", driver.path,
             "; is there a GPU that `nvidia-smi` shows? device host needs none"));
  }
  return driver;
}

}  // namespace

const CudaDriver& cuda_driver() {
  // One that failed is tried again by the next call: nothing is kept of an exception.
  static const CudaDriver driver = open();
  return driver;
}

}  // namespace krait
