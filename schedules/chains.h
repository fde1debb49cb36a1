// Chains: running sums and scans along a dynamic axis that share one loop, and what may join them.
#pragma once

#include <set>
#include <vector>

#include "schedules/analysis.h"
#include "schedules/cuts.h"
#include "schedules/placement.h"

namespace krait {

/// Scans and running sums along one axis in one direction, in one loop of one kernel.
struct Chain {
  std::vector<int> nodes;  // the running ones, in order
  std::string axis;
  bool reverse = false;
  std::string parts{};  // the axis of the parts that run in parallel; empty: one loop over all
  AxisNames grid;       // outer axes of the states, the loop's axis left out
  /// Nodes that depend on the states and are computed in the loop, because everything that reads
  /// the states does so inside; none where the states go to memory instead.
  std::set<int> members;

  bool depends_on_state(int node) const { return members.count(node) != 0; }
};

/// Finds the chains, in an order in which they can run. For each it decides whether what reads its
/// states is computed in its loop; where that is not possible the states are requested in memory.
std::vector<Chain> form_chains(const Analysis& analysis, Placement& placement, const Cuts& cuts);

}  // namespace krait
