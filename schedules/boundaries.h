// Boundaries: what stands in memory whatever the kernels are.
#pragma once

#include "schedules/analysis.h"
#include "schedules/placement.h"

namespace krait {

/// Requests operands and results of library products, values that change between whole time and
/// chunks, sums over dynamic axes.
void request_boundaries(const Analysis& analysis, Placement& placement);

}  // namespace krait
