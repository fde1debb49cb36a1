#include "schedules/legality.h"

#include <algorithm>
#include <map>

#include "schedules/view.h"

namespace krait {
namespace {

/// At which depth of the loops a value is there: after `level` of them have been entered, or once
/// the next one has ended.
struct Ready {
  int level = 0;
  bool after = false;
};

class Judge {
 public:
  Judge(const Analysis& analysis, const Closure& closure, const std::vector<AxisMapping>& mapping)
      : analysis_(analysis), graph_(analysis.graph), closure_(closure), mapping_(mapping) {
    for (const AxisMapping& mapped : mapping)
      if (mapped.kind != AxisMapping::Kind::grid) loops_.push_back(mapped.axis);
    for (int node : closure.nodes)
      if (depends_on_matmul(node)) dear_.insert(node);
  }

  std::set<Value> run() {
    for (int number : closure_.nodes) {
      if (is_view(graph_.node(number).op)) judge_view(number);
      judge_order(number);
    }
    return std::move(found_);
  }

 private:
  bool is_mapped(const std::string& axis) const {
    return std::any_of(mapping_.begin(), mapping_.end(),
                       [&](const AxisMapping& mapped) { return mapped.axis == axis; });
  }
  bool is_computed(Value value) const {
    return closure_.has(value.node) && closure_.loads.count(value) == 0;
  }

  bool depends_on_matmul(int number) const {
    if (analysis_.matmul[number]) return true;
    const auto& operands = graph_.node(number).operands;
    return std::any_of(operands.begin(), operands.end(), [&](Value operand) {
      return is_computed(operand) && dear_.count(operand.node) != 0;
    });
  }

  void judge_view(int number) {
    const Node& node = graph_.node(number);
    const AxisNames& after = node.results[0].axes;
    const auto* shift = std::get_if<Shift>(&node.op);
    const bool slice = std::holds_alternative<Slice>(node.op);
    bool moves = shift != nullptr && is_mapped(shift->axis);
    for (Value operand : node.operands) {
      const AxisNames& before = graph_.type(operand).axes;
      for (const auto& axis : before) {
        // Of a single position a slice takes the one that the kernel stands at.
        const bool single = slice && graph_.axis(axis).extent == Extent::constant(1);
        moves |= is_mapped(axis) && !contains(after, axis) && !single;
      }
      if (node.operands.size() == 1)
        for (const auto& axis : after) moves |= is_mapped(axis) && !contains(before, axis);
    }
    if (const auto* concat = std::get_if<Concat>(&node.op)) moves |= is_mapped(concat->result);
    if (!moves) return;
    if (std::holds_alternative<Merge>(node.op) || std::holds_alternative<Concat>(node.op))
      found_.insert({number, 0});  // its parts are written to their places
    else
      for (Value operand : node.operands)
        if (!std::holds_alternative<Input>(graph_.node(operand.node).op)) found_.insert(operand);
  }

  int level_of(const AxisNames& axes) const {
    int level = 0;
    for (std::size_t i = 0; i < loops_.size(); ++i)
      if (contains(axes, loops_[i])) level = static_cast<int>(i) + 1;
    return level;
  }

  void judge_order(int number) {
    const Node& node = graph_.node(number);
    AxisNames axes = node.results[0].axes;
    for (Value operand : node.operands)
      for (const auto& axis : graph_.type(operand).axes) axes.push_back(axis);
    Ready place{level_of(axes), false};
    for (Value operand : node.operands)
      if (is_computed(operand)) place.level = std::max(place.level, ready_.at(operand).level);
    for (Value operand : node.operands) {
      if (!is_computed(operand)) continue;
      const Ready ready = ready_.at(operand);
      if (!ready.after) continue;
      if (ready.level == place.level) {
        place.after = true;
        continue;
      }
      found_.insert(operand);
      for (Value other : node.operands)
        if (other != operand) keep_dear(other);
    }
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const AxisNames& result = node.results[r].axes;
      // Sums over loops, and what a running node leaves.
      const bool ends = level_of(result) < level_of(axes);
      ready_[{number, static_cast<int>(r)}] = ends ? Ready{level_of(result), true} : place;
    }
  }

  /// The fewest values from which `value` can be made again without products.
  void keep_dear(Value value) {
    if (!is_computed(value) || dear_.count(value.node) == 0) return;
    const Node& node = graph_.node(value.node);
    std::set<Value> below;
    if (std::holds_alternative<Map>(node.op))
      for (Value operand : node.operands)
        if (is_computed(operand) && dear_.count(operand.node) != 0) below.insert(operand);
    if (below.size() == 1 && graph_.type(*below.begin()).axes == node.results[0].axes)
      keep_dear(*below.begin());
    else
      found_.insert(value);
  }

  const Analysis& analysis_;
  const Graph& graph_;
  const Closure& closure_;
  const std::vector<AxisMapping>& mapping_;
  AxisNames loops_;
  std::set<int> dear_;  // nodes on whose way from memory a product lies
  std::map<Value, Ready> ready_;
  std::set<Value> found_;
};

}  // namespace

std::set<Value> misplaced(const Analysis& analysis, const Closure& closure,
                          const std::vector<AxisMapping>& mapping) {
  return Judge(analysis, closure, mapping).run();
}

}  // namespace krait
