// Layers held to what evaluate says of their graphs and of the gradients of these.
#pragma once

#include "dsl/differentiate.h"
#include "runtime/check.h"
#include "runtime/layer.h"
#include "tests/runtime/execution.h"

namespace krait {

/// `inputs` in the dtypes that the graph wants.
inline Tensors tensors_for(const Graph& graph, const Tensors64& inputs) {
  Tensors tensors;
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    if (auto found = inputs.find(input.name); found != inputs.end())
      tensors[input.name] = from_float64(found->second, input.dtype);
  }
  return tensors;
}

inline Tensors64 to_float64_all(const Tensors& tensors) {
  Tensors64 all;
  for (const auto& [name, tensor] : tensors) all[name] = to_float64(tensor.ref());
  return all;
}

/// Random cotangents of every floating output, by its name.
inline Tensors64 random_cotangents(const Graph& graph, const Tensors64& outputs) {
  Tensors64 cotangents;
  std::uint64_t seed = 1000;
  for (const Output& output : graph.outputs())
    if (is_float(graph.type(output.value).dtype))
      cotangents[output.name] = random_tensor(outputs.at(output.name).shape, ++seed);
  return cotangents;
}

inline Tensors64 reference_gradients(const Graph& graph, Tensors64 inputs,
                                     const Tensors64& cotangents) {
  for (const auto& [name, tensor] : cotangents) inputs["cot." + name] = tensor;
  const Graph backward = differentiate(graph);
  Tensors64 read, named;
  for (Value value : backward.inputs()) {
    const std::string& name = backward.input_of(value).name;
    read[name] = inputs.at(name);
  }
  for (auto& [name, tensor] : evaluate(backward, read)) named[name.substr(5)] = tensor;
  return named;
}

/// Angles are held to their difference modulo a turn.
inline void check_outputs(const Tensors64& got, const Tensors64& reference, double bound) {
  REQUIRE(got.size() == reference.size());
  for (const auto& [name, tensor] : reference) {
    INFO("output " << name);
    REQUIRE(got.count(name) == 1);
    const double error = name.ends_with("state.angle") ? angle_error(got.at(name), tensor)
                                                       : relative_error(got.at(name), tensor);
    CHECK(error <= bound);
  }
}

/// Outputs, and gradients under random cotangents of all of them.
inline void check_layer(const Layer& layer, const Tensors64& inputs, double bound) {
  const Graph& graph = layer.graph();
  const Tensors64 reference = evaluate(graph, inputs);
  const Tensors64 cotangents = random_cotangents(graph, reference);
  const Tensors given = tensors_for(graph, inputs);
  const Layer::Forward forward = layer.forward(refs(given));
  check_outputs(to_float64_all(forward.outputs), reference, bound);
  Tensors cots;
  for (const auto& [name, tensor] : cotangents)
    cots[name] = from_float64(tensor, forward.outputs.at(name).dtype());
  const Tensors gradients = layer.backward(forward.tape, refs(cots));
  check_close(to_float64_all(gradients), reference_gradients(graph, inputs, cotangents), bound);
}

}  // namespace krait
