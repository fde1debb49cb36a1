// The pipeline: graph in, plans out.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph.h"
#include "schedules/plan.h"

namespace krait {

struct Lowered {
  Plan forward;
  Plan backward;  // no kernels where no gradient is wanted
  /// What backward reads beyond inputs, cotangents: outputs of `forward` and inputs of `backward`
  /// with these names ("saved.NAME"), indexed by time, never by chunk. The tape.
  std::vector<std::string> saved;
};

/// Forward, and backward for the gradients named in `wanted` (inputs' names) under cotangents of
/// the outputs named in `cotangents`; both empty: forward only. The backward plan's inputs are
/// named as differentiate() names them, its outputs "grad.NAME". schedule.plan is chunks, a chunk
/// that is not set is of 64 positions (with_defaults() fills in a better guess); a graph
/// that cannot be chunked, or an op that no kernel can run yet, is a UsageError with the reason.
Lowered lower(const Graph& graph, const Schedule& schedule,
              const std::vector<std::string>& cotangents, const std::vector<std::string>& wanted);

/// One step: the same graph for windows of one position along its scanned axis.
Plan lower_step(const Graph& graph, const Schedule& schedule);

}  // namespace krait
