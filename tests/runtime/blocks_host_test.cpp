// What holds for every block when it runs on the host.
#include "tests/dsl/blocks_testing.h"
#include "tests/runtime/layers.h"

namespace krait {
namespace {

LayerOptions options(DType dtype, const std::string& schedule, int threads = 2) {
  LayerOptions options;
  options.dtype = dtype;
  options.schedule = parse_schedule(schedule);
  options.host = test_device(threads);
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

/// One spec of each kind, by name.
BlockSpec first_of(const std::string& block) {
  for (const BlockSpec& spec : host_specs())
    if (block_name(spec) == block) return with_states(spec, true);
  throw InternalError("no such block");
}

TEST_CASE("a window equals two with carried states, gradients included") {
  constexpr std::int64_t kTime = 100, kFirst = 37;
  for (const char* block : {"ssd", "mamba2", "mamba3_scan", "mamba3"}) {
    INFO(block);
    const Layer layer(block_function(first_of(block)), options(DType::f64, "chunk=16"));
    const Graph& graph = layer.graph();
    std::mt19937 random(1);
    const Tensors64 inputs = testing::block_inputs(graph, {{"b", 2}, {"t", kTime}}, random);
    const Tensors given = tensors_for(graph, inputs);
    const Layer::Forward whole = layer.forward(refs(given));
    const Tensor cotangent =
        from_float64(random_tensor(whole.outputs.at("y").shape(), 3), DType::f64);
    Tensors gradients = layer.backward(whole.tape, {{"y", cotangent.ref()}});

    // The window's part of what has a time axis.
    const auto part = [&](const std::string& name, const TensorRef& all, std::int64_t from,
                          std::int64_t to) {
      TensorRef cut = all;
      const auto input = graph.find_input(name);
      const AxisNames order = name == "y" ? AxisNames{"b", "t"} : graph.input_of(*input).order;
      for (std::size_t d = 0; d < order.size(); ++d) {
        if (order[d] != "t") continue;
        cut.shape[d] = to - from;
        cut.data = static_cast<double*>(cut.data) + from * cut.strides[d];
      }
      return cut;
    };
    TensorMap first, second;
    for (const auto& [name, tensor] : refs(given)) {
      first[name] = part(name, tensor, 0, kFirst);
      second[name] = part(name, tensor, kFirst, kTime);
    }
    Layer::Forward one = layer.forward(first);
    const Tensors carried = layer.take_states(one.outputs);
    for (const auto& [name, state] : carried) second[name] = state.ref();
    const Layer::Forward two = layer.forward(second);
    const Tensor64 y = to_float64(whole.outputs.at("y").ref());
    CHECK(testing::window_difference(y, to_float64(one.outputs.at("y").ref()), 0) <= 1e-12);
    CHECK(testing::window_difference(y, to_float64(two.outputs.at("y").ref()), kFirst) <= 1e-12);

    const Tensors later =
        layer.backward(two.tape, {{"y", part("y", cotangent.ref(), kFirst, kTime)}});
    TensorMap cotangents{{"y", part("y", cotangent.ref(), 0, kFirst)}};
    for (const StatePair& pair : graph.states()) cotangents[pair.out] = later.at(pair.in).ref();
    const Tensors earlier = layer.backward(one.tape, cotangents);
    for (const auto& [name, gradient] : gradients) {
      INFO("gradient of " << name);
      const Input& input = graph.input_of(*graph.find_input(name));
      if (contains(input.order, "t")) {
        CHECK(relative_error(to_float64(later.at(name).ref()),
                             to_float64(part(name, gradient.ref(), kFirst, kTime))) <= 1e-11);
        CHECK(relative_error(to_float64(earlier.at(name).ref()),
                             to_float64(part(name, gradient.ref(), 0, kFirst))) <= 1e-11);
        continue;
      }
      Tensor64 sum = to_float64(earlier.at(name).ref());
      if (input.role != Role::state)
        for (std::int64_t i = 0; i < sum.count(); ++i)
          sum.data[i] += to_float64(later.at(name).ref()).data[i];
      CHECK(relative_error(sum, to_float64(gradient.ref())) <= 1e-11);
    }
  }
}

TEST_CASE("blocks give the same bits with one thread and with three, and twice") {
  for (const char* block : {"mamba3"}) {
    INFO(block);
    std::vector<Tensors64> results;
    for (int threads : {1, 3, 3}) {
      const Layer layer(block_function(first_of(block)), options(DType::f32, "chunk=16", threads));
      std::mt19937 random(1);
      const Tensors64 inputs = testing::block_inputs(layer.graph(), {{"b", 2}, {"t", 90}}, random);
      const Tensors given = tensors_for(layer.graph(), inputs);
      const Layer::Forward forward = layer.forward(refs(given));
      Tensors64 all =
          to_float64_all(layer.backward(forward.tape, {{"y", forward.outputs.at("y").ref()}}));
      for (const auto& [name, tensor] : forward.outputs)
        all["out." + name] = to_float64(tensor.ref());
      results.push_back(std::move(all));
    }
    for (const auto& [name, tensor] : results[0]) {
      INFO(name);
      CHECK(results[1].at(name).data == tensor.data);
      CHECK(results[2].at(name).data == tensor.data);
    }
  }
}

TEST_CASE("the gradient of strong decays is exact in f32") {
  SsdSpec spec{.nheads = 4, .headdim = 8, .d_state = 16};
  spec.dt_bias = false;
  const Graph graph = build_graph(block_function(spec), DType::f64);
  Tensors64 inputs = random_inputs(graph, {{"b", 1}, {"t", 256}}, 5);
  inputs["A"].data = {-1, -4, -8, -16};
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  for (double& x : inputs["dt"].data) x = static_cast<float>(2 * normal(random));
  const Tensors64 cotangents = random_cotangents(graph, evaluate(graph, inputs));
  const Tensor64 reference = reference_gradients(graph, inputs, cotangents).at("A");
  for (const char* schedule : {"chunk=64", "chunk=128", "chunk=256"}) {
    INFO(schedule);
    const Layer layer(block_function(spec), options(DType::f32, schedule));
    const Tensors given = tensors_for(layer.graph(), inputs);
    const Layer::Forward forward = layer.forward(refs(given));
    Tensors cots;
    for (const auto& [name, tensor] : cotangents) cots[name] = from_float64(tensor, DType::f32);
    const Tensors gradients = layer.backward(forward.tape, refs(cots));
    CHECK(relative_error(to_float64(gradients.at("A").ref()), reference) <= 1e-5);
  }
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
