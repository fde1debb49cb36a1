#include "schedules/analysis.h"

#include <algorithm>

#include "dsl/error.h"
#include "schedules/view.h"

namespace krait {
namespace {

/// The least number of free positions on each side for which a library's product pays.
constexpr std::int64_t least_free = 16;

/// Whether the value is a parameter, or a rearranged one.
bool is_parameter(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (const auto* input = std::get_if<Input>(&node.op)) return input->role == Role::parameter;
  return is_view(node.op) && std::all_of(node.operands.begin(), node.operands.end(),
                                         [&](Value v) { return is_parameter(graph, v); });
}

}  // namespace

ContractAxes contract_axes(const Graph& graph, int node) {
  const Node& contract = graph.node(node);
  const AxisNames& sum = std::get<Contract>(contract.op).sum;
  const AxisNames& left = graph.type(contract.operands[0]).axes;
  const AxisNames& right = graph.type(contract.operands[1]).axes;
  ContractAxes axes;
  for (const auto& axis : left)
    if (!contains(sum, axis)) (contains(right, axis) ? axes.batch : axes.left).push_back(axis);
  for (const auto& axis : right)
    if (!contains(sum, axis) && !contains(left, axis)) axes.right.push_back(axis);
  return axes;
}

namespace {

/// Where an axis stands in the storage of the inputs: its place there, or that of the axis of which
/// it is a part and on which side of it (0 outer, 1 inner), and so on.
class StorageOrder {
 public:
  StorageOrder(const Graph& graph, const AxisNames& tiles) {
    for (Value value : graph.inputs()) {
      const AxisNames& order = graph.input_of(value).order;
      for (std::size_t i = 0; i < order.size(); ++i) ranks_.emplace(order[i], static_cast<int>(i));
    }
    // A tile and the position in it stand where the axis would, among those of its rank too.
    auto parts = [&](const std::string& whole, const std::string& outer, const std::string& inner) {
      const bool tile = contains(tiles, outer);
      parents_.emplace(outer, std::pair(whole, tile ? none : 0));
      parents_.emplace(inner, std::pair(whole, tile ? none : 1));
    };
    for (const Node& node : graph.nodes()) {
      if (const auto* split = std::get_if<Split>(&node.op))
        parts(split->axis, split->outer, split->inner);
      if (const auto* merge = std::get_if<Merge>(&node.op))
        parts(merge->axis, merge->outer, merge->inner);
    }
  }

  std::vector<int> key(const std::string& axis) const {
    std::vector<int> sides;
    std::string at = axis;
    // As many steps as there are axes at most: names may go in a circle.
    for (std::size_t step = 0; step <= parents_.size(); ++step) {
      auto found = parents_.find(at);
      if (found == parents_.end()) break;
      if (found->second.second != none) sides.insert(sides.begin(), found->second.second);
      at = found->second.first;
    }
    auto rank = ranks_.find(at);
    sides.insert(sides.begin(), rank == ranks_.end() ? 1000 : rank->second);
    return sides;
  }

