// The entry points of the CUDA driver that krait calls, found in the library when it is opened.
#pragma once

#include <cuda.h>

#include <string>

namespace krait {

struct CudaDriver {
  std::string path;  // of the library
#define KRAIT_CUDA_FUNCTION(name) decltype(&::name) name = nullptr
  KRAIT_CUDA_FUNCTION(cuInit);
  KRAIT_CUDA_FUNCTION(cuDriverGetVersion);
  KRAIT_CUDA_FUNCTION(cuDeviceGet);
  KRAIT_CUDA_FUNCTION(cuDeviceGetCount);
  KRAIT_CUDA_FUNCTION(cuDeviceGetName);
  KRAIT_CUDA_FUNCTION(cuDeviceGetAttribute);
  KRAIT_CUDA_FUNCTION(cuDeviceTotalMem);
  KRAIT_CUDA_FUNCTION(cuDevicePrimaryCtxRetain);
  KRAIT_CUDA_FUNCTION(cuDevicePrimaryCtxRelease);
  KRAIT_CUDA_FUNCTION(cuCtxGetCurrent);
  KRAIT_CUDA_FUNCTION(cuCtxPushCurrent);
  KRAIT_CUDA_FUNCTION(cuCtxPopCurrent);
  KRAIT_CUDA_FUNCTION(cuCtxSynchronize);
  KRAIT_CUDA_FUNCTION(cuMemAlloc);
  KRAIT_CUDA_FUNCTION(cuMemAllocAsync);
  KRAIT_CUDA_FUNCTION(cuMemFree);
  KRAIT_CUDA_FUNCTION(cuMemGetInfo);
  KRAIT_CUDA_FUNCTION(cuPointerGetAttributes);
  KRAIT_CUDA_FUNCTION(cuMemsetD8Async);
  KRAIT_CUDA_FUNCTION(cuMemcpyHtoDAsync);
  KRAIT_CUDA_FUNCTION(cuMemcpyDtoHAsync);
  KRAIT_CUDA_FUNCTION(cuMemcpyDtoDAsync);
  KRAIT_CUDA_FUNCTION(cuStreamCreate);
  KRAIT_CUDA_FUNCTION(cuStreamDestroy);
  KRAIT_CUDA_FUNCTION(cuStreamSynchronize);
  KRAIT_CUDA_FUNCTION(cuStreamWaitEvent);
  KRAIT_CUDA_FUNCTION(cuStreamIsCapturing);
  KRAIT_CUDA_FUNCTION(cuStreamBeginCapture);
  KRAIT_CUDA_FUNCTION(cuStreamEndCapture);
  KRAIT_CUDA_FUNCTION(cuGraphGetNodes);
  KRAIT_CUDA_FUNCTION(cuGraphInstantiate);
  KRAIT_CUDA_FUNCTION(cuGraphExecUpdate);
  KRAIT_CUDA_FUNCTION(cuGraphLaunch);
  KRAIT_CUDA_FUNCTION(cuGraphExecDestroy);
  KRAIT_CUDA_FUNCTION(cuGraphDestroy);
  KRAIT_CUDA_FUNCTION(cuEventCreate);
  KRAIT_CUDA_FUNCTION(cuEventDestroy);
  KRAIT_CUDA_FUNCTION(cuEventRecord);
  KRAIT_CUDA_FUNCTION(cuEventQuery);
  KRAIT_CUDA_FUNCTION(cuEventSynchronize);
  KRAIT_CUDA_FUNCTION(cuEventElapsedTime);
  KRAIT_CUDA_FUNCTION(cuModuleLoadDataEx);
  KRAIT_CUDA_FUNCTION(cuModuleUnload);
  KRAIT_CUDA_FUNCTION(cuModuleGetFunction);
  KRAIT_CUDA_FUNCTION(cuFuncSetAttribute);
  KRAIT_CUDA_FUNCTION(cuLaunchKernel);
  KRAIT_CUDA_FUNCTION(cuGetErrorName);
  KRAIT_CUDA_FUNCTION(cuGetErrorString);
#undef KRAIT_CUDA_FUNCTION

  /// Throws EnvironmentError "CUDA: WHAT: STRING (NAME)", and what to do where that is known,
  /// unless the result is a success. One of work that was given earlier is told by any later call.
  void check(CUresult result, const char* what) const;
};

/// Opened once; $KRAIT_LIBCUDA, else libcuda.so.1. Throws EnvironmentError where there is none, it
/// lacks an entry point, or cannot initialise: what is missing, and what to do.
const CudaDriver& cuda_driver();

}  // namespace krait
