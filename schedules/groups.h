// Groups: which stored values one kernel computes.
#pragma once

#include <set>
#include <vector>

#include "schedules/analysis.h"
#include "schedules/chains.h"
#include "schedules/closure.h"
#include "schedules/cuts.h"
#include "schedules/placement.h"
#include "schedules/plan.h"

namespace krait {

/// One kernel in the making.
struct Group {
  std::vector<Value> sinks;  // stored values that it computes, in graph order
  int chain = -1;            // its number, -1: none
  Closure closure;
  std::vector<AxisMapping> mapping;
  std::vector<Digit> digits;
  std::vector<Remade> remade;
};

/// Every stored value that no library gives in one group. May ask for more in memory: products
/// that the grid points of a loop would repeat, as schedule.recompute says.
std::vector<Group> form_groups(const Analysis& analysis, Placement& placement,
                               const std::vector<Chain>& chains, const Schedule& schedule,
                               const Cuts& cuts);

}  // namespace krait
