// Which chunks, tiles of states and widths a GPU has room for.
#pragma once

#include "codegen/cuda/cuda_target.h"
#include "runtime/device.h"
#include "runtime/disk_cache.h"
#include "schedules/candidates.h"

namespace krait {

/// As krait::with_defaults, with small products made again where they are needed, and no kernel
/// larger than shared memory allows: chunks and tiles of states are halved, the larger one first,
/// until kernels with states or products can be placed, the width of others until these can; but
/// states are kept for the backward pass as if chunks had not been. Where the smallest have no
/// room, they stay, and generating the kernel that does not fit tells its error.
///
/// `prepared`: takes the plans that follow, and their kernels as far as they are known then.
/// `pool`: threads that take part. `memory`: where what was found is kept, and looked for first.
Schedule cuda_defaults(const Schedule& given, const ScheduleRequest& request, const Target& target,
                       const CudaTarget& cuda, Prepared* prepared = nullptr, Pool* pool = nullptr,
                       DiskCache* memory = nullptr);

/// The plan of one step under the schedule, in kernels as narrow as shared memory asks for.
Plan cuda_step(const Graph& graph, const Schedule& given, const CudaTarget& cuda,
               Prepared& prepared, Pool* pool = nullptr);

}  // namespace krait
