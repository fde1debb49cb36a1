// Schedules that were found once, kept beside the kernels that follow them.
#pragma once

#include <optional>
#include <string>

#include "codegen/cuda/cuda_target.h"
#include "runtime/disk_cache.h"
#include "schedules/candidates.h"

namespace krait {

/// What finding a schedule depends on, as a key of the cache: the build of krait that runs, the
/// graph and what is asked of it, the part, and the schedules that the search starts from. "" where
/// the build has no name (a program linked without --build-id): then nothing is to be kept.
std::string decision_key(const ScheduleRequest& request, const CudaTarget& cuda,
                         const std::vector<Schedule>& from);

/// The schedule that was kept under the key, if there is one.
std::optional<Schedule> decided(DiskCache& memory, const std::string& key);
void decide(DiskCache& memory, const std::string& key, const CudaTarget& cuda,
            const Schedule& schedule);

}  // namespace krait
