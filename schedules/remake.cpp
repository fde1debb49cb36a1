#include "schedules/remake.h"

#include <algorithm>
#include <optional>

#include "dsl/error.h"
#include "schedules/legality.h"

namespace krait {
namespace {

using Kind = AxisMapping::Kind;

class Thinner {
 public:
  Thinner(const Analysis& analysis, Placement& placement, const std::vector<Chain>& chains,
          std::int64_t positions, std::vector<Group>& groups)
      : analysis_(analysis),
        graph_(analysis.graph),
        placement_(placement),
        chains_(chains),
        positions_(positions),
        groups_(groups) {}

  void run() {
    for (Group& group : groups_) {
      if (group.chain < 0) continue;
      for (int node : chains_[static_cast<std::size_t>(group.chain)].nodes)
        if (std::holds_alternative<Scan>(graph_.node(node).op)) consider(node, group);
    }
  }

 private:
  /// Chunks between two states that are kept.
  std::int64_t interval(const std::string& chunks) const {
    auto split = analysis_.split_axes.find(chunks);
    if (split == analysis_.split_axes.end()) return 1;
    const std::int64_t chunk = graph_.axis(split->second.inner).extent.offset;
    return (positions_ + chunk - 1) / chunk;
  }

  void consider(int scan, Group& writer) {
    const Value state{scan, 0};
    const Scan& op = std::get<Scan>(graph_.node(scan).op);
    if (!placement_.is_stored(state) || placement_.stored().at(state).size() != 1) return;
    const int object = placement_.stored().at(state)[0].object;
    if (placement_.objects()[object].kind != MemoryObject::Kind::temporary) return;
    const std::int64_t every = interval(op.axis);
    if (every < 2 || whole_.count(object) || read_by_products(object)) return;
    std::vector<std::pair<Group*, Remade>> readers;
    for (Group& group : groups_) {
      if (!reads(group.closure.loads, object)) continue;
      std::optional<Remade> remade = again(scan, object, group);
      if (!remade) return;
      remade->every = every;
      readers.emplace_back(&group, std::move(*remade));
    }
    if (readers.empty()) return;
    const Digit run{name_of(op, "_run"), op.axis, every, false, op.reverse};
    const Digit rest{name_of(op, "_rest"), op.axis, every, true, op.reverse};
    placement_.thin(state, op.axis, Axis(run.name, graph_.axis(op.axis).extent.ceil_div(every)),
                    rest.name);
    thin_.insert(object);
    add(run, writer);
    add(rest, writer);
    for (auto& [group, remade] : readers) {
      add(run, *group);
      group->closure.loads[state] = *placement_.memory_view(state);
      for (const auto& [value, views] : remade.loads)
        for (const View& view : views) whole_.insert(view.object);
      group->remade.push_back(std::move(remade));
    }
  }

  bool reads(const std::map<Value, std::vector<View>>& loads, int object) const {
    return std::any_of(loads.begin(), loads.end(), [&](const auto& load) {
      return std::any_of(load.second.begin(), load.second.end(),
                         [&](const View& view) { return view.object == object; });
    });
  }

  bool read_by_products(int object) const {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!analysis_.product[i]) continue;
      for (Value operand : graph_.node(static_cast<int>(i)).operands)
        if (reads({{operand, *placement_.memory_view(operand)}}, object)) return true;
    }
    return false;
  }

  /// How the group makes the state again, none where it cannot.
  std::optional<Remade> again(int number, int object, const Group& group) const {
    const Value state{number, 0};
    const Node& node = graph_.node(number);
    const Scan& scan = std::get<Scan>(node.op);
    for (const auto& [value, views] : group.closure.loads)
      if (value != state && reads({{value, views}}, object)) return {};
    const AxisNames& axes = graph_.type(state).axes;
    AxisNames loops;
    std::vector<AxisMapping> mapping;
    std::size_t level = 0;
    for (const AxisMapping& mapped : group.mapping) {
      const bool mine = contains(axes, mapped.axis);
      // A grid point at each position of an axis that the state lacks would repeat it.
      if (mapped.kind == Kind::grid && !mine) return {};
      if (mapped.axis == scan.axis && mapped.kind != Kind::grid) return {};
      if (mapped.axis != scan.axis) mapping.push_back(mapped);
      if (mapped.kind == Kind::grid) continue;
      loops.push_back(mapped.axis);
      if (mine) level = loops.size();
    }
    if (mapping.size() == group.mapping.size()) return {};
    std::vector<Value> operands{node.operands[0], node.operands[1]};
    if (scan.has_reset) operands.push_back(node.operands.back());
    const Closure closure = close(analysis_, placement_, operands, {});
    for (int inner : closure.nodes)
      if (analysis_.running[inner]) return {};
    const std::set<std::string> needed = closure.axes(graph_);
    for (std::size_t l = 0; l < loops.size(); ++l)
      if (l >= level && needed.count(loops[l])) return {};
    for (int thin : thin_)
      if (reads(closure.loads, thin)) return {};
    if (reads(closure.loads, object)) return {};
    mapping.resize(mapping.size() - (loops.size() - level));
    mapping.push_back({scan.axis, Kind::serial, scan.reverse, 1, ""});
    if (!misplaced(analysis_, placement_, closure, mapping).empty()) return {};
    return Remade{number, 1, closure.nodes, closure.loads};
  }

  std::string name_of(const Scan& scan, const std::string& what) const {
    std::string name = scan.axis + what + (scan.reverse ? "_back" : "");
    while (graph_.has_axis(name)) name += '_';
    return name;
  }

  static void add(const Digit& digit, Group& group) {
    if (std::none_of(group.digits.begin(), group.digits.end(),
                     [&](const Digit& other) { return other.name == digit.name; }))
      group.digits.push_back(digit);
  }

  const Analysis& analysis_;
  const Graph& graph_;
  Placement& placement_;
  const std::vector<Chain>& chains_;
  std::int64_t positions_;
  std::vector<Group>& groups_;
  std::set<int> thin_;   // objects that are kept at intervals
  std::set<int> whole_;  // objects that states are made again from
};

}  // namespace

void thin_states(const Analysis& analysis, Placement& placement, const std::vector<Chain>& chains,
                 std::int64_t positions, std::vector<Group>& groups) {
  Thinner(analysis, placement, chains, positions, groups).run();
}

}  // namespace krait
