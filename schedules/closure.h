// Closure: what a kernel computes so that its sinks come out, and what it reads for that.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "schedules/analysis.h"
#include "schedules/placement.h"

namespace krait {

struct Closure {
  std::vector<Value> sinks;  // what is asked for
  std::vector<int> nodes;    // computed inside, in order, constants left out
  std::map<Value, std::vector<View>> loads;
  std::set<Value> boundary;  // values of other kernels behind the loads

  void join(const Closure& other);
  bool has(int node) const;
  /// All axes of all nodes, loads and sinks.
  std::set<std::string> axes(const Graph& graph) const;
};

/// Everything back to inputs and stored values; values in `own` are computed here.
Closure close(const Analysis& analysis, const Placement& placement, const std::vector<Value>& sinks,
              const std::set<Value>& own);

/// Whether two closures compute or read something together.
bool shares_work(const Closure& a, const Closure& b);

/// How many kernels must have run before a stored value can be computed.
class Levels {
 public:
  int of(const Analysis& analysis, const Placement& placement, Value value);

 private:
  std::map<Value, int> known_;
};

}  // namespace krait
