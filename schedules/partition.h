// Partition: which values stand in memory, which kernels compute them, and how axes map to them.
#pragma once

#include "dsl/graph.h"
#include "schedules/cuts.h"
#include "schedules/plan.h"

namespace krait {

/// Cuts a normalised graph (see normalise.h) into a Plan. Cuts are made at library products, at
/// scans over a grid axis and where directions along an axis cross, and at reductions over grid
/// axes; then at `cuts`, and at what these leave that is no kernel or waits for itself, until all
/// kernels are possible. `tiles`: axes that count tiles of a state. Throws UsageError for an op
/// that no kernel can run yet.
Plan partition(const Graph& graph, const Schedule& schedule, Pass pass, Cuts cuts = {},
               const AxisNames& tiles = {});

}  // namespace krait
