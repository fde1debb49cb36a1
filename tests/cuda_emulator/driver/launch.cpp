// Launches.

#include "tests/cuda_emulator/driver/launch.h"

#include <climits>
#include <cstring>

#include "tests/cuda_emulator/driver/copies.h"
#include "tests/cuda_emulator/driver/modules.h"
#include "tests/cuda_emulator/driver/per_thread.h"

using namespace emulator::driver;

namespace emulator::driver {
void check_shape(const Limits& limits, const Function& function, const Shape& shape) {
  const FunctionInfo& info = *function.info;
  const Dim &grid = shape.grid, &block = shape.block;
  require(grid.x && grid.y && grid.z && block.x && block.y && block.z);
  require(grid.x <= INT_MAX && grid.y <= 65535 && grid.z <= 65535);
  require(block.x <= 1024 && block.y <= 1024 && block.z <= 64);
  const uint64_t threads = block.count();
  require(threads <= limits.threads_per_block);
  // Too many registers in all are too few resources, more threads than .maxntid a wrong value.
  require(threads * info.registers <= limits.registers_per_block,
          CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  require(threads <= info.max_threads);
  const unsigned* required = info.required_threads;
  if (required[0])
    require(block.x == required[0] && block.y == std::max(1u, required[1]) &&
            block.z == std::max(1u, required[2]));
  require(shape.dynamic_shared <= static_cast<unsigned>(function.dynamic_shared));
  require(uint64_t{shape.dynamic_shared} + info.static_shared <= limits.shared_per_block_opt_in);
  if (shape.cooperative) {
    const uint64_t resident =
        resident_blocks(limits, function, static_cast<unsigned>(threads), shape.dynamic_shared);
    require(grid.count() <= resident * limits.multiprocessors,
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  }
}

namespace {

std::vector<std::byte> from_pointers(const FunctionInfo& info, void** pointers) {
  std::vector<std::byte> bytes(info.parameter_bytes);
  require(info.parameters.empty() || pointers);
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const FunctionInfo::Parameter& parameter = info.parameters[i];
    require(mapped(pointers[i], parameter.bytes));
    std::memcpy(bytes.data() + parameter.offset, pointers[i], parameter.bytes);
  }
  return bytes;
}

std::vector<std::byte> from_buffer(const FunctionInfo& info, void** extra) {
  const void* buffer = nullptr;
  const size_t* size = nullptr;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const size_t*>(extra[i + 1]);
    } else {
      fail();
    }
  }
  require(size && (buffer || *size == 0));
  require(*size >= info.parameter_bytes);
  const size_t padded = (info.parameter_bytes + 7) / 8 * 8;
  require(*size <= padded, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  std::vector<std::byte> bytes(info.parameter_bytes);
  if (!bytes.empty()) std::memcpy(bytes.data(), buffer, bytes.size());
  return bytes;
}

}  // namespace

KernelAction checked_launch(Call& call, const std::shared_ptr<Function>& function,
                            const Shape& shape, void** parameters, void** extra) {
  require(!(parameters && extra));
  check_shape(call.driver.limits, *function, shape);
  KernelAction action;
  action.function = function;
  action.module = function->module.lock();
  action.grid = shape.grid;
  action.block = shape.block;
  action.dynamic_shared = shape.dynamic_shared;
  action.cooperative = shape.cooperative;
  action.priority = shape.priority;
  action.parameters =
      extra ? from_buffer(*function->info, extra) : from_pointers(*function->info, parameters);
  return action;
}

namespace {

void launch(Call& call, CUfunction handle, const Shape& shape, CUstream stream_handle,
            void** parameters, void** extra) {
  const std::shared_ptr<Stream> stream = call.stream(stream_handle);
  const std::shared_ptr<Function> function = function_at(call, handle, stream->context);
  require(function->module.lock()->context == stream->context, CUDA_ERROR_INVALID_HANDLE);
  call.submit(stream, checked_launch(call, function, shape, parameters, extra));
}

// Attributes of a launch. What only makes it faster on a device has no effect here.
void read_attributes(Call& call, const CUlaunchConfig& config, Shape& shape) {
  require(config.numAttrs == 0 || config.attrs);
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    switch (config.attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: shape.cooperative = value.cooperative != 0; break;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY: shape.priority = value.priority; break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        require(call.driver.limits.major >= 9);
        require(value.clusterDim.x && value.clusterDim.y && value.clusterDim.z);
        require(value.clusterDim.x == 1 && value.clusterDim.y == 1 && value.clusterDim.z == 1,
                CUDA_ERROR_NOT_SUPPORTED);
        break;
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: break;
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: fail(CUDA_ERROR_NOT_SUPPORTED);
      default: fail();
    }
  }
}

CUresult launch_ex(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra,
                   bool own_stream) {
  return entry("cuLaunchKernelEx", [&](Call& call) {
    require(config);
    Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes};
    read_attributes(call, *config, shape);
    launch(call, f, shape, own_stream ? per_thread(config->hStream) : config->hStream, kernelParams,
           extra);
  });
}

}  // namespace
}  // namespace emulator::driver

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  return entry("cuLaunchKernel", [&](Call& call) {
    const Shape shape{
        {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes};
    launch(call, f, shape, hStream, kernelParams, extra);
  });
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                             unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                             unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                             void** kernelParams, void** extra) {
  return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                        sharedMemBytes, per_thread(hStream), kernelParams, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra) {
  return launch_ex(config, f, kernelParams, extra, false);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                               void** extra) {
  return launch_ex(config, f, kernelParams, extra, true);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  return entry("cuLaunchCooperativeKernel", [&](Call& call) {
    const Shape shape{
        {gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes, true};
    launch(call, f, shape, hStream, kernelParams, nullptr);
  });
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX,
                                        unsigned int blockDimY, unsigned int blockDimZ,
                                        unsigned int sharedMemBytes, CUstream hStream,
                                        void** kernelParams) {
  return cuLaunchCooperativeKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                   sharedMemBytes, per_thread(hStream), kernelParams);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  return entry("cuLaunchHostFunc", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(hStream);
    require(fn);
    call.submit(stream, HostAction{fn, userData, nullptr, nullptr});
  });
}

CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void* userData) {
  return cuLaunchHostFunc(per_thread(hStream), fn, userData);
}
