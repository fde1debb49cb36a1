// Which chunks a GPU has room for.
#pragma once

#include <optional>

#include "codegen/cuda/cuda_target.h"
#include "schedules/candidates.h"
#include "schedules/lower.h"

namespace krait {

/// As krait::with_defaults, with small products made again where they are needed, and chunks no
/// larger than shared memory allows: they are halved until every kernel of the pass can be placed,
/// but states are kept for the backward pass as if they had not been. Where none of eight positions
/// or more does, the smallest stay, with which generating the kernel that does not fit tells its
/// error.
/// `plans`: set to those that follow, where they fit.
Schedule cuda_defaults(const Schedule& given, const ScheduleRequest& request, const Target& target,
                       const CudaTarget& cuda, std::optional<Lowered>* plans = nullptr);

}  // namespace krait
