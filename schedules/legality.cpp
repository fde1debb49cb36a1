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
  Judge(const Analysis& analysis, const Placement& placement, const Closure& closure,
        const std::vector<AxisMapping>& mapping)
      : analysis_(analysis),
        graph_(analysis.graph),
        placement_(placement),
        closure_(closure),
        mapping_(mapping) {
    for (const AxisMapping& mapped : mapping)
      if (mapped.kind != AxisMapping::Kind::grid) loops_.push_back(mapped.axis);
    for (int node : closure.nodes)
      if (depends_on_matmul(node)) dear_.insert(node);
  }

  Cuts run() {
    for (int number : closure_.nodes) {
      if (is_view(graph_.node(number).op)) judge_view(number);
      judge_axes(number);
      for (Value operand : graph_.node(number).operands)
        if (is_computed(operand)) judge_operand(operand, number);
      judge_order(number);
    }
    return std::move(cuts_);
  }

 private:
  bool is_mapped(const std::string& axis) const {
    return std::any_of(mapping_.begin(), mapping_.end(),
                       [&](const AxisMapping& mapped) { return mapped.axis == axis; });
  }
  bool is_computed(Value value) const {
    return closure_.has(value.node) && closure_.loads.count(value) == 0;
  }

  /// The value must be read from memory by the node.
  void part(Value value, int reader) {
    if (placement_.memory_view(value))
      cuts_.apart.insert(reader);
    else
      cuts_.kept.insert(value);
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
    if (std::holds_alternative<Merge>(node.op) || std::holds_alternative<Concat>(node.op)) {
      // Its parts are written to their places.
      for (int reader : analysis_.users[number])
        if (closure_.has(reader)) part({number, 0}, reader);
    } else {
      for (Value operand : node.operands) part(operand, number);
    }
  }

  /// The node must be computed by itself.
  void part_alone(int number) {
    for (Value operand : graph_.node(number).operands)
      if (is_computed(operand)) part(operand, number);
    for (std::size_t r = 0; r < graph_.node(number).results.size(); ++r)
      if (const Value result{number, static_cast<int>(r)}; !placement_.memory_view(result))
        cuts_.kept.insert(result);
    cuts_.apart.insert(number);
  }

  /// An axis of no constant size that is not mapped cannot be on chip; one that something on chip
  /// runs along must be.
  void judge_axes(int number) {
    const auto fits = [&](const AxisNames& axes) {
      return std::all_of(axes.begin(), axes.end(), [&](const auto& axis) {
        return !analysis_.is_dynamic(axis) || is_mapped(axis);
      });
    };
    const Node& node = graph_.node(number);
    const auto* pairs = std::get_if<PairSum>(&node.op);
    const bool cumsum = std::holds_alternative<Cumsum>(node.op) && !analysis_.running[number];
    if ((pairs != nullptr && is_mapped(pairs->axis)) ||
        (cumsum && is_mapped(analysis_.running_axis(number))))
      part_alone(number);
    if (!std::all_of(node.operands.begin(), node.operands.end(),
                     [&](Value operand) { return fits(graph_.type(operand).axes); }) ||
        !std::all_of(node.results.begin(), node.results.end(),
                     [&](const Type& type) { return fits(type.axes); }))
      part_alone(number);
  }

  void judge_operand(Value operand, int reader) {
    // Each grid point has a part of the sum only.
    const AxisNames summed = analysis_.summed(operand.node);
    bool elsewhere = std::any_of(mapping_.begin(), mapping_.end(), [&](const AxisMapping& mapped) {
      return mapped.kind != AxisMapping::Kind::serial && contains(summed, mapped.axis);
    });
    // What runs is carried by the loop along its axis, the same way.
    if (analysis_.running[operand.node]) {
      const std::string axis = analysis_.running_axis(operand.node);
      elsewhere |= std::none_of(mapping_.begin(), mapping_.end(), [&](const AxisMapping& mapped) {
        const bool parts = mapped.kind == AxisMapping::Kind::blocked;
        return mapped.kind != AxisMapping::Kind::grid && mapped.axis == axis &&
               mapped.reverse == analysis_.is_reverse(operand.node) &&
               analysis_.parts_of(operand.node) == (parts ? mapped.block_axis : "");
      });
    }
    if (elsewhere) part(operand, reader);
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
      // With its products in memory the reader may do without a loop.
      bool dear = false;
      for (Value other : node.operands)
        if (other != operand) dear |= keep_dear(other);
      if (!dear) part(operand, number);
    }
    judge_sum(number, place.level);
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const AxisNames& result = node.results[r].axes;
      // Sums over loops, and what a running node leaves.
      const bool ends = level_of(result) < level_of(axes);
      ready_[{number, static_cast<int>(r)}] = ends ? Ready{level_of(result), true} : place;
    }
  }

  /// A sum over loops is taken in place, inside of the loops that its result varies in: these must
  /// be the outer ones, and no further loop may repeat it.
  void judge_sum(int number, int level) {
    const AxisNames summed = analysis_.summed(number);
    const AxisNames& result = graph_.node(number).results[0].axes;
    if (level_of(summed) == 0) return;
    for (int i = 0; i < level; ++i) {
      const std::string& loop = loops_[static_cast<std::size_t>(i)];
      const bool varies = contains(result, loop);
      if (varies ? sums_before(summed, i) : !contains(summed, loop)) return part_alone(number);
    }
  }
  bool sums_before(const AxisNames& summed, int loop) const {
    for (int i = 0; i < loop; ++i)
      if (contains(summed, loops_[static_cast<std::size_t>(i)])) return true;
    return false;
  }

  /// Keeps the fewest values from which `value` can be made again without products; whether there
  /// are any.
  bool keep_dear(Value value) {
    if (!is_computed(value) || dear_.count(value.node) == 0) return false;
    const Node& node = graph_.node(value.node);
    std::set<Value> below;
    if (std::holds_alternative<Map>(node.op))
      for (Value operand : node.operands)
        if (is_computed(operand) && dear_.count(operand.node) != 0) below.insert(operand);
    if (below.size() == 1 && graph_.type(*below.begin()).axes == node.results[0].axes)
      return keep_dear(*below.begin());
    if (placement_.memory_view(value)) return false;
    cuts_.kept.insert(value);
    return true;
  }

  const Analysis& analysis_;
  const Graph& graph_;
  const Placement& placement_;
  const Closure& closure_;
  const std::vector<AxisMapping>& mapping_;
  AxisNames loops_;
  std::set<int> dear_;  // nodes on whose way from memory a product lies
  std::map<Value, Ready> ready_;
  Cuts cuts_;
};

}  // namespace

Cuts misplaced(const Analysis& analysis, const Placement& placement, const Closure& closure,
               const std::vector<AxisMapping>& mapping) {
  return Judge(analysis, placement, closure, mapping).run();
}

}  // namespace krait
