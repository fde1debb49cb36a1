#pragma once

#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {

enum class Kind { host, device, unified };

// A copy of bytes as the 3D form that all copies have here.
CUDA_MEMCPY3D flat(Kind to, uint64_t to_address, Kind from, uint64_t from_address, uint64_t bytes);
CUDA_MEMCPY3D flat(const CUDA_MEMCPY2D& copy);
// Checks the parameters; none where there is nothing to copy.
std::optional<CopyAction> checked_copy(Call& call, const CUDA_MEMCPY3D& given);
std::optional<FillAction> checked_fill(Call& call, const CUDA_MEMSET_NODE_PARAMS& given);
// Bytes from the first to the last that a copy touches on that side.
uint64_t extent(const CopyAction& copy, const Side& side);
// Whether the range of host memory is mapped: copies of other ranges fail instead of crashing.
bool mapped(const void* host, uint64_t bytes);

// The entry points: `name` without version, the stream null for the legacy one.
// `check` is called first, under the lock.
CUresult copy(const char* name, const CUDA_MEMCPY3D& given, CUstream stream, bool synchronous,
              const std::function<void(Call&)>& check = {});
CUresult fill(const char* name, CUdeviceptr to, size_t pitch, unsigned value, unsigned size,
              size_t width, size_t height, CUstream stream, bool synchronous);

}  // namespace emulator::driver
