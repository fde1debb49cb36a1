#include "schedules/placement.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait {
namespace {

bool is_zero(const Graph& graph, Value value) {
  const auto* constant = std::get_if<Constant>(&graph.node(value.node).op);
  return constant != nullptr && constant->value == 0;
}

std::vector<Axis> axes_of(const Graph& graph, const AxisNames& names) {
  std::vector<Axis> axes;
  for (const auto& name : names) axes.push_back(graph.axis(name));
  return axes;
}

/// Dense strides of the dims of constant size that have only such inside them; 0 for the others.
std::vector<std::int64_t> compiled_strides(const std::vector<Axis>& dims) {
  std::vector<std::int64_t> strides(dims.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (!dims[d].extent.is_constant()) break;
    strides[d] = stride;
    stride *= dims[d].extent.offset;
  }
  return strides;
}

}  // namespace

Placement::Placement(const Analysis& analysis)
    : analysis_(analysis), graph_(analysis.graph), padding_(analysis) {
  for (Value value : graph_.inputs()) {
    const Input& input = graph_.input_of(value);
    objects_.push_back({MemoryObject::Kind::input,
                        input.name,
                        input.dtype,
                        axes_of(graph_, input.order),
                        {},
                        -1,
                        -1});
    objects_.back().strides = compiled_strides(objects_.back().dims);
    lives_[value] = {whole(objects_.back(), static_cast<int>(objects_.size()) - 1)};
  }
  for (const Output& output : graph_.outputs()) {
    objects_.push_back({MemoryObject::Kind::output,
                        output.name,
                        graph_.type(output.value).dtype,
                        axes_of(graph_, output.order),
                        {},
                        -1,
                        -1});
    objects_.back().strides = compiled_strides(objects_.back().dims);
    place(output.value, whole(objects_.back(), static_cast<int>(objects_.size()) - 1));
  }
}

int Placement::add_temporary(const std::string& name, DType dtype, std::vector<Axis> dims) {
  objects_.push_back({MemoryObject::Kind::temporary, name, dtype, std::move(dims), {}, -1, -1});
  objects_.back().strides = compiled_strides(objects_.back().dims);
  return static_cast<int>(objects_.size()) - 1;
}

std::vector<Axis> Placement::storage_axes(Value value) const {
  std::vector<Axis> dims;
  const AxisNames& axes = graph_.type(value).axes;
  const AxisNames ordered = storage_order(graph_, axes, analysis_.tiles);
  AxisNames inner;
  for (const auto& axis : axes) {
    auto split = analysis_.split_axes.find(axis);
    if (split != analysis_.split_axes.end() && contains(axes, split->second.inner) &&
        padding_.may_be_zero(value, split->second.inner))
      inner.push_back(split->second.inner);
  }
  auto add = [&](bool outer, bool dynamic) {
    for (const auto& axis : ordered) {
      if (contains(inner, axis) || analysis_.is_dynamic(axis) != dynamic) continue;
      if (!dynamic && contains(analysis_.outer, axis) != outer) continue;
      auto split = analysis_.split_axes.find(axis);
      const bool whole_axis =
          split != analysis_.split_axes.end() && contains(inner, split->second.inner);
      dims.push_back(graph_.axis(whole_axis ? split->second.axis : axis));
    }
  };
  add(true, true);
  add(true, false);
  add(false, false);
  return dims;
}

void Placement::request(Value value) {
  if (!memory_view(value)) keep(value);
}

void Placement::keep(Value value) {
  if (lives_.count(value)) return;
  const std::vector<Axis> dims = storage_axes(value);
  const int object = add_temporary(graph_.label(value), graph_.type(value).dtype, dims);
  // The view of the value itself: a dim that stands for two axes is indexed by both.
  View view = whole(objects_[object], object);
  const AxisNames& axes = graph_.type(value).axes;
  for (auto& dim : view.dims)
    for (const auto& [outer, parts] : analysis_.split_axes)
      if (dim.index.terms[0].first == parts.axis && !contains(axes, parts.axis))
        dim.index.terms = {{outer, graph_.axis(parts.inner).extent.offset}, {parts.inner, 1}};
  live(value, view);
  place(value, view);
}

