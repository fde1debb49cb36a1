// Recurrences that nobody but this file knows: forward, backward, in chunks and step by step.
#include "tests/runtime/layers.h"

namespace krait {
namespace {

const Axis b("b"), t("t");

/// Retention: a decay per head that does not depend on the data.
void retention(Scope& s) {
  const Axis h("h", 3), n("n", 8), p("p", 5);
  const Expr q = s.input("q", {b, t, h, n}), k = s.input("k", {b, t, h, n});
  const Expr v = s.input("v", {b, t, h, p});
  const Expr rate = s.param("rate", {h}, {Init::Kind::uniform, -3, -1});
  const Expr before = s.state("h0", "h", {b, h, n, p});
  const ScanResult state = scan(t, -exp(rate), k * v, {.initial = before});
  s.output("y", sum(state * q, n), {b, t, h, p});
  s.leave("h", state.last);
}

/// Two inputs, each with keys of its own, summed into one state.
void two_inputs(Scope& s) {
  const Axis n("n", 8), p("p", 6);
  const Expr q = s.input("q", {b, t, n});
  const Expr k1 = s.input("k1", {b, t, n}), v1 = s.input("v1", {b, t, p});
  const Expr k2 = s.input("k2", {b, t, n}), v2 = s.input("v2", {b, t, p});
  const Expr decay = -softplus(s.input("a", {b, t}));
  const Expr before = s.state("h0", "h", {b, n, p});
  const ScanResult state = scan(t, decay, k1 * v1 + k2 * v2, {.initial = before});
  s.output("y", sum(state * q, n), {b, t, p});
  s.leave("h", state.last);
}

/// A decay that depends on the data, a gate on what comes out, a state without a second axis, and
/// a running sum beside it.
void gated(Scope& s) {
  const Axis h("h", 2), n("n", 8), p("p", 8);
  const Expr x = s.input("x", {b, t, h, p}), g = s.input("g", {b, t, h, p});
  const Expr k = s.input("k", {b, t, h, n}), f = s.input("f", {b, t, h});
  const Expr bias = s.param("bias", {h}, {Init::Kind::uniform, -1, 1});
  const Expr decay = -softplus(f + bias);
  const Expr before = s.state("h0", "h", {b, h, n, p});
  const ScanResult state = scan(t, decay, k * x, {.initial = before});
  const Expr mean_before = s.state("m0", "m", {b, h});
  const ScanResult level = scan(t, decay, f, {.initial = mean_before});
  s.output("y", (sum(state * k, n) + level) * silu(g), {b, t, h, p});
  s.leave("h", state.last);
  s.leave("m", level.last);
}

const std::pair<const char*, BlockFunction> kOwn[] = {
    {"retention", retention}, {"two inputs", two_inputs}, {"gated", gated}};

TEST_CASE("recurrences of a user's own: outputs and gradients, any length") {
  for (const auto& [name, block] : kOwn)
    for (DType dtype : {DType::f64, DType::f32}) {
      LayerOptions options;
      options.dtype = dtype;
      options.schedule = parse_schedule("chunk=16 backward.chunk=8");
      options.on = test_device();
      const Layer layer(block, options);
      for (std::int64_t length : {1, 15, 16, 17, 53}) {
        INFO(name << " " << krait::name(dtype) << " t " << length);
        const Tensors64 inputs = random_inputs(layer.graph(), {{"b", 2}, {"t", length}}, 4);
        check_layer(layer, inputs, dtype == DType::f64 ? 1e-12 : 1e-5);
      }
    }
}

TEST_CASE("recurrences of a user's own, step by step") {
  for (const auto& [name, block] : kOwn) {
    INFO(name);
    LayerOptions options;
    options.dtype = DType::f64;
    options.schedule = parse_schedule("plan=step");
    options.on = test_device();
    const Layer layer(block, options);
    const std::int64_t length = 9;
    const Graph& graph = layer.graph();
    const Tensors64 inputs = random_inputs(graph, {{"b", 2}, {"t", length}}, 4);
    const Tensors64 reference = evaluate(graph, inputs);
    const Tensors given = tensors_for(graph, inputs);
    TensorMap states, parameters;
    for (const StatePair& pair : graph.states()) states[pair.in] = given.at(pair.in).ref();
    Tensor y(DType::f64, reference.at("y").shape);
    const auto at = [](TensorRef whole, std::int64_t i) {
      whole.data = static_cast<double*>(whole.data) + i * whole.strides[1];
      whole.shape[1] = 1;
      return whole;
    };
    for (std::int64_t i = 0; i < length; ++i) {
      TensorMap now;
      for (Value value : graph.inputs()) {
        const Input& input = graph.input_of(value);
        if (input.role == Role::state) continue;
        const TensorRef whole = given.at(input.name).ref();
        now[input.name] = input.role == Role::data ? at(whole, i) : whole;
      }
      layer.step(now, states, {{"y", at(y.ref(), i)}});
    }
    CHECK(relative_error(to_float64(y.ref()), reference.at("y")) <= 1e-12);
    for (const StatePair& pair : graph.states())
      CHECK(relative_error(to_float64(states.at(pair.in)), reference.at(pair.out)) <= 1e-12);
  }
}

}  // namespace
}  // namespace krait
