#include "schedules/mapping.h"

#include <algorithm>

#include "dsl/error.h"
#include "schedules/view.h"

namespace krait {
namespace {

/// Parts of a blocked axis: bounds the number of partial sums whatever its size.
constexpr std::int64_t parts = 32;

using Kind = AxisMapping::Kind;

std::set<std::string> summed_axes(const Analysis& analysis, const Closure& closure) {
  std::set<std::string> summed;
  for (int node : closure.nodes)
    for (const auto& axis : analysis.summed(node)) summed.insert(axis);
  return summed;
}

/// Whether some node needs all positions inside a chunk together.
bool works_across(const Closure& closure, const Graph& graph, const std::string& inner) {
  return std::any_of(closure.nodes.begin(), closure.nodes.end(), [&](int node) {
    const Op& op = graph.node(node).op;
    if (const auto* cumsum = std::get_if<Cumsum>(&op)) return cumsum->axis == inner;
    if (const auto* sum = std::get_if<PairSum>(&op)) return sum->axis == inner;
    if (const auto* rename = std::get_if<Rename>(&op))
      return rename->from == inner || rename->to == inner;
    if (const auto* shift = std::get_if<Shift>(&op)) return shift->axis == inner;
    if (const auto* slice = std::get_if<Slice>(&op))
      return slice->axis == inner || slice->result == inner;
    if (const auto* concat = std::get_if<Concat>(&op))
      return concat->result == inner || contains(concat->axes, inner);
    return false;
  });
}

/// As Analysis::width, where whole chunks are on chip, many values at once.
constexpr std::int64_t narrow_tile = 4096;

/// Elements of a value that stand on chip together.
std::int64_t tile_elements(const Graph& graph, const std::vector<AxisMapping>& mapping,
                           const AxisNames& axes) {
  AxisNames tile;
  for (const auto& axis : axes)
    if (std::none_of(mapping.begin(), mapping.end(),
                     [&](const AxisMapping& mapped) { return mapped.axis == axis; }))
      tile.push_back(axis);
  return constant_elements(graph, tile);
}

/// Cuts constant axes that every value has and that nothing sums over into grid points, outer ones
/// first, until the largest tile has at most `limit` elements.
void shrink_tiles(const Analysis& analysis, const Closure& closure,
                  const std::set<std::string>& summed, std::int64_t limit,
                  std::vector<AxisMapping>& grid, const std::vector<AxisMapping>& loops) {
  const Graph& graph = analysis.graph;
  auto is_mapped = [&](const std::string& axis) {
    auto same = [&](const AxisMapping& mapped) { return mapped.axis == axis; };
    return std::any_of(grid.begin(), grid.end(), same) ||
           std::any_of(loops.begin(), loops.end(), same);
  };
  std::set<std::string> rearranged;
  for (int node : closure.nodes) {
    const Node& inside = graph.node(node);
    if (!is_view(inside.op)) continue;
    for (Value operand : inside.operands)
      for (const auto& axis : graph.type(operand).axes)
        if (!contains(inside.results[0].axes, axis)) rearranged.insert(axis);
    for (const auto& axis : inside.results[0].axes)
      if (!contains(graph.type(inside.operands[0]).axes, axis)) rearranged.insert(axis);
    if (const auto* shift = std::get_if<Shift>(&inside.op)) rearranged.insert(shift->axis);
  }
  auto largest = [&] {
    std::int64_t elements = 1;
    std::vector<AxisMapping> mapping = grid;
    mapping.insert(mapping.end(), loops.begin(), loops.end());
    auto measure = [&](const AxisNames& axes) {
      elements = std::max(elements, tile_elements(graph, mapping, axes));
    };
    for (int node : closure.nodes)
      for (const Type& type : graph.node(node).results) measure(type.axes);
    for (const auto& [value, views] : closure.loads) measure(graph.type(value).axes);
    return elements;
  };
  // Every sink must vary along a grid axis, or several grid points would write it.
  auto in_all_sinks = [&](const std::string& axis) {
    return std::all_of(closure.sinks.begin(), closure.sinks.end(),
                       [&](Value sink) { return contains(graph.type(sink).axes, axis); });
  };
  for (bool outer : {true, false})
    for (const Axis& axis : graph.axes()) {
      if (contains(analysis.outer, axis.name) != outer || !axis.extent.is_constant()) continue;
      if (is_mapped(axis.name) || summed.count(axis.name) || rearranged.count(axis.name) ||
          !in_all_sinks(axis.name) || works_across(closure, graph, axis.name))
        continue;
      if (largest() <= limit) return;
      grid.push_back({axis.name, Kind::grid, false, 1, ""});
    }
}

}  // namespace

bool has_matmul(const Analysis& analysis, const Closure& closure) {
  return std::any_of(closure.nodes.begin(), closure.nodes.end(),
                     [&](int node) { return analysis.matmul[node]; });
}

std::vector<AxisMapping> chain_mapping(const Analysis& analysis, const Chain& chain) {
  std::vector<AxisMapping> mapping;
  for (const auto& axis : chain.grid) mapping.push_back({axis, Kind::grid, false, 1, ""});
  if (chain.parts.empty())
    mapping.push_back({chain.axis, Kind::serial, chain.reverse, 1, ""});
  else
    mapping.push_back({chain.axis, Kind::blocked, chain.reverse,
                       analysis.graph.axis(chain.parts).extent.offset, chain.parts});
  return mapping;
}

std::vector<AxisMapping> local_mapping(const Analysis& analysis, const Closure& closure) {
  const Graph& graph = analysis.graph;
  const std::set<std::string> axes = closure.axes(graph);
  const std::set<std::string> summed = summed_axes(analysis, closure);
  std::vector<AxisMapping> grid;
  std::vector<AxisMapping> loops;
  if (has_matmul(analysis, closure)) {
    const auto map = [&](const Axis& axis) {
      const bool loop = summed.count(axis.name) && axis.extent.is_constant();
      (loop ? loops : grid).push_back({axis.name, loop ? Kind::serial : Kind::grid, false, 1, ""});
    };
    // Sums over tiles are taken for each point of the loops around.
    for (const bool tiles : {false, true})
      for (const Axis& axis : graph.axes())
        if (axes.count(axis.name) && contains(analysis.outer, axis.name) &&
            contains(analysis.tiles, axis.name) == tiles)
          map(axis);
  } else {
    bool across = false;
    for (const Axis& axis : graph.axes()) {
      if (axis.extent.is_constant() || !axes.count(axis.name)) continue;
      auto split = analysis.split_axes.find(axis.name);
      const bool has_inner = split != analysis.split_axes.end() && axes.count(split->second.inner);
      const bool inner_across = has_inner && works_across(closure, graph, split->second.inner);
      across |= inner_across;
      const bool time = analysis.split_axes.count(axis.name) != 0 ||
                        std::any_of(analysis.split_axes.begin(), analysis.split_axes.end(),
                                    [&](const auto& s) { return s.second.axis == axis.name; }) ||
                        analysis.is_running_axis(axis.name);
      const bool sums = summed.count(axis.name) != 0;
      if (sums && time)
        loops.push_back({axis.name, Kind::blocked, false, parts, axis.name + "_part"});
      else
        grid.push_back({axis.name, Kind::grid, false, 1, ""});
      if (!has_inner || inner_across) continue;
      // What is summed over chunks alone varies along the positions: these are no loop inside.
      const bool loop = summed.count(split->second.inner) != 0;
      (loop ? loops : grid)
          .push_back({split->second.inner, loop ? Kind::serial : Kind::grid, false, 1, ""});
    }
    const std::int64_t limit = across ? std::min(narrow_tile, analysis.width) : analysis.width;
    shrink_tiles(analysis, closure, summed, limit, grid, loops);
  }
  grid.insert(grid.end(), loops.begin(), loops.end());
  return grid;
}

std::set<Value> kept_for_room(const Analysis& analysis, const Placement& placement,
                              const Closure& closure, const std::vector<AxisMapping>& mapping) {
  const Graph& graph = analysis.graph;
  const auto is_wide = [&](Value value) {
    return tile_elements(graph, mapping, graph.type(value).axes) > analysis.width;
  };
  const auto is_computed = [&](Value value) {
    return closure.has(value.node) && closure.loads.count(value) == 0 &&
           !placement.is_stored(value);
  };
  // Axes of one position rearrange nothing.
  const auto rearranges = [&](const AxisNames& from, const AxisNames& to) {
    const AxisNames gone = without(from, to);
    return std::any_of(gone.begin(), gone.end(), [&](const auto& axis) {
      return graph.axis(axis).extent != Extent::constant(1);
    });
  };
  std::set<Value> kept;
  bool wide = false;
  for (int number : closure.nodes) {
    const Node& node = graph.node(number);
    for (std::size_t r = 0; r < node.results.size(); ++r)
      wide |= is_wide({number, static_cast<int>(r)});
    if (!analysis.summed(number).empty() && is_computed({number, 0}) &&
        std::any_of(node.operands.begin(), node.operands.end(), is_wide))
      kept.insert({number, 0});
    if (!is_view(node.op)) continue;
    for (Value operand : node.operands) {
      const AxisNames &from = graph.type(operand).axes, &to = node.results[0].axes;
      if (is_computed(operand) && (rearranges(from, to) || rearranges(to, from)))
        kept.insert(operand);
    }
  }
  return wide ? kept : std::set<Value>{};
}

std::vector<std::string> grouping_key(const Analysis& analysis, const Closure& closure) {
  std::vector<std::string> key;
  const bool matmul = has_matmul(analysis, closure);
  key.push_back(matmul ? "products" : "rows");
  if (matmul) {
    const std::set<std::string> axes = closure.axes(analysis.graph);
    for (const auto& axis : analysis.outer)
      if (axes.count(axis)) key.push_back(axis);
    std::sort(key.begin() + 1, key.end());
    return key;
  }
  for (const AxisMapping& mapped : local_mapping(analysis, closure))
    key.push_back(mapped.axis + (mapped.kind == Kind::grid ? "" : ":loop"));
  return key;
}

AxisNames partial_axes(const Analysis& analysis, const std::vector<AxisMapping>& mapping,
                       Value sink) {
  AxisNames over;
  for (const AxisMapping& mapped : mapping)
    if (mapped.kind != Kind::serial && contains(analysis.summed(sink.node), mapped.axis))
      over.push_back(mapped.axis);
  return over;
}

Axis partial_axis(const Graph& graph, const std::vector<AxisMapping>& mapping,
                  const std::string& axis) {
  for (const AxisMapping& mapped : mapping)
    if (mapped.axis == axis && mapped.kind == Kind::blocked)
      return Axis(mapped.block_axis, Extent::constant(mapped.blocks));
  return graph.axis(axis);
}

}  // namespace krait
