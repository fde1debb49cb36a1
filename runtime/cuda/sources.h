// Kernels for a GPU that need not be here.
#pragma once

#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "codegen/kernel_source.h"
#include "runtime/layer.h"

namespace krait {

/// What a layer with these options would compile on such a part: forward, backward and step, each
/// in the order of its launches. Matrix products too, which a device gives to a library where there
/// is one. Throws UsageError as Layer does. `pool`: threads that take part. `memory`: as
/// cuda_defaults takes it.
std::vector<KernelSource> gpu_sources(const Graph& graph, const LayerOptions& options,
                                      const CudaTarget& target, Pool* pool = nullptr,
                                      DiskCache* memory = nullptr);

/// What schedules are judged on for a part of this kind, of usual size.
Target usual_target(const CudaTarget& target);

}  // namespace krait
