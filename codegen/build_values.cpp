// Where the values of a fused kernel are.
#include <algorithm>

#include "codegen/build_ops.h"
#include "dsl/error.h"
#include "schedules/view.h"

namespace krait {

Values::Values(Builder& builder) : builder_(builder) {
  for (int node : builder.kernel().nodes) {
    computed_.insert(node);
    for (Value operand : graph().node(node).operands) {
      auto& readers = readers_[operand];
      if (readers.empty() || readers.back() != node) readers.push_back(node);
    }
  }
}

std::optional<double> Values::literal(Value value) const {
  const auto* constant = std::get_if<Constant>(&graph().node(value.node).op);
  if (constant == nullptr) return std::nullopt;
  return constant->value;
}

int Values::readers(Value value) const {
  auto found = readers_.find(value);
  return found == readers_.end() ? 0 : static_cast<int>(found->second.size());
}

bool Values::is_stored(Value value) const {
  const PlannedKernel& kernel = builder_.kernel();
  return std::any_of(kernel.stores.begin(), kernel.stores.end(),
                     [&](const auto& store) { return store.first == value; }) ||
         std::any_of(kernel.partials.begin(), kernel.partials.end(),
                     [&](const Partial& partial) { return partial.value == value; });
}

Place Values::place_of_node(int number) {
  const Node& node = graph().node(number);
  AxisNames axes = node.results[0].axes;
  for (Value operand : node.operands)
    for (const auto& axis : graph().type(operand).axes) axes.push_back(axis);
  Place place{builder_.level_of(axes), false};
  for (Value operand : node.operands) {
    if (!is_computed(operand)) continue;
    const Place ready = this->place(operand);
    if (ready.level > place.level) place = ready;
    if (ready.level == place.level && ready.after) place.after = true;
    KRAIT_ASSERT(ready.level == place.level || !ready.after, "kernel ", builder_.kernel().name,
                 ": node ", number, " needs ", operand.node, " before its loop has ended");
  }
  return place;
}

Place Values::place(Value value) const {
  auto found = places_.find(value);
  KRAIT_ASSERT(found != places_.end(), "value ", value.node, " is read before it is there");
  return found->second;
}

void Values::define(Value value, int buffer, Place place) {
  buffers_[value] = buffer;
  places_[value] = place;
}

int Values::on_chip(Value value) {
  if (auto found = buffers_.find(value); found != buffers_.end()) return found->second;
  if (const Remade* again = remade(value)) {
    build_remade(*this, *again);
    return buffers_.at(value);
  }
  const Type& type = graph().type(value);
  const int buffer = builder_.tile(graph().label(value), type.dtype, type.axes);
  const std::vector<int> domain = builder_.vars(builder_.tile_axes(type.axes));
  const Place place{builder_.level_of(type.axes), false};
  if (auto constant = literal(value)) {
    builder_.add(place, Fill{domain, builder_.access(buffer), *constant});
  } else {
    auto load = builder_.kernel().loads.find(value);
    KRAIT_ASSERT(load != builder_.kernel().loads.end(), "value ", value.node, " of kernel ",
                 builder_.kernel().name, " is neither loaded nor computed");
    for (const View& view : load->second)
      builder_.add(place, Copy{domain, builder_.access(buffer), builder_.access(view, false),
                               view.fill, view.keep});
  }
  define(value, buffer, place);
  return buffer;
}

const Remade* Values::remade(Value value) const {
  for (const Remade& again : builder_.kernel().remade)
    if (value == Value{again.scan, 0}) return &again;
  return nullptr;
}

bool Values::reads_elementwise_only(Value value) const {
  auto found = readers_.find(value);
  if (found == readers_.end()) return true;
  return std::all_of(found->second.begin(), found->second.end(), [&](int node) {
    const Op& op = graph().node(node).op;
    return std::holds_alternative<Map>(op) || std::holds_alternative<Reduce>(op);
  });
}

Access Values::operand(Value value) {
  auto load = builder_.kernel().loads.find(value);
  if (load != builder_.kernel().loads.end() && !buffers_.count(value) && load->second.size() == 1 &&
      load->second[0].fill == 0 && remade(value) == nullptr && readers(value) <= 2 &&
      reads_elementwise_only(value))
    return builder_.access(load->second[0], false);
  return builder_.access(on_chip(value));
}

Access Values::partial_access(const Partial& partial) {
  std::vector<Index> index;
  for (const auto& axis : partial.over)
    index.push_back(
        Index::variable(builder_.has_parts(axis) ? builder_.part_var(axis) : builder_.var(axis)));
  for (const auto& axis : graph().type(partial.value).axes)
    index.push_back(Index::variable(builder_.var(axis)));
  return builder_.access(partial.object, index, true);
}

Access Values::result(Value value, Place place) {
  // A value that nothing here reads and that goes to one place is written there at once. Sums over
  // a loop are not: they are kept on chip until the loop has ended.
  const PlannedKernel& kernel = builder_.kernel();
  const auto stores = std::count_if(kernel.stores.begin(), kernel.stores.end(),
                                    [&](const auto& store) { return store.first == value; });
  if (readers(value) == 0 && stores == 1 &&
      std::holds_alternative<Map>(graph().node(value.node).op)) {
    for (const auto& [stored, view] : kernel.stores)
      if (stored == value) {
        direct_results_.insert(value);
        return builder_.access(view, true);
      }
  }
  const Type& type = graph().type(value);
  const int buffer = builder_.tile(graph().label(value), type.dtype, type.axes);
  define(value, buffer, place);
  return builder_.access(buffer);
}

void Values::store(Value value) {
  if (direct_results_.count(value)) return;
  const PlannedKernel& kernel = builder_.kernel();
  if (!is_stored(value)) return;
  const Type& type = graph().type(value);
  const std::vector<int> domain = builder_.vars(builder_.tile_axes(type.axes));
  const int buffer = on_chip(value);
  for (const auto& [stored, view] : kernel.stores)
    if (stored == value)
      builder_.add(place(value),
                   Copy{domain, builder_.access(view, true), builder_.access(buffer), 0, false});
  for (const Partial& partial : kernel.partials)
    if (partial.value == value)
      builder_.add(place(value),
                   Copy{domain, partial_access(partial), builder_.access(buffer), 0, false});
}

void Values::copy_through(Value value, const View& view) {
  const Type& type = graph().type(value);
  const std::vector<int> domain = builder_.vars(builder_.tile_axes(type.axes));
  const Place place{builder_.level_of(type.axes), false};
  if (auto constant = literal(value)) {
    builder_.add(place, Fill{domain, builder_.access(view, true), *constant});
    return;
  }
  builder_.add(
      place, Copy{domain, builder_.access(view, true), builder_.access(on_chip(value)), 0, false});
}

void Values::run_deferred() {
  // Later nodes first: they may read the state of an earlier one as it was before this turn.
  for (auto node = deferred_.rbegin(); node != deferred_.rend(); ++node) node->second();
  deferred_.clear();
}

}  // namespace krait
