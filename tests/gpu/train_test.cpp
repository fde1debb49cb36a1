// Layers at work on an emulated GPU: states, threads, training.
#include <thread>

#include "tests/gpu/recurrence.h"

namespace krait {
namespace {

using namespace krait::testing;

/// Tensors of a layer's device with f32 elements, and back.
Tensor on(const Layer& layer, const std::vector<float>& values, const Shape& shape) {
  return to_device({values.data(), shape}, *layer.device());
}
std::vector<float> values(const Layer& layer, const Tensor& tensor) {
  return values_of(to_host(tensor.ref(), *layer.device()));
}

TEST_CASE("a window in two parts, its states handed on, is the window") {
  const EmulatedGpu gpu;
  const Layer layer = retention_on("cuda:0");
  constexpr std::int64_t b = 2, whole = 100, first = 37;
  const Tensor u = on(layer, drawn(b * whole * 4, 5), {b, whole, 4});
  const Tensor y(DType::f32, {b, whole, 3}, *layer.device());
  const auto part = [](const Tensor& of, std::int64_t begin, std::int64_t end) {
    TensorRef view = of.ref();
    view.shape[1] = end - begin;
    view.data = static_cast<float*>(view.data) + begin * view.strides[1];
    return view;
  };
  const Layer::Forward all = layer.forward({{"u", u.ref()}});
  Layer::Forward prefill = layer.forward({{"u", part(u, 0, first)}}, {{"y", part(y, 0, first)}});
  const Tensors states = layer.take_states(prefill.outputs);
  const Layer::Forward rest =
      layer.forward({{"u", part(u, first, whole)}, {"start", states.at("start").ref()}},
                    {{"y", part(y, first, whole)}});
  CHECK(relative_error(values(layer, y), values(layer, all.outputs.at("y"))) < 1e-5);
  CHECK(relative_error(values(layer, rest.outputs.at("end")),
                       values(layer, all.outputs.at("end"))) < 1e-5);
  // The same by steps.
  const Tensor stepped(DType::f32, {b, whole, 3}, *layer.device());
  for (std::int64_t i = first; i < whole; ++i)
    layer.step({{"u", part(u, i, i + 1)}}, refs(states), {{"y", part(stepped, i, i + 1)}});
  CHECK(relative_error(values(layer, states.at("start")), values(layer, all.outputs.at("end"))) <
        1e-5);
}

/// Every gradient under one cotangent.
std::map<std::string, std::vector<float>> gradients_of(const Layer& layer,
                                                       const std::vector<float>& u,
                                                       const std::vector<float>& cotangent) {
  const Tensor in = on(layer, u, {2, 21, 4}), out = on(layer, cotangent, {2, 21, 3});
  const Layer::Forward forward = layer.forward({{"u", in.ref()}});
  std::map<std::string, std::vector<float>> all;
  for (const auto& [name, gradient] : layer.backward(forward.tape, {{"y", out.ref()}}))
    all[name] = values(layer, gradient);
  return all;
}

TEST_CASE("a recurrence of one's own has the host's gradients on a GPU, from two threads too") {
  const EmulatedGpu emulated;
  const Layer host = retention_on("host"), gpu = retention_on("cuda:0");
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (unsigned seed : {0u, 1u})
    threads.emplace_back([&, seed] {
      const std::vector<float> u = drawn(2 * 21 * 4, seed), cotangent = drawn(2 * 21 * 3, 7);
      const auto expected = gradients_of(host, u, cotangent);
      for (int i = 0; i < 3; ++i)
        for (const auto& [name, got] : gradients_of(gpu, u, cotangent))
          if (const double error = relative_error(got, expected.at(name)); !(error < 5e-5))
            errors[seed] += name + " " + std::to_string(error) + " ";
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(errors == std::vector<std::string>(2));
}

/// Losses of plain gradient descent on mean squared error; updates are the host's.
std::vector<double> train(Layer layer, const std::string& in, const Shape& in_shape,
                          const Shape& out_shape, int steps, float rate) {
  const Tensor x = on(layer, drawn(count_of(in_shape), 3), in_shape);
  const std::vector<float> target = drawn(count_of(out_shape), 4);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const Layer::Forward forward = layer.forward({{in, x.ref()}});
    std::vector<float> difference = values(layer, forward.outputs.at("y"));
    double loss = 0;
    for (std::size_t j = 0; j < target.size(); ++j) {
      difference[j] -= target[j];
      loss += 0.5 * double(difference[j]) * double(difference[j]) / double(target.size());
      difference[j] /= static_cast<float>(target.size());
    }
    losses.push_back(loss);
    const Tensor cotangent = on(layer, difference, out_shape);
    for (const auto& [name, gradient] : layer.backward(forward.tape, {{"y", cotangent.ref()}})) {
      const auto names = layer.parameters();
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      const Tensor parameter = to_host(layer.parameter(name), *layer.device());
      std::vector<float> value = values_of(parameter);
      const std::vector<float> slope = values(layer, gradient);
      for (std::size_t j = 0; j < value.size(); ++j) value[j] -= rate * slope[j];
      layer.set_parameter(name, {value.data(), parameter.shape()});
    }
  }
  return losses;
}

void check_training(const std::vector<double>& host, const std::vector<double>& gpu) {
  REQUIRE(host.size() == gpu.size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    CHECK(gpu[i] == Approx(host[i]).epsilon(1e-5));
    if (i > 0) CHECK(gpu[i] < gpu[i - 1]);
  }
}

TEST_CASE("training on a GPU goes as on the host") {
  const EmulatedGpu gpu;
  const auto losses = [](const std::string& device) {
    return train(retention_on(device), "u", {2, 21, 4}, {2, 21, 3}, 5, 0.5f);
  };
  check_training(losses("host"), losses("cuda:0"));
}

TEST_CASE("training the demo's layers, small, on a GPU goes as on the host", "[slow]") {
  const EmulatedGpu gpu;
  const auto losses = [](const std::string& device) {
    BackboneSpec spec;
    spec.d_model = 16;
    spec.n_layer = 2;
    spec.ssm_cfg = Mamba2Spec{.d_state = 16, .headdim = 16};
    spec.initial_state = true;
    LayerOptions options;
    options.device = device;
    options.cotangents = std::vector<std::string>{"y"};
    options.sizes = {{"b", 2}, {"t", 40}};
    return train(Layer(block_function(spec), options), "x", {2, 40, 16}, {2, 40, 16}, 4, 0.5f);
  };
  check_training(losses("host"), losses("cuda:0"));
}

}  // namespace
}  // namespace krait
