// Second stages: partial sums, added up in the order of their axes, or the largest of partial
// maxima.
#include <limits>

#include "codegen/build_ops.h"
#include "dsl/error.h"

namespace krait {

BuiltKernel build_finish(const Plan& plan, const PlannedKernel& kernel) {
  const Partial& partial = kernel.partials.at(0);
  const MemoryObject& memory = plan.objects[partial.object];
  const Type& type = plan.graph.type(partial.value);
  Builder builder(plan, kernel);
  // A dynamic axis that remains is the grid; so is the first constant one, to have work for
  // threads.
  std::vector<AxisMapping> mapping;
  bool cut = false;
  for (const auto& axis : type.axes) {
    const bool dynamic = !plan.graph.axis(axis).extent.is_constant();
    if (dynamic || !cut) mapping.push_back({axis, AxisMapping::Kind::grid, false, 1, ""});
    cut |= !dynamic;
  }
  for (const auto& axis : partial.over)
    if (plan.graph.has_axis(axis) && !plan.graph.axis(axis).extent.is_constant() &&
        memory.dims[&axis - partial.over.data()].name == axis)
      mapping.push_back({axis, AxisMapping::Kind::serial, false, 1, ""});
  builder.map_axes(mapping);

  const auto* reduce = std::get_if<Reduce>(&plan.graph.node(partial.value.node).op);
  const bool max = reduce != nullptr && reduce->kind == Reduce::Kind::max;
  ReduceTile sum;
  if (max) sum.kind = ReduceTile::Kind::max;
  sum.compute = type.dtype;
  sum.domain = builder.vars(builder.tile_axes(type.axes));
  std::vector<Index> index;
  for (std::size_t i = 0; i < memory.dims.size(); ++i) {
    const Axis& dim = memory.dims[i];
    const bool over = i < partial.over.size();
    if (!over || builder.is_mapped(dim.name)) {
      index.push_back(Index::variable(builder.var(dim.name)));
      continue;
    }
    const int part = builder.program().add_var({dim.name, VarKind::tile, dim.extent});
    sum.reduced.push_back(part);
    index.push_back(Index::variable(part));
  }
  sum.operands = {builder.access(partial.object, index, false)};
  Scalar identity;
  identity.finish(identity.operand(0));
  sum.results = {identity};
  const int buffer = builder.tile("sum", type.dtype, type.axes);
  sum.destinations = {builder.access(buffer)};
  sum.accumulate = true;
  const std::vector<int> domain = sum.domain;
  const double start = max ? -std::numeric_limits<double>::infinity() : 0;
  builder.add({0, false}, Fill{domain, builder.access(buffer), start});
  builder.add({static_cast<int>(builder.loops().size()), false}, std::move(sum));
  for (const auto& [value, view] : kernel.stores)
    builder.add({0, true},
                Copy{domain, builder.access(view, true), builder.access(buffer), 0, false});
  return builder.finish();
}

}  // namespace krait
