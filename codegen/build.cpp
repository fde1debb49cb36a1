#include "codegen/build.h"

#include <algorithm>
#include <set>

#include "codegen/build_ops.h"
#include "codegen/builder.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// Walks the nodes of a fused kernel in order and hands each to the rule of its op.
class FusedKernel {
 public:
  FusedKernel(const Plan& plan, const PlannedKernel& kernel)
      : builder_(plan, kernel), values_(builder_) {
    builder_.map_axes(kernel.mapping);
  }

  BuiltKernel run() {
    fold_products();
    for (int node : builder_.kernel().nodes) {
      build_node(values_, node);
      for (std::size_t r = 0; r < builder_.graph().node(node).results.size(); ++r)
        values_.store({node, static_cast<int>(r)});
    }
    // What is only moved: loads, and constants that fill a part of a tensor.
    for (const auto& [value, view] : builder_.kernel().stores)
      if (!values_.is_computed(value)) values_.copy_through(value, view);
    values_.run_deferred();
    return builder_.finish();
  }

 private:
  /// Products that a scan alone reads are accumulated into its state.
  void fold_products() {
    const Graph& graph = builder_.graph();
    for (int number : builder_.kernel().nodes) {
      const Node& node = graph.node(number);
      const auto* scan = std::get_if<Scan>(&node.op);
      if (scan == nullptr || builder_.loop_of(scan->axis) < 0) continue;
      const Value u = node.operands[1];
      const Value leaving{number, 1};
      if (!values_.is_computed(u) || values_.readers(u) != 1 || values_.is_stored(u)) continue;
      if (values_.readers(leaving) > 0 || values_.is_stored(leaving)) continue;
      if (graph.type(u).axes != node.results[0].axes) continue;
      if (has_product_shape(builder_, u.node)) values_.fold_into_state(u.node);
    }
  }

  Builder builder_;
  Values values_;
};

}  // namespace

BuiltKernel build(const Plan& plan, int number, std::int64_t product_block) {
  const PlannedKernel& kernel = plan.kernels.at(number);
  switch (kernel.kind) {
    case PlannedKernel::Kind::finish: return build_finish(plan, kernel);
    case PlannedKernel::Kind::product: return build_product(plan, kernel, product_block);
    default: return FusedKernel(plan, kernel).run();
  }
}

}  // namespace krait
