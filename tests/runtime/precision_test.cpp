// Where f32 and the order of sums matter: strong decays, lengths that do not fit.
#include "tests/runtime/layer_testing.h"

namespace krait::testing {
namespace {

Tensor64 filled(const Shape& shape, double value) { return Tensor64(shape, value); }

Tensor64 normal(const Shape& shape, unsigned seed, double scale) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  Tensor64 tensor(shape);
  for (double& x : tensor.data) x = static_cast<float>(scale * draw(random));
  return tensor;
}

double largest(const Tensor64& tensor) {
  double size = 0;
  for (double x : tensor.data) size = std::max(size, std::isfinite(x) ? std::fabs(x) : HUGE_VAL);
  return size;
}

LayerOptions scan_options(DType dtype, const std::string& schedule) {
  LayerOptions options = layer_options(dtype, schedule);
  options.step = false;
  return options;
}

TEST_CASE("the gradient of the decay keeps its digits, whatever the chunk") {
  SsdSpec spec{.nheads = 4, .headdim = 16, .d_state = 16, .ngroups = 1};
  spec.dt_bias = false;
  Tensors64 inputs, cotangents, expected;
  for (const int chunk : {64, 128, 256}) {
    const Layer layer(block_function(spec), scan_options(DType::f32, text("chunk=", chunk)));
    if (inputs.empty()) {
      std::mt19937 random(3);
      inputs = rounded(testing::random_inputs(layer.graph(), {{"b", 1}, {"t", 256}}, random));
      inputs["x"] = normal(inputs.at("x").shape, 1, 1);
      inputs["B"] = normal(inputs.at("B").shape, 2, 1);
      inputs["C"] = normal(inputs.at("C").shape, 3, 1);
      inputs["dt"] = normal(inputs.at("dt").shape, 4, 2);
      inputs["A"].data = {-1, -4, -8, -16};
      cotangents = random_cotangents(layer.graph(), evaluate(layer.graph(), inputs));
      expected = reference_gradients(layer.graph(), inputs, cotangents);
    }
    INFO("chunk " << chunk);
    const LayerRun run = run_layer(layer, inputs, cotangents);
    CHECK(tensor_error(run.gradients.at("A"), expected.at("A")) <= 1e-5);
    for (std::size_t h = 0; h < 4; ++h) {  // by head: the first would hide the others
      INFO("head " << h << ": " << run.gradients.at("A").data[h] << " for "
                   << expected.at("A").data[h]);
      CHECK(std::fabs(run.gradients.at("A").data[h] - expected.at("A").data[h]) <=
            1e-5 * std::fabs(expected.at("A").data[h]));
    }
    CHECK(tensor_error(run.gradients.at("dt"), expected.at("dt")) <= 1e-5);
  }
}

/// The scan with a decay A dt of these at every position.
void check_decay(double A, double dt, std::int64_t length, int chunk) {
  INFO("A " << A << " dt " << dt << " T " << length << " chunk " << chunk);
  SsdSpec spec{.nheads = 2, .headdim = 8, .d_state = 8, .ngroups = 1};
  spec.dt_bias = spec.dt_softplus = false;
  const Layer layer(block_function(spec), scan_options(DType::f32, text("chunk=", chunk)));
  std::mt19937 random(3);
  Tensors64 inputs = rounded(block_inputs(layer.graph(), {{"b", 1}, {"t", length}}, random));
  inputs["A"] = filled(inputs.at("A").shape, A);
  inputs["dt"] = filled(inputs.at("dt").shape, dt);
  const Tensors64 expected = evaluate(layer.graph(), inputs);
  const Tensors64 cotangents = random_cotangents(layer.graph(), expected);
  const Tensors64 gradients = reference_gradients(layer.graph(), inputs, cotangents);
  const LayerRun run = run_layer(layer, inputs, cotangents);
  for (const Tensors64* all : {&run.outputs, &run.gradients})
    for (const auto& [name, tensor] : *all) {
      INFO(name);
      CHECK(largest(tensor) < 1e6);
    }
  check_outputs(run.outputs, expected, 1e-5);
  check_close(run.gradients, gradients, 5e-5);
}

TEST_CASE("strong decays give no infinity and no NaN") {
  check_decay(-16, 1, 200, 256);
  check_decay(-100, 5, 100, 64);
  check_decay(-1e-6, 1e-3, 150, 64);  // hardly any
}

TEST_CASE("lengths of documents that end inside a chunk") {
  SsdSpec spec{.nheads = 2, .headdim = 8, .d_state = 8, .ngroups = 1};
  spec.seq_idx = true;
  const Layer layer(block_function(spec), scan_options(DType::f32, "chunk=8"));
  std::mt19937 random(3);
  check_layer(layer,
              rounded(block_inputs(layer.graph(), {{"b", 2}, {"t", 44}}, random, {5, 6, 31})), 1e-5,
              5e-5);
}

TEST_CASE("a width that no vector divides: 386 columns of x, B, C and dt") {
  const Mamba2Spec spec{.d_model = 64, .d_state = 128, .expand = 2, .headdim = 64};
  REQUIRE(spec.projection_rows() - spec.d_inner() == 386);
  const Layer layer(block_function(spec), scan_options(DType::f32, "chunk=16"));
  std::mt19937 random(3);
  check_layer(layer, rounded(block_inputs(layer.graph(), {{"b", 1}, {"t", 21}}, random)), 1e-5,
              5e-5);
}

TEST_CASE("a head of 512 channels") {
  const SsdSpec spec{.nheads = 1, .headdim = 512, .d_state = 64, .ngroups = 1};
  const Layer layer(block_function(spec), scan_options(DType::f32, "chunk=64"));
  std::mt19937 random(3);
  check_layer(layer, rounded(block_inputs(layer.graph(), {{"b", 1}, {"t", 70}}, random)), 1e-5,
              5e-5);
}

}  // namespace
}  // namespace krait::testing