void Placement::thin(Value value, const std::string& axis, const Axis& run,
                     const std::string& rest) {
  std::vector<View>& places = stored_.at(value);
  KRAIT_ASSERT(places.size() == 1, graph_.label(value), " has ", places.size(), " places");
  View& view = places[0];
  MemoryObject& object = objects_[view.object];
  for (std::size_t d = 0; d < object.dims.size(); ++d) {
    if (object.dims[d].name != axis) continue;
    object.dims[d] = run;
    view.dims[d].extent = run.extent;
    view.dims[d].index.terms = {{run.name, 1}};
  }
  object.strides = compiled_strides(object.dims);
  live(value, view);
  View::Dim kept;
  kept.first = kept.last = -1;
  kept.extent = Extent::constant(1);
  kept.index.terms = {{rest, 1}};
  view.dims.push_back(kept);
}

void Placement::place(Value value, const View& view) {
  const Node& node = graph_.node(value.node);
  if (is_view(node.op) && !std::holds_alternative<Shift>(node.op)) {
    std::vector<View> below;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (auto operand = backward_view(graph_, value.node, static_cast<int>(i), view))
        below.push_back(*operand);
    if (below.size() == node.operands.size()) {
      for (std::size_t i = 0; i < below.size(); ++i) place(node.operands[i], below[i]);
      return;
    }
  }
  stored_[value].push_back(view);
  if (!lives_.count(value) && !std::holds_alternative<Constant>(node.op) &&
      shows_padding(value, view))
    live(value, view);
}

bool Placement::shows_padding(Value value, const View& view) const {
  const AxisNames& axes = graph_.type(value).axes;
  return std::all_of(axes.begin(), axes.end(), [&](const auto& axis) {
    auto split = analysis_.split_axes.find(axis);
    if (split == analysis_.split_axes.end() || !contains(axes, split->second.inner)) return true;
    // Positions of one dim are cut at its extent.
    const bool together =
        std::any_of(view.dims.begin(), view.dims.end(), [&](const View::Dim& dim) {
          const auto& terms = dim.index.terms;
          return std::any_of(terms.begin(), terms.end(),
                             [&](const auto& term) { return term.first == axis; }) &&
                 std::any_of(terms.begin(), terms.end(),
                             [&](const auto& term) { return term.first == split->second.inner; });
        });
    return !together || padding_.may_be_zero(value, split->second.inner);
  });
}

const std::vector<View>* Placement::memory_view(Value value) const {
  static const std::vector<View> nowhere;
  if (auto found = lives_.find(value); found != lives_.end()) return &found->second;
  if (is_zero(graph_, value)) return &nowhere;
  return source_view(value);
}

const std::vector<View>* Placement::source_view(Value value) const {
  if (!is_view(graph_.node(value.node).op)) return nullptr;
  auto known = shown_.find(value);
  if (known == shown_.end()) known = shown_.emplace(value, shown(value)).first;
  return known->second ? &*known->second : nullptr;
}

std::optional<std::vector<View>> Placement::shown(Value value) const {
  std::vector<std::vector<View>> operands;
  for (Value operand : graph_.node(value.node).operands) {
    const std::vector<View>* views = memory_view(operand);
    if (views == nullptr) return std::nullopt;
    operands.push_back(*views);
  }
  if (std::all_of(operands.begin(), operands.end(), [](const auto& v) { return v.empty(); }))
    return std::nullopt;
  return forward_view(graph_, value.node, operands);
}

void Placement::live(Value value, const View& view) {
  lives_[value] = {view};
  shown_.clear();
}

std::vector<Value> Placement::roots(Value value) const {
  const Node& node = graph_.node(value.node);
  if (stored_.count(value) || !is_view(node.op)) return {value};
  std::vector<Value> found;
  for (Value operand : node.operands)
    for (Value root : roots(operand)) found.push_back(root);
  return found;
}

std::vector<Value> Placement::written(const std::vector<Value>& roots,
                                      const std::vector<View>& views) const {
  std::vector<Value> found;
  for (Value root : roots) {
    auto stored = stored_.find(root);
    if (stored == stored_.end()) continue;
    const std::vector<View>& places = stored->second;
    const bool shown = std::any_of(places.begin(), places.end(), [&](const View& place) {
      return std::any_of(views.begin(), views.end(),
                         [&](const View& view) { return view.object == place.object; });
    });
    if (shown) found.push_back(root);
  }
  return found;
}

}  // namespace krait
