#include "codegen/build.h"

#include <algorithm>
#include <set>

#include "codegen/build_ops.h"
#include "codegen/builder.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// Products that a scan alone reads are accumulated into its state.
void fold_products(Values& values) {
  const Builder& builder = values.builder();
  const Graph& graph = builder.graph();
  for (int number : builder.kernel().nodes) {
    const Node& node = graph.node(number);
    const auto* scan = std::get_if<Scan>(&node.op);
    if (scan == nullptr || builder.loop_of(scan->axis) < 0) continue;
    const Value u = node.operands[1];
    const Value leaving{number, 1};
    if (!values.is_computed(u) || values.readers(u) != 1 || values.is_stored(u)) continue;
    if (values.readers(leaving) > 0 || values.is_stored(leaving)) continue;
    if (graph.type(u).axes != node.results[0].axes) continue;
    if (has_product_shape(builder, u.node)) values.fold_into_state(u.node);
  }
}

/// Walks the nodes of a kernel in order and hands each to the rule of its op.
void build_nodes(Values& values) {
  const Builder& builder = values.builder();
  fold_products(values);
  for (int node : builder.kernel().nodes) {
    build_node(values, node);
    for (std::size_t r = 0; r < builder.graph().node(node).results.size(); ++r)
      values.store({node, static_cast<int>(r)});
  }
}

BuiltKernel build_fused(const Plan& plan, const PlannedKernel& kernel) {
  Builder builder(plan, kernel);
  builder.map_axes(kernel.mapping, kernel.digits);
  Values values(builder);
  build_nodes(values);
  // What is only moved: loads, and constants that fill a part of a tensor.
  for (const auto& [value, view] : kernel.stores)
    if (!values.is_computed(value)) values.copy_through(value, view);
  values.run_deferred();
  return builder.finish();
}

}  // namespace

// A kernel inside of this one, of the scan and what it runs over.
void build_remade(Values& values, const Remade& remade) {
  Builder& builder = values.builder();
  const Value entering{remade.scan, 0};
  const Scan& scan = std::get<Scan>(builder.graph().node(remade.scan).op);
  const int levels = builder.level_of(builder.graph().type(entering).axes);
  PlannedKernel kernel;
  kernel.name = builder.kernel().name;
  kernel.nodes = remade.nodes;
  kernel.nodes.push_back(remade.scan);
  kernel.loads = remade.loads;
  Builder inner(builder, kernel, levels, scan.axis, scan.reverse, remade.every);
  Values inside(inner);
  inside.start_from(builder.kernel().loads.at(entering));
  build_nodes(inside);
  inside.run_deferred();
  values.define(entering, inside.on_chip({remade.scan, 2}), {levels, false});
  builder.take(std::move(inner));
}

BuiltKernel build(const Plan& plan, int number, const ProductBlocks& blocks) {
  const PlannedKernel& kernel = plan.kernels.at(number);
  switch (kernel.kind) {
    case PlannedKernel::Kind::finish: return build_finish(plan, kernel);
    case PlannedKernel::Kind::product: return build_product(plan, kernel, blocks);
    default: return build_fused(plan, kernel);
  }
}

}  // namespace krait
