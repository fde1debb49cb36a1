#include "schedules/view.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait {
namespace {

void add_term(AxisIndex& index, const std::string& axis, std::int64_t factor) {
  for (auto& [name, old] : index.terms)
    if (name == axis) {
      old += factor;
      return;
    }
  index.terms.push_back({axis, factor});
}

/// Takes the term of `axis` out of the index and gives its factor, 0 where there is none.
std::int64_t take_term(AxisIndex& index, const std::string& axis) {
  auto found = std::find_if(index.terms.begin(), index.terms.end(),
                            [&](const auto& term) { return term.first == axis; });
  if (found == index.terms.end()) return 0;
  const std::int64_t factor = found->second;
  index.terms.erase(found);
  return factor;
}

bool is_plain(const AxisIndex& index, const std::string& axis) {
  return index.constant == 0 && index.sizes.empty() && index.terms.size() == 1 &&
         index.terms[0] == std::pair<std::string, std::int64_t>(axis, 1);
}

/// position along `axis` = outer * width + inner, in every index of the view.
void split_axis(View& view, const std::string& axis, const std::string& outer,
                const std::string& inner, std::int64_t width) {
  for (auto& dim : view.dims) {
    const std::int64_t factor = take_term(dim.index, axis);
    if (factor == 0) continue;
    add_term(dim.index, outer, factor * width);
    add_term(dim.index, inner, factor);
  }
}

/// The inverse: false where the two axes do not stand together as outer * width + inner.
bool merge_axes(View& view, const std::string& outer, const std::string& inner,
                const std::string& axis, std::int64_t width, const Extent& extent) {
  int outer_dim = -1;
  int inner_dim = -1;
  for (std::size_t d = 0; d < view.dims.size(); ++d) {
    AxisIndex& index = view.dims[d].index;
    AxisIndex rest = index;
    const std::int64_t outer_factor = take_term(rest, outer);
    const std::int64_t inner_factor = take_term(rest, inner);
    if (outer_factor == 0 && inner_factor == 0) continue;
    if (outer_factor != 0 && inner_factor != 0) {
      if (outer_factor != inner_factor * width) return false;
      index = rest;
      add_term(index, axis, inner_factor);
      continue;
    }
    if (!is_plain(index, outer_factor != 0 ? outer : inner)) return false;
    (outer_factor != 0 ? outer_dim : inner_dim) = static_cast<int>(d);
  }
  if (outer_dim < 0 && inner_dim < 0) return true;
  if (outer_dim < 0 || inner_dim < 0) return false;
  View::Dim& high = view.dims[outer_dim];
  const View::Dim& low = view.dims[inner_dim];
  if (high.first < 0 || low.first < 0) return false;
  if (inner_dim != outer_dim + 1 || low.first != high.last + 1) return false;
  if (low.extent != Extent::constant(width)) return false;
  high.last = low.last;
  high.extent = extent;
  high.index = {0, {{axis, 1}}, {}};
  view.dims.erase(view.dims.begin() + inner_dim);
  return true;
}

/// An offset along an axis: a constant and run-time sizes.
struct Offset {
  std::int64_t constant = 0;
  std::vector<Extent> sizes;
};

/// position along `from` = position along `to` (left out where empty) + sign * offset.
void shift_positions(View& view, const std::string& from, const std::string& to,
                     const Offset& offset, std::int64_t sign) {
  for (auto& dim : view.dims) {
    const std::int64_t factor = take_term(dim.index, from);
    if (factor == 0) continue;
    dim.index.constant += factor * sign * offset.constant;
    for (const Extent& size : offset.sizes) dim.index.sizes.push_back({size, factor * sign});
    if (!to.empty()) add_term(dim.index, to, factor);
  }
}

/// Where operand number `operand` of a Concat begins.
Offset offset_in(const Graph& graph, const Concat& concat, std::size_t operand) {
  Offset offset;
  for (std::size_t i = 0; i < operand; ++i) {
    const Extent& extent = graph.axis(concat.axes[i]).extent;
    if (extent.is_constant())
      offset.constant += extent.offset;
    else
      offset.sizes.push_back(extent);
  }
  return offset;
}

/// Sees to it that the bounds of the view's dims reject every position outside the extent of
/// `axis`, so that positions past its ends may be asked for.
void guard_bounds(const Graph& graph, View& view, const std::string& axis) {
  const Extent& extent = graph.axis(axis).extent;
  for (const auto& dim : view.dims)
    if (is_plain(dim.index, axis) && dim.extent == extent) return;
  view.dims.push_back({-1, -1, extent, {0, {{axis, 1}}, {}}});
}

/// Narrows the bounds of the view so that positions past the end of `axis` are out of them; false
/// where they cannot tell.
bool guard_padding(const Graph& graph, View& view, const std::string& axis) {
  const Extent& extent = graph.axis(axis).extent;
  for (auto& dim : view.dims) {
    AxisIndex rest = dim.index;
    const std::int64_t factor = take_term(rest, axis);
    if (factor == 0) continue;
    if (factor != 1 || !rest.terms.empty() || !rest.sizes.empty()) return false;
    if (extent.divisor != 1 || dim.extent != extent) return false;
    // position + constant < extent + constant; the dim's own end is the nearer one ahead.
    if (rest.constant < 0) dim.extent = extent.plus(rest.constant);
    return true;
  }
  return false;
}

/// Split, Merge, Slice, Rename; false where the result is no affine view.
bool forward_one(const Graph& graph, const Op& op, View& view) {
  if (const auto* split = std::get_if<Split>(&op)) {
    const Extent& extent = graph.axis(split->axis).extent;
    const std::int64_t width = graph.axis(split->inner).extent.offset;
    const bool padded = !extent.is_constant() || extent.offset % width != 0;
    if (padded && view.fill != 0) return false;
    if (padded && !guard_padding(graph, view, split->axis)) guard_bounds(graph, view, split->axis);
    split_axis(view, split->axis, split->outer, split->inner, width);
    return true;
  }
  if (const auto* merge = std::get_if<Merge>(&op))
    return merge_axes(view, merge->outer, merge->inner, merge->axis,
                      graph.axis(merge->inner).extent.offset, graph.axis(merge->axis).extent);
  if (const auto* rename = std::get_if<Rename>(&op)) {
    shift_positions(view, rename->from, rename->to, {}, 1);
    return true;
  }
  const auto& slice = std::get<Slice>(op);
  const Extent& extent = graph.axis(slice.axis).extent;
  Offset offset{slice.from_end ? -slice.start : slice.start, {}};
  if (slice.from_end && extent.is_constant()) offset.constant += extent.offset;
  if (slice.from_end && !extent.is_constant()) offset.sizes.push_back(extent);
  shift_positions(view, slice.axis, slice.result, offset, 1);
  return true;
}

}  // namespace

