// Mapping: which axes of a kernel are cut over the grid, which are loops, which stand on chip.
#pragma once

#include <string>
#include <vector>

#include "schedules/analysis.h"
#include "schedules/chains.h"
#include "schedules/closure.h"
#include "schedules/placement.h"
#include "schedules/plan.h"

namespace krait {

/// Whether the kernel has products inside.
bool has_matmul(const Analysis& analysis, const Closure& closure);

std::vector<AxisMapping> chain_mapping(const Analysis& analysis, const Chain& chain);

/// Of a kernel without a chain. With products inside: outer axes are the grid, constant ones that
/// are summed over are loops. Without: positions along dynamic axes are the grid; those that are
/// summed over are loops over a bounded number of parts.
std::vector<AxisMapping> local_mapping(const Analysis& analysis, const Closure& closure);

/// Values without which in memory a kernel without a chain, so mapped, holds tiles on chip that are
/// larger than Analysis::width: those that it rearranges, which keeps their axes off the grid, and
/// what it sums large tiles to, for kernels that do not hold them. None where its tiles are small
/// enough.
std::set<Value> kept_for_room(const Analysis& analysis, const Placement& placement,
                              const Closure& closure, const std::vector<AxisMapping>& mapping);

/// Kernels may be joined only where this is equal.
std::vector<std::string> grouping_key(const Analysis& analysis, const Closure& closure);

/// The grid axes over which a sink of a kernel so mapped sums: it is kept per grid point.
AxisNames partial_axes(const Analysis& analysis, const std::vector<AxisMapping>& mapping,
                       Value sink);
/// The axis of the object of partials that stands for one of these.
Axis partial_axis(const Graph& graph, const std::vector<AxisMapping>& mapping,
                  const std::string& axis);

}  // namespace krait
