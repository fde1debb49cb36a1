// The function of a graph for windows of one position.
#pragma once

#include "dsl/graph.h"

namespace krait {

/// The graph with its time axis (along which it scans, sums or shifts) of constant size 1; scans
/// and running sums become maps of the carried states, shifts what they read of them. A graph
/// without such an axis is given back.
Graph one_step(const Graph& graph);

}  // namespace krait
