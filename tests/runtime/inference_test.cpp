// Layers without gradients: their plans keep nothing for backward and so are cut elsewhere.
#include <catch2/catch.hpp>

#include "dsl/blocks/blocks.h"
#include "runtime/layer.h"
#include "tests/runtime/execution.h"

namespace krait {
namespace {

/// Against evaluate, over inputs of `sizes` drawn at random; decays are declared by their names.
void check_forward(const BlockFunction& block, const Sizes& sizes) {
  LayerOptions options;
  options.dtype = DType::f64;
  options.on = test_device();
  options.wanted = std::vector<std::string>();
  options.step = false;
  options.schedule = parse_schedule("chunk=8");
  const Layer layer(block, options);
  CHECK(layer.plan(Pass::backward) == nullptr);
  Tensors64 inputs;
  std::uint64_t seed = 0;
  TensorMap given;
  Tensors memory;
  for (const Value value : layer.graph().inputs()) {
    const Input& input = layer.graph().input_of(value);
    if (input.role == Role::parameter) {
      inputs[input.name] = to_float64(layer.parameter(input.name));
      continue;
    }
    Shape shape;
    for (const std::string& axis : input.order)
      shape.push_back(layer.graph().axis(axis).extent.value(sizes));
    const bool decay = input.name == "adt";
    inputs[input.name] = random_tensor(shape, ++seed, decay ? -1 : 0.1, decay ? 0 : 1);
    memory[input.name] = from_float64(inputs[input.name], input.dtype);
  }
  const Layer::Forward forward = layer.forward(refs(memory));
  CHECK(forward.tape.bytes() == 0);
  for (const auto& [name, expected] : evaluate(layer.graph(), inputs)) {
    INFO(name);
    const Tensor64 result = to_float64(forward.outputs.at(name).ref());
    REQUIRE(result.shape == expected.shape);
    double largest = 0, error = 0;
    for (std::size_t i = 0; i < result.data.size(); ++i) {
      largest = std::max(largest, std::abs(expected.data[i]));
      error = std::max(error, std::abs(result.data[i] - expected.data[i]));
    }
    CHECK(error <= 1e-12 * largest);
  }
}

TEST_CASE("every block that chunks runs forward alone") {
  for (const std::string& name : block_names()) {
    if (name == "selective_scan" || name == "mamba1" || name == "backbone") continue;
    INFO(name);
    BlockSizes sizes;
    sizes.d_state = 8;
    sizes.headdim = 16;
    if (name.find("scan") == name.npos && name != "ssd")
      sizes.d_model = 32;
    else
      sizes.heads = 4;
    check_forward(block_function(with_sizes(default_spec(name), sizes)), {{"b", 2}, {"t", 19}});
  }
}

TEST_CASE("a mean over heads comes back into what each head does") {
  // Products, then a norm over all heads, whose sum is a loop where products are.
  const auto block = [](Scope& s) {
    const Axis b("b"), t("t"), h("h", 3), p("p", 16), n("n", 16);
    const Expr x = s.input("x", {b, t, h, p}), q = s.input("q", {b, t, h, n});
    const Expr k = s.input("k", {b, t, h, n}), decay = s.constant(-0.1, {b, t, h});
    const Expr y = contract({scan(t, decay, x * k).leaving, q}, {n});
    const Expr mean = sum(y * y, {h, p}) / 48.0;
    s.output("y", y * rsqrt(mean + 1e-5), {b, t, h, p});
  };
  check_forward(block, {{"b", 2}, {"t", 19}});
}

}  // namespace
}  // namespace krait
