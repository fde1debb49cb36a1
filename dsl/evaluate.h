// What a graph means: the oracle of every test. Float64, slow, independent of everything below dsl.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/graph.h"

namespace krait {

/// A dense float64 tensor, row-major in its stated order.
struct Tensor64 {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  Tensor64() = default;
  /// Filled with `value`.
  explicit Tensor64(std::vector<std::int64_t> dims, double value = 0);
  std::int64_t count() const { return static_cast<std::int64_t>(data.size()); }
};

using Tensors64 = std::map<std::string, Tensor64>;

/// The sizes of the graph's symbols as the shapes of the inputs give them. Throws UsageError that
/// names the input, its dimension and both sizes where a shape does not fit the graph or another
/// input, and where an input is missing.
Sizes sizes_from_inputs(const Graph& graph, const Tensors64& inputs);

/// Runs the graph. `inputs` by name, shaped in their storage order; gives outputs by name, in
/// theirs. i32 inputs hold whole numbers. Throws UsageError for missing inputs, shapes that do not
/// fit, a log decay that breaks its `nonpositive` declaration, an index out of range.
Tensors64 evaluate(const Graph& graph, const Tensors64& inputs);

}  // namespace krait
