// A long window run as several short ones, states carried from each to the next.
#pragma once

#include <cstdint>

#include "dsl/evaluate.h"
#include "dsl/graph.h"
#include "runtime/runner.h"

namespace krait {

/// Adds zeros, which is what a block starts from, for each state of `graph` that `inputs` lacks.
void add_zero_states(const Graph& graph, const Sizes& sizes, Tensors64& inputs);

/// Outputs of `graph` over the whole of `inputs`, which vary along axis "t", made by runs over
/// windows of at most `length` positions. The states are those that the graph pairs; they are
/// zeroed in the rows (axis "b") in which a document of the input "seq_idx" starts with the window.
/// Outputs that vary along "t" are joined, the others are the last window's.
Tensors64 run_in_windows(const Graph& graph, Runner& runner, const Tensors64& inputs,
                         std::int64_t length);

}  // namespace krait