 private:
  static constexpr int none = -1;
  std::map<std::string, int> ranks_;
  std::map<std::string, std::pair<std::string, int>> parents_;
};

}  // namespace

AxisNames storage_order(const Graph& graph, AxisNames axes, const AxisNames& tiles) {
  const StorageOrder order(graph, tiles);
  auto key = [&](const std::string& axis) {
    return std::pair(graph.axis(axis).extent.is_constant(), order.key(axis));
  };
  std::stable_sort(axes.begin(), axes.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return axes;
}

std::int64_t constant_elements(const Graph& graph, const AxisNames& axes) {
  std::int64_t count = 1;
  for (const auto& axis : axes) {
    const Extent& extent = graph.axis(axis).extent;
    if (extent.is_constant()) count *= extent.offset;
  }
  return count;
}

Analysis::Analysis(const Graph& of, const AxisNames& tiled)
    : graph(of), users(of.users()), tiles(tiled) {
  const std::size_t count = graph.nodes().size();
  running.resize(count);
  product.resize(count);
  matmul.resize(count);
  std::set<std::string> part_axes;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& node = graph.node(static_cast<int>(i));
    part_axes.insert(parts_of(static_cast<int>(i)));
    if (const auto* scan = std::get_if<Scan>(&node.op)) {
      running[i] = true;
      running_axes.insert(scan->axis);
    }
    if (const auto* cumsum = std::get_if<Cumsum>(&node.op);
        cumsum && (is_dynamic(cumsum->axis) || part_axes.count(cumsum->axis))) {
      running[i] = true;
      running_axes.insert(cumsum->axis);
    }
    if (const auto* split = std::get_if<Split>(&node.op); split && is_dynamic(split->axis))
      split_axes[split->outer] = {split->axis, split->inner};
    if (const auto* merge = std::get_if<Merge>(&node.op); merge && is_dynamic(merge->axis))
      split_axes[merge->outer] = {merge->axis, merge->inner};
  }
  for (const Axis& axis : graph.axes())
    if (!axis.extent.is_constant() || part_axes.count(axis.name) || contains(tiles, axis.name))
      outer.push_back(axis.name);
  for (std::size_t i = 0; i < count; ++i) {
    const Node& node = graph.node(static_cast<int>(i));
    const auto* contract = std::get_if<Contract>(&node.op);
    if (contract == nullptr || node.operands.size() != 2 || contract->sum.empty()) continue;
    const ContractAxes axes = contract_axes(graph, static_cast<int>(i));
    const bool floats = is_float(node.results[0].dtype);
    const bool parameter =
        is_parameter(graph, node.operands[0]) != is_parameter(graph, node.operands[1]);
    const bool over_dynamic = std::any_of(contract->sum.begin(), contract->sum.end(),
                                          [&](const auto& axis) { return is_dynamic(axis); });
    if (floats && axes.batch.empty() && (parameter || over_dynamic) &&
        constant_elements(graph, without(axes.left, outer)) >= least_free &&
        constant_elements(graph, without(axes.right, outer)) >= least_free) {
      product[i] = true;
      continue;
    }
    // An operand that carries a dynamic axis is wide along it.
    if (floats && axes.batch.empty() && parameter &&
        std::max(constant_elements(graph, axes.left), constant_elements(graph, axes.right)) >=
            least_free &&
        (std::any_of(axes.left.begin(), axes.left.end(),
                     [&](const auto& axis) { return is_dynamic(axis); }) ||
         std::any_of(axes.right.begin(), axes.right.end(),
                     [&](const auto& axis) { return is_dynamic(axis); }))) {
      product[i] = true;
      continue;
    }
    const AxisNames left = without(axes.left, outer);
    const AxisNames right = without(axes.right, outer);
    matmul[i] = floats && constant_elements(graph, left) > 1 && constant_elements(graph, right) > 1;
  }
  // Positions inside a chunk are never cut, under whatever name they go.
  for (const auto& [axis, parts] : split_axes) positions.insert(parts.inner);
  for (const Node& node : graph.nodes())
    if (const auto* rename = std::get_if<Rename>(&node.op); rename && positions.count(rename->from))
      positions.insert(rename->to);
  for (std::size_t i = 0; i < count; ++i) {
    if (!matmul[i]) continue;
    for (const auto& axis : contract_axes(graph, static_cast<int>(i)).batch)
      if (!contains(outer, axis) && !positions.count(axis)) outer.push_back(axis);
  }
}

bool Analysis::is_dynamic(const std::string& axis) const {
  return !graph.axis(axis).extent.is_constant();
}

AxisNames Analysis::summed(int node) const {
  const Op& op = graph.node(node).op;
  if (const auto* contract = std::get_if<Contract>(&op)) return contract->sum;
  if (const auto* reduce = std::get_if<Reduce>(&op)) return reduce->axes;
  return {};
}

const std::string& Analysis::running_axis(int node) const {
  const Op& op = graph.node(node).op;
  if (const auto* scan = std::get_if<Scan>(&op)) return scan->axis;
  return std::get<Cumsum>(op).axis;
}

bool Analysis::is_reverse(int node) const {
  const Op& op = graph.node(node).op;
  if (const auto* scan = std::get_if<Scan>(&op)) return scan->reverse;
  if (const auto* cumsum = std::get_if<Cumsum>(&op)) return cumsum->reverse;
  return false;
}

std::string Analysis::parts_of(int node) const {
  const Op& op = graph.node(node).op;
  if (const auto* scan = std::get_if<Scan>(&op)) return scan->parts;
  if (const auto* cumsum = std::get_if<Cumsum>(&op)) return cumsum->parts;
  return "";
}

bool Analysis::is_first_pass(int node) const {
  return !parts_of(node).empty() && !is_second_pass(node);
}

bool Analysis::is_second_pass(int node) const {
  if (parts_of(node).empty()) return false;
  const Op& op = graph.node(node).op;
  if (const auto* scan = std::get_if<Scan>(&op)) return scan->has_initial;
  return std::get<Cumsum>(op).has_initial;
}

}  // namespace krait
