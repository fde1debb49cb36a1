// What holds for every block when it runs on the host.
#include "tests/dsl/blocks_testing.h"
#include "tests/runtime/layers.h"

namespace krait {
namespace {

LayerOptions options(DType dtype, const std::string& schedule, int threads = 2) {
  LayerOptions options;
  options.dtype = dtype;
  options.schedule = parse_schedule(schedule);
  options.on = test_device(threads);
  return options;
}

/// Those that the host runs: not Mamba-1, whose decay depends on both axes of its state, and no
/// rows of a table.
std::vector<BlockSpec> host_specs() {
  std::vector<BlockSpec> specs;
  for (const BlockSpec& spec : testing::small_specs()) {
    const auto* backbone = std::get_if<BackboneSpec>(&spec);
    if (block_name(spec) == "mamba1" || block_name(spec) == "selective_scan") continue;
    if (backbone && backbone->vocab_size > 0) continue;
    specs.push_back(spec);
  }
  REQUIRE(specs.size() == 16);
  return specs;
}

TEST_CASE("blocks on the host, with states and documents, in ragged chunks") {
  const std::vector<BlockSpec> specs = host_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    INFO(testing::title(specs[i], i));
    const BlockSpec spec = with_documents(with_states(specs[i], true), true);
    const Layer layer(block_function(spec), options(DType::f64, "chunk=4 backward.chunk=3"));
    std::mt19937 random(static_cast<unsigned>(i));
    for (std::int64_t length : {1, 11}) {
      const Tensors64 inputs =
          testing::block_inputs(layer.graph(), {{"b", 2}, {"t", length}}, random, {2, 4});
      check_layer(layer, inputs, 1e-10);
    }
  }
}

TEST_CASE("equal layers share their kernels") {
  BackboneSpec spec{.d_model = 16, .n_layer = 3, .d_input = 3};
  spec.ssm_cfg = Mamba2Spec{.d_model = 16, .d_state = 8, .headdim = 8};
  const LayerOptions shared = options(DType::f32, "chunk=16");
  const Layer three(block_function(spec), shared);
  CHECK(three.counters().compiled > 0);
  CHECK(three.counters().shared > 0);
  spec.n_layer = 4;
  const Layer four(block_function(spec), shared);
  CHECK(four.counters().compiled == 0);
}

TEST_CASE("angles stay exact in f32 over two thousand large steps") {
  const Mamba3ScanSpec spec{.nheads = 2, .headdim = 4, .d_state = 8, .initial_state = true};
  const Graph graph = build_graph(block_function(spec), DType::f64);
  std::mt19937 random(1);
  Tensors64 inputs = testing::block_inputs(graph, {{"b", 1}, {"t", 2000}}, random);
  for (double& x : inputs["angles"].data) x = static_cast<float>(3 * x);
  for (double& x : inputs["dt"].data) x = static_cast<float>(1 + x);
  for (auto& [name, tensor] : inputs)
    for (double& x : tensor.data) x = static_cast<float>(x);
  const Tensor64 reference = evaluate(graph, inputs).at("state.angle");
  const Layer layer(block_function(spec), options(DType::f32, "chunk=64"));
  const Layer::Forward forward = layer.forward(refs(tensors_for(layer.graph(), inputs)));
  CHECK(angle_error(to_float64(forward.outputs.at("state.angle").ref()), reference) <= 1e-5);
}

}  // namespace
}  // namespace krait
