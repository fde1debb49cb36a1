// The shortest useful program: one Mamba-2 layer, forward, backward and one step.
#include <krait/krait.h>

#include <iostream>
#include <vector>

int main() try {
  using namespace krait;
  constexpr std::int64_t kBatch = 2, kLength = 100, kWidth = 64;
  Mamba2Spec spec{.d_model = kWidth, .d_state = 32, .headdim = 32};
  spec.initial_state = true;
  const Layer layer(block_function(spec), {.seed = 1});  // kernels are compiled here, or loaded

  // A window; states that are not given start from zero.
  const std::vector<float> u(kBatch * kLength * kWidth, 0.5f);
  Layer::Forward window = layer.forward({{"u", {u.data(), {kBatch, kLength, kWidth}}}});
  const float* y = window.outputs.at("y").data_as<float>();

  // Gradients of sum(y) by the input, every parameter and the states at the start.
  const std::vector<float> ones(u.size(), 1.0f);
  const Tensors gradients =
      layer.backward(window.tape, {{"y", {ones.data(), {kBatch, kLength, kWidth}}}});

  // One position more, from the states that the window left.
  const Tensors states = layer.take_states(window.outputs);
  std::vector<float> next(kBatch * kWidth);
  layer.step({{"u", {u.data(), {kBatch, 1, kWidth}}}}, refs(states),
             {{"y", {next.data(), {kBatch, 1, kWidth}}}});

  std::cout << "y[0, 0, 0] = " << y[0] << ", then y[0, " << kLength << ", 0] = " << next[0]
            << "\nd sum(y) / d A_log[0] = " << gradients.at("w.A_log").data_as<float>()[0]
            << "\nkernels: " << layer.counters().compiled << " compiled, "
            << layer.counters().from_cache << " from the cache\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
