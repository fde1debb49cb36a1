// Wrong use of a layer: what is said, that nothing is aborted, and that the layer goes on working.
#include <catch2/catch.hpp>
#include <functional>

#include "runtime/krait.h"

namespace krait {
namespace {

using Catch::Contains;

const Axis b("b"), t("t"), h("h", 2), n("n", 8), p("p", 5);

/// Retention with a decay per head, documents and a carried state.
void retention(Scope& s) {
  const Expr q = s.input("q", {b, t, h, n}), k = s.input("k", {b, t, h, n});
  const Expr v = s.input("v", {b, t, h, p});
  const Expr documents = s.input("seq_idx", {b, t}, DType::i32);
  const Expr rate = s.param("rate", {h}, {Init::Kind::uniform, -3, -1});
  const Expr before = s.state("h0", "h", {b, h, n, p});
  const Expr starts = documents != shift(documents, t, 1, 0);
  const ScanResult state = scan(t, -exp(rate), k * v, {.initial = before, .reset = starts});
  s.output("y", sum(state * q, n), {b, t, h, p});
  s.leave("h", state.last);
}

std::shared_ptr<HostDevice> device() {
  static const std::shared_ptr<HostDevice> shared = [] {
    HostDeviceOptions options = HostDeviceOptions::from();
    options.compiler.use_disk = false;
    options.threads = 1;
    return std::make_shared<HostDevice>(options);
  }();
  return shared;
}

LayerOptions options(const std::string& schedule = "chunk=8") {
  LayerOptions options;
  options.on = device();
  options.schedule = parse_schedule(schedule);
  return options;
}

/// Tensors of a call, each of which a case may spoil.
struct Call {
  std::vector<float> memory = std::vector<float>(4096, 0.5f);
  std::vector<std::int32_t> documents = std::vector<std::int32_t>(64, 0);
  TensorMap inputs;
  TensorMap outputs;

