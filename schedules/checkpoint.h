// Checkpoints: what a forward pass keeps for its backward pass, and the gradient graph between
// them.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph.h"

namespace krait {

/// A value of the graph that forward keeps, by the name under which backward reads it.
struct Checkpoint {
  std::string name;  // "saved.0", ...
  Value value;
  bool operator==(const Checkpoint&) const = default;
};

/// What is dear to compute again: results of library products, of contractions that read a scan's
/// states, and sums with a product's result that several nodes read (residual streams).
std::vector<Checkpoint> checkpoints(const Graph& graph);

/// The graph with the checkpoints among its outputs, stored with dynamic axes outermost.
Graph with_checkpoints(const Graph& graph, const std::vector<Checkpoint>& kept);

/// The gradients of the graph (as differentiate gives them), its scans chunked by `chunk`, cut at
/// the checkpoints: values of the forward pass that come before one are made again from the
/// checkpoints before it at most. Inputs beyond those of differentiate are the checkpoints that are
/// read.
Graph backward_graph(const Graph& graph, const std::vector<Checkpoint>& cuts, std::int64_t chunk,
                     const std::vector<std::string>& cotangents,
                     const std::vector<std::string>& wanted);

}  // namespace krait
