// Orders the products of a contraction so that no intermediate is larger than it need be.
#pragma once

#include <optional>
#include <vector>

#include "dsl/graph.h"

namespace krait::chunking {

/// The sum over `sum` of the product of `factors`, two at a time: what is summed away without
/// `wide` comes first, then one Map makes a matrix M of all that varies along the other summed
/// axes, then M meets `wide`, and factors that are not summed at all are multiplied at the end.
///   `last`: axes of `sum` that stay for the final contraction in any case.
///   `wide`: number of the factor that is kept for the final contraction, or -1.
Value join(Graph& graph, const std::vector<Value>& factors, int wide, const AxisNames& sum,
           const AxisNames& last);

/// The same with that `wide` of `choices` that makes the smallest intermediates, sizes that only
/// the run knows taken as 64.
Value join_best(Graph& graph, const std::vector<Value>& factors, const std::vector<int>& choices,
                const AxisNames& sum, const AxisNames& last);

}  // namespace krait::chunking
