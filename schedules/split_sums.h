// Sums of products in parts, for devices that need many blocks of work at once.
#pragma once

#include <functional>

#include "schedules/plan.h"

namespace krait {

/// Products of kind `product` for which `generated` holds, all of them without it: where the result
/// is so small that too few blocks would work on it, and the sum runs over an axis of any length
/// (weight gradients), that axis is cut into parts, each of which gives a partial result; a second
/// stage adds those up in their order. The number of parts depends on the result alone, 16 at most,
/// and never on lengths. Nothing is cut with math=exact, where every sum has one order.
Plan split_sums(Plan plan,
                const std::function<bool(const Plan&, const PlannedKernel&)>& generated = {});

}  // namespace krait
