// Second stages: partial sums, added up in the order of their axes, or the largest of partial
// maxima.
#include <limits>

#include "codegen/build_ops.h"
#include "dsl/error.h"

namespace krait {

namespace {

/// The partials of one value along the axes that are loops, tiles or the grid here, into `buffer`.
ReduceTile add_up(const Plan& plan, const Partial& partial, Builder& builder, int buffer) {
  const MemoryObject& memory = plan.objects[partial.object];
  const Type& type = plan.graph.type(partial.value);
  ReduceTile sum;
  if (is_maximum(plan.graph, partial.value)) sum.kind = ReduceTile::Kind::max;
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
  sum.destinations = {builder.access(buffer)};
  sum.accumulate = true;
  return sum;
}

}  // namespace

BuiltKernel build_finish(const Plan& plan, const PlannedKernel& kernel) {
  const Partial& first = kernel.partials.at(0);
  const MemoryObject& memory = plan.objects[first.object];
  const AxisNames& axes = plan.graph.type(first.value).axes;
  Builder builder(plan, kernel);
  // A dynamic axis that remains is the grid; so is the first constant one, to have work for
  // threads.
  std::vector<AxisMapping> mapping;
  bool cut = false;
  for (const auto& axis : axes) {
    const bool dynamic = !plan.graph.axis(axis).extent.is_constant();
    if (dynamic || !cut) mapping.push_back({axis, AxisMapping::Kind::grid, false, 1, ""});
    cut |= !dynamic;
  }
  for (const auto& axis : first.over)
    if (plan.graph.has_axis(axis) && !plan.graph.axis(axis).extent.is_constant() &&
        memory.dims[&axis - first.over.data()].name == axis)
      mapping.push_back({axis, AxisMapping::Kind::serial, false, 1, ""});
  builder.map_axes(mapping);

  for (const Partial& partial : kernel.partials) {
    const DType dtype = plan.graph.type(partial.value).dtype;
    const int buffer = builder.tile("sum", dtype, axes);
    ReduceTile sum = add_up(plan, partial, builder, buffer);
    const std::vector<int> domain = sum.domain;
    const double start =
        is_maximum(plan.graph, partial.value) ? -std::numeric_limits<double>::infinity() : 0;
    builder.add({0, false}, Fill{domain, builder.access(buffer), start});
    builder.add({static_cast<int>(builder.loops().size()), false}, std::move(sum));
    for (const auto& [value, view] : kernel.stores)
      if (value == partial.value)
        builder.add({0, true},
                    Copy{domain, builder.access(view, true), builder.access(buffer), 0, false});
  }
  return builder.finish();
}

}  // namespace krait
