#include "schedules/tile_states.h"

#include <algorithm>
#include <map>
#include <set>

#include "dsl/error.h"
#include "schedules/rebuild.h"

namespace krait {
namespace {

class Tiler {
 public:
  Tiler(const Graph& graph, const std::string& axis, std::int64_t size)
      : from_(graph), axis_(axis), size_(size) {
    to_.set_accumulator(graph.accumulator());
    outer_ = graph.fresh_axis_name(axis + "_tile");
    inner_ = graph.fresh_axis_name(axis + "_in");
    for (const Axis& known : graph.axes()) {
      to_.declare(known);
      if (known.name != axis) continue;
      to_.declare(Axis(outer_, known.extent.ceil_div(size)));
      to_.declare(Axis(inner_, size));
    }
  }

  Tiles run() {
    for (std::size_t i = 0; i < from_.nodes().size(); ++i) add(static_cast<int>(i));
    for (const Output& output : from_.outputs())
      to_.add_output(output.name, whole(output.value), output.order);
    for (const StatePair& state : from_.states()) to_.add_state(state.in, state.out);
    return {prune(to_), outer_};
  }

 private:
  bool varies(Value old) const { return contains(from_.type(old).axes, axis_); }

  /// Whether the op gives or takes the axis otherwise than elementwise, or as a sum.
  bool rearranges(const Op& op) const {
    if (std::holds_alternative<Input>(op) || std::holds_alternative<Gather>(op) ||
        std::holds_alternative<ScatterSum>(op))
      return true;
    if (std::holds_alternative<Contract>(op) || std::holds_alternative<Reduce>(op)) return false;
    return contains(named_axes(op), axis_);
  }

  void add(int number) {
    const Node& node = from_.node(number);
    const bool apart = rearranges(node.op);
    std::vector<Value> operands;
    for (Value operand : node.operands) operands.push_back(apart ? whole(operand) : tiled(operand));
    const int results = static_cast<int>(node.results.size());
    if (const auto* map = std::get_if<Map>(&node.op)) {
      keep(tiled_, {number, 0}, to_.map(over_tiles(map->expression), operands));
      return;
    }
    const int made = to_.add(apart ? node.op : over_tiles(node.op), operands);
    for (int r = 0; r < results; ++r) keep(apart ? whole_ : tiled_, {number, r}, {made, r});
  }

  Value whole(Value old) {
    if (auto found = whole_.find(old); found != whole_.end()) return found->second;
    const Value tiles = tiled_.at(old);
    if (!varies(old)) return tiles;
    return whole_[old] = {to_.add(Merge{outer_, inner_, axis_}, {tiles})};
  }

  Value tiled(Value old) {
    if (auto found = tiled_.find(old); found != tiled_.end()) return found->second;
    const Value all = whole_.at(old);
    if (!varies(old)) return all;
    return tiled_[old] = {to_.add(Split{axis_, outer_, inner_}, {all})};
  }

  AxisNames over_tiles(const AxisNames& axes) const {
    AxisNames result;
    for (const std::string& axis : axes) {
      result.push_back(axis == axis_ ? outer_ : axis);
      if (axis == axis_) result.push_back(inner_);
    }
    return result;
  }

  Op over_tiles(const Op& op) const {
    if (const auto* constant = std::get_if<Constant>(&op))
      return Constant{constant->value, constant->dtype, to_.sorted(over_tiles(constant->axes))};
    if (const auto* contract = std::get_if<Contract>(&op))
      return Contract{over_tiles(contract->sum)};
    if (const auto* reduce = std::get_if<Reduce>(&op))
      return Reduce{reduce->kind, over_tiles(reduce->axes)};
    return op;
  }

  /// With tile * size + position for the position along the axis.
  Scalar over_tiles(const Scalar& expression) const {
    const AxisNames read = expression.index_axes();
    if (!contains(read, axis_)) return expression;
    Scalar result;
    std::vector<int> made;
    for (ScalarNode node : expression.nodes()) {
      if (node.op == ScalarOp::index && node.axis == axis_) {
        const int start = result.apply(ScalarOp::mul, result.index(outer_),
                                       result.constant(static_cast<double>(size_)));
        made.push_back(result.apply(ScalarOp::add, start, result.index(inner_)));
        continue;
      }
      for (int& arg : node.args)
        if (arg >= 0) arg = made[static_cast<std::size_t>(arg)];
      made.push_back(result.add(node));
    }
    result.finish(made[static_cast<std::size_t>(expression.root_index())]);
    return result;
  }

  void keep(std::map<Value, Value>& form, Value old, Value made) {
    form[old] = made;
    const auto label = from_.labels().find(old.node);
    if (label == from_.labels().end() || label->second[old.result].empty()) return;
    if (!std::holds_alternative<Input>(to_.node(made.node).op))
      to_.set_label(made, label->second[old.result]);
  }

  const Graph& from_;
  Graph to_;
  std::string axis_, outer_, inner_;
  std::int64_t size_;
  std::map<Value, Value> whole_, tiled_;
};

}  // namespace

std::string tiled_axis(const Graph& graph) {
  std::vector<bool> has_state(graph.nodes().size());
  std::set<std::string> can, cannot;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.node(static_cast<int>(i));
    for (Value operand : node.operands)
      has_state[i] = has_state[i] || has_state[static_cast<std::size_t>(operand.node)];
    AxisNames summed;
    if (const auto* contract = std::get_if<Contract>(&node.op)) summed = contract->sum;
    if (const auto* reduce = std::get_if<Reduce>(&node.op)) summed = reduce->axes;
    if (has_state[i]) cannot.insert(summed.begin(), summed.end());
    // States are virtual until something sums over one of their axes.
    has_state[i] = has_state[i] && summed.empty();
    const auto* scan = std::get_if<Scan>(&node.op);
    if (scan == nullptr) continue;
    has_state[i] = true;
    for (const std::string& axis : without(node.results[0].axes, graph.type(node.operands[0]).axes))
      if (graph.axis(axis).extent.is_constant()) can.insert(axis);
  }
  std::string longest;
  for (const std::string& axis : can)
    if (cannot.count(axis) == 0 &&
        (longest.empty() || graph.axis(axis).extent.offset > graph.axis(longest).extent.offset))
      longest = axis;
  return longest;
}

std::int64_t tile_size(std::int64_t extent, std::int64_t most) {
  std::int64_t size = std::min(extent, most);
  while (extent % size != 0) --size;
  return size;
}

Tiles in_tiles(const Graph& graph, const std::string& axis, std::int64_t most) {
  if (axis.empty() || !graph.has_axis(axis)) return {graph, ""};
  const std::int64_t extent = graph.axis(axis).extent.offset;
  const std::int64_t size = tile_size(extent, most);
  if (size == extent) return {graph, ""};
  Tiles tiles = Tiler(graph, axis, size).run();
  verify(tiles.graph);
  return tiles;
}

}  // namespace krait
