// What rewrites of whole graphs are made of.
#pragma once

#include <functional>
#include <vector>

#include "dsl/graph.h"

namespace krait {

/// Rebuilds a graph node by node; `rewrite` may add nodes of its own for one and map its results,
/// or return false to have it copied. Dead nodes are dropped in the end.
Graph rebuilt(const Graph& graph,
              const std::function<bool(int node, Graph& to, Rewriter& rewriter)>& rewrite);

/// The axes that an op does not take elementwise: those that its fields name.
AxisNames named_axes(const Op& op);

/// The values in the new graph.
std::vector<Value> moved(const Rewriter& rewriter, const std::vector<Value>& values);

}  // namespace krait
