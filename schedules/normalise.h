// Rewrites between the chunked graph and its partition. Each keeps the function.
#pragma once

#include "dsl/graph.h"

namespace krait {

/// Gaps become differences of running sums that are kept as pairs (PairSum): exact enough in f32 to
/// be exponentiated, and one pass over the axis whatever is asked of it.
Graph lower_gaps(const Graph& graph);

/// A reverse Scan of a value that was shifted by one, as the adjoint of an entering state is,
/// becomes a late Scan of the value itself, which nothing then has to keep in memory.
Graph take_shifted_late(const Graph& graph);

/// A slice along a dynamic axis goes before what is computed elementwise along it: only the
/// positions that are asked for are computed.
Graph slice_early(const Graph& graph);

/// Contracts of more than two operands become contracts of two, the smallest result first; a
/// Contract of one operand becomes a Reduce, one without a sum a Map.
Graph pair_contracts(const Graph& graph);

/// A sum over an axis against an indicator of one of its positions is that position.
Graph pick_indicated(const Graph& graph);

/// Sums of tensors that are zero outside of one part each become one Concat of the parts: what the
/// gradients of slices of one tensor add up to.
Graph join_parts(const Graph& graph);

/// A Map that only one other Map over the same axes reads becomes a part of it.
Graph fuse_maps(const Graph& graph);

/// All of the above in order, dead nodes dropped.
Graph normalise(const Graph& graph);

}  // namespace krait