  TensorRef floats(Shape shape, Shape strides = {}) {
    return TensorRef(memory.data(), std::move(shape), std::move(strides));
  }
  Call() {
    inputs = {{"q", floats({2, 9, 2, 8})},
              {"k", floats({2, 9, 2, 8})},
              {"v", floats({2, 9, 2, 5})},
              {"seq_idx", TensorRef(documents.data(), {2, 9})}};
  }
};

TEST_CASE("tensors that do not fit a layer") {
  const Layer layer(retention, options());
  Call good;
  std::vector<float> written(2048);
  std::vector<double> doubles(2048);
  const auto refused = [&](const std::string& said, const std::function<void(Call&)>& spoil) {
    Call call;
    spoil(call);
    INFO("said: " << said);
    CHECK_THROWS_AS(layer.forward(call.inputs, call.outputs), UsageError);
    CHECK_THROWS_WITH(layer.forward(call.inputs, call.outputs), Contains(said));
    CHECK_NOTHROW(layer.forward(good.inputs));
  };
  refused("input v is missing", [](Call& c) { c.inputs.erase("v"); });
  refused("input seq_idx is missing", [](Call& c) { c.inputs.erase("seq_idx"); });
  refused("size of axis", [](Call& c) { c.inputs.clear(); });
  refused("input is u; allowed: q, k, v, seq_idx", [](Call& c) { c.inputs["u"] = c.floats({1}); });
  refused("input q has shape (2, 9, 2)", [](Call& c) { c.inputs["q"] = c.floats({2, 9, 2}); });
  refused("input q, dimension 3 (axis n) is 7; allowed: 8", [](Call& c) {
    c.inputs["q"] = c.floats({2, 9, 2, 7});
  });
  refused("input k, dimension 2 (axis h) is 3; allowed: 2", [](Call& c) {
    c.inputs["k"] = c.floats({2, 9, 3, 8});
  });
  refused("(axis t) is 8; allowed: 9", [](Call& c) { c.inputs["v"] = c.floats({2, 8, 2, 5}); });
  refused("(axis b) is 1; allowed: 2", [](Call& c) { c.inputs["v"] = c.floats({1, 9, 2, 5}); });
  refused("(axis b) is 0", [](Call& c) { c.inputs["q"] = c.floats({0, 9, 2, 8}); });
  refused("(axis t) is -9", [](Call& c) { c.inputs["q"] = c.floats({2, -9, 2, 8}); });
  refused("dtype of input q is f64; allowed: f32", [&](Call& c) {
    c.inputs["q"] = TensorRef(doubles.data(), {2, 9, 2, 8});
  });
  refused("dtype of input seq_idx is f32; allowed: i32", [](Call& c) {
    c.inputs["seq_idx"] = c.floats({2, 9});
  });
  refused("stride of input q, dimension 3 (axis n) is 2; allowed: 1", [](Call& c) {
    c.inputs["q"] = c.floats({2, 9, 2, 8}, {288, 32, 8, 2});
  });
  refused("stride of input q, dimension 2 (axis h) is 16; allowed: 8", [](Call& c) {
    c.inputs["q"] = c.floats({2, 9, 2, 8}, {288, 32, 16, 1});
  });
  refused("input q has 3 strides", [](Call& c) {
    c.inputs["q"] = c.floats({2, 9, 2, 8});
    c.inputs["q"].strides.pop_back();
  });
  refused("input q has no memory", [](Call& c) { c.inputs["q"].data = nullptr; });
  refused("address of input q",
          [](Call& c) { c.inputs["q"].data = static_cast<char*>(c.inputs["q"].data) + 2; });
  refused("output is z; allowed: ", [](Call& c) { c.outputs["z"] = c.floats({2, 9, 2, 5}); });
  refused("output y, dimension 1 (axis t) is 8; allowed: 9", [&](Call& c) {
    c.outputs["y"] = TensorRef(written.data(), {2, 8, 2, 5});
  });
  refused("dtype of output y is f64", [&](Call& c) {
    c.outputs["y"] = TensorRef(doubles.data(), {2, 9, 2, 5});
  });
  refused("strides of output y", [&](Call& c) {
    c.outputs["y"] = TensorRef(written.data(), {2, 9, 2, 5}, {0, 10, 5, 1});
  });
  refused("input h0, dimension 0 (axis b) is 3", [](Call& c) {
    c.inputs["h0"] = c.floats({3, 2, 8, 5});
  });
  refused("input rate", [](Call& c) { c.inputs["rate"] = c.floats({3}); });
}

TEST_CASE("gradients that cannot be asked for") {
  LayerOptions with = options();
  with.wanted = {"seq_idx"};
  CHECK_THROWS_WITH(Layer(retention, with), Contains("wanted gradient is seq_idx; allowed: q, k"));
  with.wanted = {"y"};
  CHECK_THROWS_WITH(Layer(retention, with), Contains("wanted gradient is y"));
  with.wanted.reset();
  with.cotangents = {"q"};
  CHECK_THROWS_WITH(Layer(retention, with), Contains("cotangent is q; allowed: "));
  CHECK_THROWS_AS(differentiate(build_graph(retention), {"y"}, {"seq_idx"}), UsageError);
  CHECK_THROWS_AS(differentiate(build_graph(retention), {"y"}, {"nobody"}), UsageError);

  const Layer layer(retention, options());
  const Call call;
  const Layer::Forward forward = layer.forward(call.inputs);
  std::vector<float> memory(2048, 1);
  const TensorRef y(memory.data(), {2, 9, 2, 5});
  CHECK_NOTHROW(layer.backward(forward.tape, {{"y", y}}));
  CHECK_THROWS_WITH(layer.backward(forward.tape, {{"z", y}}), Contains("cotangent is z"));
  CHECK_THROWS_WITH(layer.backward(forward.tape, {{"y", TensorRef(memory.data(), {2, 8, 2, 5})}}),
                    Contains("as input cot.y, dimension 1 (axis t) has it"));
  CHECK_THROWS_WITH(layer.backward(forward.tape, {{"y", y}}, {{"seq_idx", y}}),
                    Contains("gradient is seq_idx"));
  CHECK_THROWS_WITH(layer.backward(forward.tape, {{"y", y}}, {{"rate", y}}), Contains("rate"));
  CHECK_THROWS_WITH(layer.backward(forward.tape, {{"y", y}}, {{"rate", y}}, true),
                    Contains("shape of gradient rate is (2, 9, 2, 5); allowed: (2)"));
  CHECK_THROWS_WITH(layer.backward(Tape{}, {{"y", y}}), Contains("the tape is of another layer"));
}

TEST_CASE("layers that cannot be built") {
  const auto refused = [](const BlockFunction& block, const LayerOptions& with,
                          const std::string& said) {
    INFO("said: " << said);
    CHECK_THROWS_AS(Layer(block, with), UsageError);
    CHECK_THROWS_WITH(Layer(block, with), Contains(said));
  };
  LayerOptions with = options();
  with.device = "cuda:0";
  refused(retention, with, "device is cuda:0; allowed: host");
  with = options();
  with.dtype = DType::f16;
  refused(retention, with, "dtype is f16");
  with.dtype = DType::i32;
  refused(retention, with, "dtype is i32");
  refused(retention, options("plan=recurrent"), "not on this device yet");
  refused(block_function(SelectiveScanSpec{}), options(), "plan");
  refused(block_function(SelectiveScanSpec{}), options("plan=recurrent"), "not on this device yet");
  refused(block_function(Mamba1Spec{}), options("plan=chunks"), "schedule.plan is chunks");
  const auto undeclared = [](Scope& s) {
    const Expr a = s.input("a", {b, t}), k = s.input("k", {b, t, n}), v = s.input("v", {b, t, p});
    s.output("y", sum(scan(t, a, k * v).leaving * k, n), {b, t, p});
  };
  refused(undeclared, options("plan=chunks"), "schedule.plan is chunks; allowed: another plan");
  refused(undeclared, options(), "nonpositive");
  const auto outer_product = [](Scope& s) {
    const Expr k = s.input("k", {b, t, n}), v = s.input("v", {b, t, p});
    s.output("y", scan(t, -exp(s.param("rate", {})), k * v).leaving, {b, t, n, p});
  };
  refused(outer_product, options(), "without a sum over one of these axes");
  with = options();
  with.threads = -1;
  with.on.reset();
  refused(retention, with, "threads");
}

TEST_CASE("blocks that cannot be written") {
  const auto refused = [](const std::string& said, const BlockFunction& block) {
    INFO("said: " << said);
    CHECK_THROWS_AS(build_graph(block), UsageError);
    CHECK_THROWS_WITH(build_graph(block), Contains(said));
  };
  refused("the block outputs nothing", [](Scope& s) { s.input("x", {b, t}); });
  refused("name of an input is \"x\"", [](Scope& s) {
    s.input("x", {b, t});
    s.input("x", {b, t, n});
  });
  refused("size of axis n is 8; allowed: 9", [](Scope& s) {
    s.output("y", s.input("x", {b, t, n}) + s.input("z", {b, t, Axis("n", 9)}), {b, t, n});
  });
  refused("axes of output y is (b t); allowed: (b t n)", [](Scope& s) {
    s.output("y", s.input("x", {b, t, n}), {b, t});
  });
  refused("state h0 has no leaving value", [](Scope& s) {
    const Expr state = s.state("h0", "h", {b, n});
    s.output("y", state * s.input("x", {b, t, n}), {b, t, n});
  });
  refused("Reduce.axes is \"n\"; allowed: one of (b t)", [](Scope& s) {
    s.output("y", sum(s.input("x", {b, t}), n), {b, t});
  });
  refused("Scan.axis is \"n\"; allowed: one of (b t)", [](Scope& s) {
    s.output("y", scan(n, -exp(s.input("a", {b, t})), s.input("x", {b, t})).leaving, {b, t});
  });
  refused("Cumsum.reset is f32; allowed: i32", [](Scope& s) {
    const Expr x = s.input("x", {b, t});
    s.output("y", cumsum(t, x, {.reset = x}).values, {b, t});
  });
  CHECK_THROWS_WITH(Axis("n", 0), Contains("0"));
  CHECK_THROWS_AS(Scope(DType::i32), UsageError);
}

TEST_CASE("data that breaks a promise, and a schedule that is none") {
  const Graph graph = build_graph(
      [](Scope& s) {
        const Expr a = nonpositive(s.input("a", {b, t}));
        s.output("y", scan(t, a, s.input("x", {b, t})).leaving, {b, t});
      },
      DType::f64);
  CHECK_THROWS_AS(evaluate(graph, {{"a", Tensor64({1, 3}, 0.5)}, {"x", Tensor64({1, 3}, 1)}}),
                  UsageError);
  CHECK_THROWS_AS(evaluate(graph, {{"a", Tensor64({1, 3}, -1)}}), UsageError);
  CHECK_THROWS_AS(evaluate(graph, {{"a", Tensor64({1, 3}, -1)}, {"x", Tensor64({1, 4}, 1)}}),
                  UsageError);
  for (const char* bad :
       {"chunk=0", "chunk=-3", "chunk=many", "chunk=", "chunk", "segments=-1", "segments=few",
        "plan=", "plan=magic", "forward.color=3", "=3", "chunk=99999999999999999999"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_schedule(bad), UsageError);
  }
}

}  // namespace
}  // namespace krait
