// Order: in which order kernels run, and which wait for one another.
#pragma once

#include <set>
#include <vector>

namespace krait {

/// Numbers 0 to n - 1, each after those that it waits for, else as they stand. What is in a circle,
/// or waits for one, is left out.
std::vector<int> ordered(const std::vector<std::set<int>>& waits_for);

/// Those that wait for one another, in sets of at least two.
std::vector<std::set<int>> circles(const std::vector<std::set<int>>& waits_for);

}  // namespace krait
