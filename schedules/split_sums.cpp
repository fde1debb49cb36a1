#include "schedules/split_sums.h"

#include <algorithm>
#include <bit>

namespace krait {
namespace {

constexpr std::int64_t block = 64;    // positions on either side that one block works on
constexpr std::int64_t enough = 256;  // blocks
constexpr std::int64_t most_parts = 16;

bool is_dynamic(const Graph& graph, const std::string& axis) {
  return !graph.axis(axis).extent.is_constant();
}

/// 1: the sum stays whole.
std::int64_t parts_of(const Plan& plan, const PlannedKernel& kernel) {
  const Node& node = plan.graph.node(kernel.nodes.at(0));
  std::int64_t blocks = 1;
  for (Value operand : node.operands) {
    std::int64_t positions = 1;
    for (const auto& axis : node.results[0].axes)
      if (contains(plan.graph.type(operand).axes, axis)) {
        if (is_dynamic(plan.graph, axis)) return 1;
        positions *= plan.graph.axis(axis).extent.offset;
      }
    blocks *= (positions + block - 1) / block;
  }
  const auto parts = static_cast<std::uint64_t>(std::max<std::int64_t>(1, enough / blocks));
  return std::min<std::int64_t>(most_parts, static_cast<std::int64_t>(std::bit_floor(parts)));
}

/// The axis of any length that is summed over and moves least in memory; "": none.
std::string axis_of(const Plan& plan, const PlannedKernel& kernel) {
  const Node& node = plan.graph.node(kernel.nodes.at(0));
  std::string best;
  std::size_t innermost = 0;
  const View& view = kernel.loads.at(node.operands[0]).at(0);
  for (std::size_t d = 0; d < view.dims.size(); ++d)
    for (const auto& [axis, factor] : view.dims[d].index.terms)
      if (contains(std::get<Contract>(node.op).sum, axis) && is_dynamic(plan.graph, axis) &&
          (best.empty() || d > innermost)) {
        best = axis;
        innermost = d;
      }
  return best;
}

/// Splits kernel `number` and puts its second stage behind it.
void split(Plan& plan, std::size_t number, const std::string& axis, std::int64_t parts) {
  PlannedKernel& kernel = plan.kernels[number];
  const Value value{kernel.nodes.at(0), 0};
  std::string part_axis = axis + "_part";
  while (plan.graph.has_axis(part_axis)) part_axis += '_';
  MemoryObject partials;
  partials.name = "partial." + plan.graph.label(value);
  partials.dtype = plan.graph.type(value).dtype;
  partials.dims = {Axis(part_axis, Extent::constant(parts))};
  for (const auto& name : plan.graph.type(value).axes)
    partials.dims.push_back(plan.graph.axis(name));
  partials.strides.assign(partials.dims.size(), 1);
  for (std::size_t d = partials.dims.size(); d-- > 1;)
    partials.strides[d - 1] = partials.strides[d] * partials.dims[d].extent.offset;
  const int at = static_cast<int>(number);
  for (MemoryObject& object : plan.objects)
    for (int* use : {&object.first_kernel, &object.last_kernel}) *use += *use > at ? 1 : 0;
  partials.first_kernel = at;
  partials.last_kernel = at + 1;

  PlannedKernel finish;
  finish.kind = PlannedKernel::Kind::finish;
  finish.name = "finish_" + kernel.name;
  finish.stores = std::move(kernel.stores);
  kernel.stores.clear();
  for (const auto& [stored, view] : finish.stores) {
    MemoryObject& object = plan.objects[static_cast<std::size_t>(view.object)];
    if (object.first_kernel == at) object.first_kernel = at + 1;
    object.last_kernel = std::max(object.last_kernel, at + 1);
  }
  kernel.mapping.push_back({axis, AxisMapping::Kind::blocked, false, parts, part_axis});
  kernel.partials = {{value, static_cast<int>(plan.objects.size()), {axis}}};
  finish.partials = kernel.partials;
  plan.objects.push_back(std::move(partials));
  plan.kernels.insert(plan.kernels.begin() + at + 1, std::move(finish));
}

}  // namespace

Plan split_sums(Plan plan,
                const std::function<bool(const Plan&, const PlannedKernel&)>& generated) {
  if (plan.schedule.math == MathKind::exact) return plan;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const PlannedKernel& kernel = plan.kernels[k];
    if (kernel.kind != PlannedKernel::Kind::product) continue;
    if (generated && !generated(plan, kernel)) continue;
    const std::int64_t parts = parts_of(plan, kernel);
    const std::string axis = axis_of(plan, kernel);
    if (parts < 2 || axis.empty()) continue;
    split(plan, k, axis, parts);
    ++k;
  }
  return plan;
}

}  // namespace krait
