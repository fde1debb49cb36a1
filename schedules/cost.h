// Cost: what a plan does at given sizes, and about how long that takes on a target.
//
// A roofline with three roofs a kernel: arithmetic, what moves between a thread and its caches, and
// what moves to and from memory; the first two add up, since the same instructions wait for both.
// It is meant to rank schedules of one graph: only ratios of seconds count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/plan.h"
#include "schedules/target.h"

namespace krait {

/// Counts are doubles: they must not overflow for schedules that are then refused.
struct KernelCost {
  std::string name;
  double grid = 1;           // points
  double product_flops = 0;  // of Contracts, a multiply-add as two
  double element_flops = 0;  // of everything else, weighted: an exponential is many
  /// Read from and written to memory, each position that a kernel touches once.
  double bytes = 0;
  /// Read and written on chip, repeated as often as it is.
  double traffic = 0;
  /// On chip at once, of one grid point.
  double scratch_bytes = 0;
  double seconds = 0;
};

struct Cost {
  std::vector<KernelCost> kernels;  // in the plan's order; each is one launch
  double flops = 0, bytes = 0;
  double scratch_bytes = 0;  // the largest
  double arena_bytes = 0;
  double seconds = 0;
};

/// `sizes` has every symbol of the plan's graph; throws UsageError for one that it lacks.
Cost cost(const Plan& plan, const Sizes& sizes, const Target& target);

/// About how many additions one element of the expression costs.
double weight(const Scalar& expression);

/// A line a kernel, then the sums.
std::string to_text(const Cost& cost);

}  // namespace krait
