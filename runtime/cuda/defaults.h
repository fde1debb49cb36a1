// Which chunks and tiles a GPU has room for.
#pragma once

#include "codegen/cuda/cuda_target.h"
#include "runtime/device.h"
#include "schedules/candidates.h"

namespace krait {

/// As krait::with_defaults, with small products made again where they are needed, and chunks and
/// tiles of states no larger than shared memory allows: both are halved, the larger one first,
/// until every kernel of the pass can be placed, but states are kept for the backward pass as if
/// chunks had not been. Where chunks of eight positions and the smallest tiles have no room, they
/// stay, and generating the kernel that does not fit tells its error. `prepared`: takes the plans
/// that follow, and their kernels as far as they are known then. `pool`: threads that take part.
Schedule cuda_defaults(const Schedule& given, const ScheduleRequest& request, const Target& target,
                       const CudaTarget& cuda, Prepared* prepared = nullptr, Pool* pool = nullptr);

}  // namespace krait
