// Legality: whether a kernel with this mapping can compute what it is asked for.
#pragma once

#include <vector>

#include "schedules/analysis.h"
#include "schedules/closure.h"
#include "schedules/cuts.h"
#include "schedules/placement.h"
#include "schedules/plan.h"

namespace krait {

/// What must be cut for the kernel to be possible; nothing where it is. To be kept are
///   - what a view rearranges along an axis that is mapped,
///   - what is there only once a loop has ended, or once all grid points have run, and is read
///     before; with it, what the reader needs besides and is dear to compute again,
///   - what runs along an axis that is no loop of the kernel, or the other way.
/// Where such a value stands in memory already, and is computed by the same kernel, its reader is
/// to be apart.
Cuts misplaced(const Analysis& analysis, const Placement& placement, const Closure& closure,
               const std::vector<AxisMapping>& mapping);

}  // namespace krait
