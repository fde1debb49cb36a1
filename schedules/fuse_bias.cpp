#include "schedules/fuse_bias.h"

#include <algorithm>
#include <optional>
#include <set>

namespace krait {
namespace {

/// The one kernel that reads the object, -1 where there are several or none.
int reader_of(const Plan& plan, int object) {
  std::set<int> readers;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    for_each_load(plan.kernels[k], [&](Value, const std::vector<View>& views) {
      for (const View& view : views)
        if (view.object == object) readers.insert(static_cast<int>(k));
    });
  return readers.size() == 1 ? *readers.begin() : -1;
}

/// Whether the axis runs along the last dim of the view's object alone, element by element.
bool side_by_side(const Plan& plan, const View& view, const std::string& axis) {
  const MemoryObject& object = plan.objects[static_cast<std::size_t>(view.object)];
  if (view.dims.empty() || object.strides.back() != 1) return false;
  const View::Dim& last = view.dims.back();
  const int dims = static_cast<int>(object.dims.size());
  return last.first == dims - 1 && last.index.constant == 0 && last.index.sizes.empty() &&
         last.index.terms == std::vector<std::pair<std::string, std::int64_t>>{{axis, 1}} &&
         last.extent == plan.graph.axis(axis).extent;
}

/// The vector, where kernel `reader` does nothing but add one to the result of the product.
std::optional<Value> added(const Plan& plan, const PlannedKernel& product,
                           const PlannedKernel& reader) {
  const Graph& graph = plan.graph;
  if (reader.kind != PlannedKernel::Kind::fused || reader.nodes.size() != 1 ||
      !reader.partials.empty() || !reader.remade.empty() || !reader.digits.empty() ||
      reader.stores.size() != 1 || reader.loads.size() != 2)
    return std::nullopt;
  const Node& node = graph.node(reader.nodes[0]);
  const auto* map = std::get_if<Map>(&node.op);
  if (map == nullptr || node.operands.size() != 2) return std::nullopt;
  Scalar sum;
  sum.finish(sum.apply(ScalarOp::add, sum.operand(0), sum.operand(1)));
  if (!(map->expression == sum)) return std::nullopt;
  const Value result{product.nodes[0], 0};
  if ((node.operands[0] == result) == (node.operands[1] == result)) return std::nullopt;
  const Value vector = node.operands[node.operands[0] == result ? 1 : 0];
  const AxisNames& axes = graph.type(vector).axes;
  const std::vector<Value>& operands = graph.node(product.nodes[0]).operands;
  if (axes.size() != 1 || !graph.axis(axes[0]).extent.is_constant() ||
      graph.type(result).axes.size() != node.results[0].axes.size())
    return std::nullopt;
  // All columns: what the operand that has the axis brings to the result.
  for (const auto& axis : graph.type(result).axes)
    for (const Value operand : operands)
      if (contains(graph.type(operand).axes, axes[0]) && contains(graph.type(operand).axes, axis) &&
          axis != axes[0])
        return std::nullopt;
  const auto loaded = reader.loads.find(vector);
  if (loaded == reader.loads.end() || loaded->second.size() != 1) return std::nullopt;
  const DType dtype = node.results[0].dtype;
  for (const View* view : {&loaded->second[0], &reader.stores[0].second})
    if (plan.objects[static_cast<std::size_t>(view->object)].dtype != dtype ||
        !side_by_side(plan, *view, axes[0]))
      return std::nullopt;
  if (loaded->second[0].dims.size() != 1) return std::nullopt;
  return vector;
}

/// Takes kernel `gone` away, whose work kernel `number` before it does.
void drop(Plan& plan, int number, int gone) {
  plan.kernels.erase(plan.kernels.begin() + gone);
  for (MemoryObject& object : plan.objects)
    for (int* use : {&object.first_kernel, &object.last_kernel}) {
      if (*use == gone)
        *use = number;
      else if (*use > gone)
        --*use;
    }
}

}  // namespace

Value bias_of(const Graph& graph, const PlannedKernel& kernel) {
  const std::vector<Value>& operands = graph.node(kernel.nodes.at(1)).operands;
  return operands[operands[0] == Value{kernel.nodes[0], 0} ? 1 : 0];
}

Plan fuse_bias(Plan plan, const std::function<bool(const Plan&, const PlannedKernel&)>& library) {
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    PlannedKernel& product = plan.kernels[k];
    if (product.kind != PlannedKernel::Kind::product || product.stores.size() != 1) continue;
    const int object = product.stores[0].second.object;
    MemoryObject& between = plan.objects[static_cast<std::size_t>(object)];
    if (between.kind != MemoryObject::Kind::temporary || !library(plan, product)) continue;
    const int at = reader_of(plan, object);
    if (at <= static_cast<int>(k)) continue;
    const PlannedKernel& reader = plan.kernels[static_cast<std::size_t>(at)];
    const std::optional<Value> vector = added(plan, product, reader);
    // What it adds, and where it stores, must be there by now.
    if (!vector || !std::holds_alternative<Input>(plan.graph.node(vector->node).op)) continue;
    const int stored = reader.stores[0].second.object;
    const MemoryObject& to = plan.objects[static_cast<std::size_t>(stored)];
    if (to.first_kernel < at) continue;
    // A state may be written over what kernels between the two still read.
    const auto& states = plan.graph.states();
    if (std::any_of(states.begin(), states.end(),
                    [&](const StatePair& pair) { return pair.out == to.name; }))
      continue;
    product.nodes.push_back(reader.nodes[0]);
    product.loads[*vector] = reader.loads.at(*vector);
    product.stores = reader.stores;
    product.name = reader.name;
    between.first_kernel = between.last_kernel = -1;
    drop(plan, static_cast<int>(k), at);
  }
  return plan;
}

}  // namespace krait
