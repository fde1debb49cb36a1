// Gradients are more of the same graph.
#pragma once

#include <string>
#include <vector>

#include "dsl/graph.h"

namespace krait {

/// The graph of gradients of `graph`: its inputs are the inputs of `graph` that the gradients need
/// (for their values, or for a size that the shape of no other input gives), in their order, and a
/// cotangent "cot.NAME" for each output named in `cotangents` (shape, order and accumulator
/// dtype of that output); its outputs are "grad.NAME", for each input named in `wanted`, in that
/// input's storage order: the derivative of sum over outputs of <output, cotangent>.
/// Floating inputs only; asking for another, or for a name that the graph does not have, is a
/// UsageError. An input on which no output depends has a gradient of zeros. The elements that are
/// the largest alike share the cotangent of a maximum. States are not carried over.
Graph differentiate(const Graph& graph, const std::vector<std::string>& cotangents,
                    const std::vector<std::string>& wanted);

/// All floating outputs, all floating inputs.
Graph differentiate(const Graph& graph);

/// What can have a gradient, and what can carry a cotangent: names, in the graph's order.
std::vector<std::string> floating_inputs(const Graph& graph);
std::vector<std::string> floating_outputs(const Graph& graph);

}  // namespace krait