bool is_view(const Op& op) {
  return std::holds_alternative<Split>(op) || std::holds_alternative<Merge>(op) ||
         std::holds_alternative<Slice>(op) || std::holds_alternative<Rename>(op) ||
         std::holds_alternative<Concat>(op) || std::holds_alternative<Shift>(op);
}

View whole(const MemoryObject& memory, int object) {
  View view;
  view.object = object;
  for (std::size_t d = 0; d < memory.dims.size(); ++d) {
    const int dim = static_cast<int>(d);
    view.dims.push_back({dim, dim, memory.dims[d].extent, {0, {{memory.dims[d].name, 1}}, {}}});
  }
  return view;
}

std::optional<std::vector<View>> forward_view(const Graph& graph, int node,
                                              const std::vector<std::vector<View>>& operands) {
  const Op& op = graph.node(node).op;
  std::vector<View> result;
  if (const auto* concat = std::get_if<Concat>(&op)) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      for (View view : operands[i]) {
        if (view.fill != 0) return std::nullopt;
        guard_bounds(graph, view, concat->axes[i]);
        shift_positions(view, concat->axes[i], concat->result, offset_in(graph, *concat, i), -1);
        result.push_back(std::move(view));
      }
    if (result.empty()) return std::nullopt;
  } else if (const auto* shift = std::get_if<Shift>(&op)) {
    for (View view : operands[0]) {
      guard_bounds(graph, view, shift->axis);
      shift_positions(view, shift->axis, shift->axis, {shift->steps, {}}, -1);
      view.fill = shift->fill;
      result.push_back(std::move(view));
    }
    if (shift->has_state)
      for (View view : operands[1]) {
        guard_bounds(graph, view, shift->state_axis);
        const std::int64_t width = graph.axis(shift->state_axis).extent.offset;
        shift_positions(view, shift->state_axis, shift->axis, {width - shift->steps, {}}, 1);
        result.push_back(std::move(view));
      }
  } else {
    for (View view : operands[0]) {
      if (!forward_one(graph, op, view)) return std::nullopt;
      result.push_back(std::move(view));
    }
  }
  for (std::size_t i = 0; i < result.size(); ++i) result[i].keep = i > 0;
  return result;
}

std::optional<View> backward_view(const Graph& graph, int node, int operand, const View& result) {
  View view = result;
  const Op& op = graph.node(node).op;
  if (const auto* merge = std::get_if<Merge>(&op)) {
    split_axis(view, merge->axis, merge->outer, merge->inner,
               graph.axis(merge->inner).extent.offset);
    return view;
  }
  if (const auto* split = std::get_if<Split>(&op)) {
    if (!merge_axes(view, split->outer, split->inner, split->axis,
                    graph.axis(split->inner).extent.offset, graph.axis(split->axis).extent))
      return std::nullopt;
    return view;
  }
  if (const auto* rename = std::get_if<Rename>(&op)) {
    shift_positions(view, rename->to, rename->from, {}, 1);
    return view;
  }
  if (const auto* concat = std::get_if<Concat>(&op)) {
    shift_positions(view, concat->result, concat->axes[operand],
                    offset_in(graph, *concat, static_cast<std::size_t>(operand)), 1);
    return view;
  }
  return std::nullopt;
}

}  // namespace krait
