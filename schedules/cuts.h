// Cuts: what trying to make kernels has shown about where they have to end.
#pragma once

#include <set>

#include "dsl/graph.h"

namespace krait {

struct Cuts {
  /// Values that stand in memory besides those that must whatever the kernels are.
  std::set<Value> kept;
  /// Nodes that are in one kernel only with what needs them.
  std::set<int> apart;

  bool empty() const { return kept.empty() && apart.empty(); }
  /// Whether the other had any that these lack.
  bool add(const Cuts& other);
};

/// The last resort: every value in memory, and every node in a kernel of its own. Such a kernel
/// computes one value from values of smaller number, so that none waits for another in a circle,
/// and has no loop but those over which that value is summed or runs.
Cuts cut_everywhere(const Graph& graph);

}  // namespace krait
