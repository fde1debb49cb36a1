// Sums with a vector that a library adds while it multiplies.
#pragma once

#include <functional>

#include "schedules/plan.h"

namespace krait {

/// Products of kind `product` for which `library` holds, and whose result a single kernel reads,
/// which only adds a vector along all of the product's columns (one axis of constant size, side by
/// side in the vector and in what is stored): one kernel of kind product, which then has two nodes,
/// the Contract and the Map that adds.
Plan fuse_bias(Plan plan, const std::function<bool(const Plan&, const PlannedKernel&)>& library);

/// The vector that a product of two nodes adds.
Value bias_of(const Graph& graph, const PlannedKernel& kernel);

}  // namespace krait
