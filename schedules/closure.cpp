#include "schedules/closure.h"

#include <algorithm>
#include <functional>

#include "dsl/error.h"

namespace krait {

void Closure::join(const Closure& other) {
  std::set<int> all(nodes.begin(), nodes.end());
  all.insert(other.nodes.begin(), other.nodes.end());
  nodes.assign(all.begin(), all.end());
  loads.insert(other.loads.begin(), other.loads.end());
  boundary.insert(other.boundary.begin(), other.boundary.end());
  sinks.insert(sinks.end(), other.sinks.begin(), other.sinks.end());
}

bool Closure::has(int node) const { return std::binary_search(nodes.begin(), nodes.end(), node); }

std::set<std::string> Closure::axes(const Graph& graph) const {
  std::set<std::string> found;
  auto add = [&](Value value) {
    for (const auto& axis : graph.type(value).axes) found.insert(axis);
  };
  for (int node : nodes) {
    for (std::size_t r = 0; r < graph.node(node).results.size(); ++r)
      add({node, static_cast<int>(r)});
    for (Value operand : graph.node(node).operands) add(operand);  // a literal may be summed over
  }
  for (const auto& [value, views] : loads) add(value);
  for (Value sink : sinks) add(sink);  // a literal is neither computed nor loaded
  return found;
}

Closure close(const Analysis& analysis, const Placement& placement, const std::vector<Value>& sinks,
              const std::set<Value>& own) {
  const Graph& graph = analysis.graph;
  Closure closure;
  std::set<int> nodes;
  std::set<Value> seen;
  std::function<void(Value)> visit = [&](Value value) {
    if (!seen.insert(value).second) return;
    const Node& node = graph.node(value.node);
    const bool constant = std::holds_alternative<Constant>(node.op);
    const std::vector<Value> roots = placement.roots(value);
    const bool here =
        std::any_of(roots.begin(), roots.end(), [&](Value root) { return own.count(root) != 0; });
    const bool input = std::holds_alternative<Input>(node.op);
    // Another name for a position inside a chunk is another look at the same tile.
    const auto* rename = std::get_if<Rename>(&node.op);
    const bool renames =
        rename != nullptr && analysis.is_position(rename->from) && !placement.is_stored(value);
    if (input || (!here && !constant && !renames)) {
      if (auto views = placement.memory_view(value)) {
        closure.loads[value] = *views;
        for (Value root : placement.written(roots, *views)) closure.boundary.insert(root);
        return;
      }
    }
    if (constant) return;  // stands where it is read
    if (own.count(value) && is_view(node.op)) {
      // A sink that only rearranges what stands in memory is copied from there.
      std::vector<Value> below;
      for (Value operand : node.operands)
        for (Value root : placement.roots(operand)) below.push_back(root);
      const bool outside = std::none_of(below.begin(), below.end(),
                                        [&](Value root) { return own.count(root) != 0; });
      if (auto views = placement.source_view(value); views && outside) {
        closure.loads[value] = *views;
        for (Value root : placement.written(below, *views)) closure.boundary.insert(root);
        return;
      }
    }
    nodes.insert(value.node);
    for (Value operand : node.operands) visit(operand);
  };
  for (Value sink : sinks) visit(sink);
  closure.nodes.assign(nodes.begin(), nodes.end());
  closure.sinks = sinks;
  return closure;
}

bool shares_work(const Closure& a, const Closure& b) {
  std::vector<int> common;
  std::set_intersection(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                        std::back_inserter(common));
  if (!common.empty()) return true;
  return std::any_of(a.loads.begin(), a.loads.end(),
                     [&](const auto& load) { return b.loads.count(load.first) != 0; });
}

int Levels::of(const Analysis& analysis, const Placement& placement, Value value) {
  if (auto found = known_.find(value); found != known_.end()) return found->second;
  int level = 0;
  if (analysis.product[value.node]) {
    for (Value operand : analysis.graph.node(value.node).operands)
      for (Value root :
           placement.written(placement.roots(operand), *placement.memory_view(operand)))
        level = std::max(level, of(analysis, placement, root) + 1);
  } else {
    const Closure closure = close(analysis, placement, {value}, {value});
    for (Value stored : closure.boundary)
      level = std::max(level, of(analysis, placement, stored) + 1);
  }
  return known_[value] = level;
}

}  // namespace krait
