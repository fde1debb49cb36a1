// The stage "stats" of krait print.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/kernel_stats.h"

namespace krait {

/// A table, a row a kernel and one of sums. `temporaries`: bytes of the plan's arena.
std::string stats_text(const Plan& plan, const Sizes& sizes, const std::vector<KernelStats>& stats,
                       std::int64_t temporaries);
/// The same as one JSON object with its newline.
std::string stats_json(const Plan& plan, const Sizes& sizes, const std::vector<KernelStats>& stats,
                       std::int64_t temporaries);

}  // namespace krait
