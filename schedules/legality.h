// Legality: whether a kernel with this mapping can compute what it is asked for.
#pragma once

#include <set>
#include <vector>

#include "schedules/analysis.h"
#include "schedules/closure.h"
#include "schedules/plan.h"

namespace krait {

/// Values that must stand in memory before the kernel is possible; empty where it is:
///   - what a view rearranges along an axis that is mapped,
///   - what is there only once a loop has ended, and is read at every round of that loop; with it,
///     what the reader needs besides and is dear to compute again.
std::set<Value> misplaced(const Analysis& analysis, const Closure& closure,
                          const std::vector<AxisMapping>& mapping);

}  // namespace krait
