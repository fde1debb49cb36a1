// Layers run as a user runs them: whole windows, gradients, step by step.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/dsl/blocks_testing.h"
#include "tests/runtime/layers.h"

namespace krait::testing {

inline LayerOptions layer_options(DType dtype, const std::string& schedule,
                                  std::shared_ptr<HostDevice> host = nullptr) {
  LayerOptions options;
  options.dtype = dtype;
  options.schedule = parse_schedule(schedule);
  options.on = host ? std::move(host) : test_device();
  return options;
}

/// Rounded to f32, so that every dtype reads the same numbers.
inline Tensors64 rounded(Tensors64 tensors) {
  for (auto& [name, tensor] : tensors)
    for (double& x : tensor.data) x = static_cast<float>(x);
  return tensors;
}

struct LayerRun {
  Tensors64 outputs, gradients;
};

inline LayerRun run_layer(const Layer& layer, const Tensors64& inputs,
                          const Tensors64& cotangents) {
  const Tensors given = tensors_for(layer.graph(), inputs);
  const Layer::Forward forward = layer.forward(refs(given));
  Tensors cots;
  for (const auto& [name, tensor] : cotangents)
    cots[name] = from_float64(tensor, forward.outputs.at(name).dtype());
  return {to_float64_all(forward.outputs),
          to_float64_all(layer.backward(forward.tape, refs(cots)))};
}

/// Of an output: an angle is compared modulo a turn.
inline double output_error(const std::string& name, const Tensor64& got,
                           const Tensor64& reference) {
  if (got.shape != reference.shape) return HUGE_VAL;
  return name.ends_with("state.angle") ? angle_error(got, reference) : tensor_error(got, reference);
}

/// Outputs and gradients of a layer against float64.
inline void check_layer(const Layer& layer, const Tensors64& inputs, double output_bound,
                        double gradient_bound) {
  const Tensors64 reference = evaluate(layer.graph(), inputs);
  const Tensors64 cotangents = random_cotangents(layer.graph(), reference);
  const LayerRun run = run_layer(layer, inputs, cotangents);
  check_outputs(run.outputs, reference, output_bound);
  check_close(run.gradients, reference_gradients(layer.graph(), inputs, cotangents),
              gradient_bound);
}

/// T calls of step, states carried and updated in place; outputs over the whole window, and the
/// states that are left, by the output's name.
inline Tensors64 run_steps(const Layer& layer, const Tensors64& inputs, const Sizes& sizes) {
  const Graph& graph = layer.graph();
  const std::int64_t length = sizes.at("t");
  std::set<std::string> state_in, state_out;
  std::map<std::string, std::string> left;
  for (const StatePair& pair : graph.states()) {
    state_in.insert(pair.in);
    state_out.insert(pair.out);
    left[pair.out] = pair.in;
  }
  const Tensors given = tensors_for(graph, inputs);
  Tensors states = layer.zero_states(sizes);
  for (const auto& name : state_in)
    if (given.count(name) != 0) copy(given.at(name).ref(), states.at(name).ref());
  // One position of a tensor, a view of it.
  const auto position = [&](const Tensor& tensor, const AxisNames& order, std::int64_t t) {
    TensorRef ref = tensor.ref();
    ref.strides = dense_strides(ref.shape);
    for (std::size_t d = 0; d < order.size(); ++d) {
      if (order[d] != "t") continue;
      ref.data = static_cast<char*>(ref.data) + t * ref.strides[d] * size_in_bytes(ref.dtype);
      ref.shape[d] = 1;
    }
    return ref;
  };
  Tensors outputs;
  for (const Output& output : graph.outputs()) {
    if (state_out.count(output.name) != 0) continue;
    outputs[output.name] =
        Tensor(graph.type(output.value).dtype, shape_of(graph, output.order, sizes));
  }
  for (std::int64_t t = 0; t < length; ++t) {
    TensorMap in, out;
    for (Value value : graph.inputs()) {
      const Input& input = graph.input_of(value);
      if (state_in.count(input.name) == 0 && given.count(input.name) != 0)
        in[input.name] = position(given.at(input.name), input.order, t);
    }
    for (const Output& output : graph.outputs())
      if (state_out.count(output.name) == 0)
        out[output.name] = position(outputs.at(output.name), output.order, t);
    layer.step(in, refs(states), out);
  }
  Tensors64 all = to_float64_all(outputs);
  for (const auto& [out, in] : left) all[out] = to_float64(states.at(in).ref());
  return all;
}

}  // namespace krait::testing
