#include "dsl/error.h"
#include "runtime/layer.h"
#include "tests/runtime/allocations.h"
#include "tests/runtime/execution.h"

namespace krait {
namespace {

using Catch::Contains;

const Axis b("b"), t("t");

/// Projections, a convolution of three taps, and a scan: the three kinds of carried things.
void recurrence(Scope& s) {
  const Axis d("d", 32), n("n", 16), p("p", 20), taps("taps", 2);
  const Expr u = s.input("u", {b, t, d});
  const Init small{Init::Kind::fan_in, 32};
  const Expr x = contract({u, s.param("w_x", {p, d}, small)}, {d});
  const Expr k = contract({u, s.param("w_k", {n, d}, small)}, {d});
  const Expr before = s.state("conv0", "conv", {b, p, taps});
  const Expr w = s.param("tap", {p}, {Init::Kind::uniform, -1, 1});
  const Expr mixed =
      silu(x + w * shift(x, t, 1, before, taps) + shift(x, t, 2, before, taps) * 0.5);
  s.leave("conv", tail(concat({before, x}, {taps, t}, Axis("tt", t.extent.plus(2))),
                       Axis("tt", t.extent.plus(2)), taps));
  const Expr rate = s.param("rate", {}, {Init::Kind::uniform, -2, -1});
  const ScanResult state = scan(t, -exp(rate) * sigmoid(sum(k, n)), k * mixed,
                                {.initial = s.state("h0", "h", {b, n, p})});
  s.leave("h", state.last);
  s.output("y", sum(state * k, n), {b, t, p});
}

LayerOptions options(DType dtype, const std::string& schedule = "chunk=8") {
  LayerOptions options;
  options.dtype = dtype;
  options.schedule = parse_schedule(schedule);
  options.on = test_device();
  options.wanted = std::vector<std::string>{};
  return options;
}

/// Times begin .. end - 1 of a tensor (b, t, ...), in place.
TensorRef times(const TensorRef& whole, std::int64_t begin, std::int64_t end) {
  TensorRef part = whole;
  part.shape[1] = end - begin;
  part.data =
      static_cast<char*>(whole.data) + begin * whole.strides[1] * size_in_bytes(whole.dtype);
  return part;
}

Tensor random(const Shape& shape, std::uint64_t seed, DType dtype) {
  return from_float64(random_tensor(shape, seed), dtype);
}

TEST_CASE("a window is what its first part and then single steps give") {
  for (DType dtype : {DType::f64, DType::f32}) {
    const Layer layer(recurrence, options(dtype));
    const double bound = dtype == DType::f64 ? 1e-12 : 1e-5;
    const std::int64_t length = 23;
    const Tensor u = random({2, length, 32}, 1, dtype);
    const Layer::Forward whole = layer.forward({{"u", u.ref()}});
    for (std::int64_t prefill : {0, 1, 9, 22}) {
      INFO(name(dtype) << " after " << prefill);
      Tensors states = layer.zero_states({{"b", 2}, {"t", 1}});
      Tensor y(dtype, {2, length, 20});
      if (prefill > 0) {
        Layer::Forward first =
            layer.forward({{"u", times(u.ref(), 0, prefill)}}, {{"y", times(y.ref(), 0, prefill)}});
        states = layer.take_states(first.outputs);
        CHECK(first.outputs.empty());
      }
      for (std::int64_t i = prefill; i < length; ++i)
        layer.step({{"u", times(u.ref(), i, i + 1)}}, refs(states),
                   {{"y", times(y.ref(), i, i + 1)}});
      CHECK(relative_error(to_float64(y.ref()), to_float64(whole.outputs.at("y").ref())) <= bound);
      for (const auto& [in, out] : {std::pair{"h0", "h"}, std::pair{"conv0", "conv"}})
        CHECK(relative_error(to_float64(states.at(in).ref()),
                             to_float64(whole.outputs.at(out).ref())) <= bound);
    }
  }
}

TEST_CASE("a step allocates nothing") {
  for (const char* libblas : {"", "none"}) {
    LayerOptions with = options(DType::f32, "plan=step");
    with.on = test_device(2, libblas);
    const Layer layer(recurrence, with);
    const Tensor u = random({3, 1, 32}, 1, DType::f32);
    Tensor y(DType::f32, {3, 1, 20});
    const Tensors states = layer.zero_states({{"b", 3}, {"t", 1}});
    const TensorMap inputs{{"u", u.ref()}}, state_refs = refs(states), outputs{{"y", y.ref()}};
    for (int i = 0; i < 20; ++i) layer.step(inputs, state_refs, outputs);
    const std::int64_t made = allocations_of([&] {
      for (int i = 0; i < 20; ++i) layer.step(inputs, state_refs, outputs);
    });
    CHECK(made == 0);
    CHECK(allocations_of([] { const Tensor counted(DType::f32, {3}); }) > 0);
  }
}

TEST_CASE("states are updated where the caller keeps them, whatever their strides") {
  const Layer layer(recurrence, options(DType::f64, "plan=step"));
  const Tensor u = random({2, 1, 32}, 3, DType::f64);
  Tensors dense = layer.zero_states({{"b", 2}, {"t", 1}});
  for (auto& [name, state] : dense) copy(random(state.shape(), 8, DType::f64).ref(), state.ref());
  // Two slots out of five, in a table.
  Tensor table(DType::f64, {5, 16, 20});
  const TensorRef slots{table.data_as<double>() + 320, {2, 16, 20}, {640, 20, 1}};
  copy(dense.at("h0").ref(), slots);
  TensorMap states = refs(dense);
  Tensor conv(DType::f64, {2, 20, 2});
  copy(dense.at("conv0").ref(), conv.ref());
  Tensor y(DType::f64, {2, 1, 20}), z(DType::f64, {2, 1, 20});
  layer.step({{"u", u.ref()}}, states, {{"y", y.ref()}});
  layer.step({{"u", u.ref()}}, {{"h0", slots}, {"conv0", conv.ref()}}, {{"y", z.ref()}});
  CHECK(to_float64(slots).data == to_float64(dense.at("h0").ref()).data);
  CHECK(to_float64(z.ref()).data == to_float64(y.ref()).data);
  double untouched = 0;
  for (int slot : {0, 2, 4})
    for (int i = 0; i < 320; ++i) untouched += std::abs(table.data_as<double>()[slot * 320 + i]);
  CHECK(untouched == 0);
}

TEST_CASE("a state that is read where it is written needs no copy") {
  const Layer layer(
      [](Scope& s) {
        const Axis n("n", 24);
        const Expr x = s.input("x", {b, t, n});
        const Expr before = s.state("h0", "h", {b, n});
        const ScanResult h = scan(t, -exp(s.param("rate", {n})), x, {.initial = before});
        s.leave("h", h.last);
        s.output("y", h * x, {b, t, n});
      },
      options(DType::f32, "plan=step"));
  CHECK(layer.steps_in_place("h0"));
  CHECK_THROWS_WITH(layer.steps_in_place("g"), Contains("state is g"));
  const Layer mixed(recurrence, options(DType::f32, "plan=step"));
  CHECK(mixed.steps_in_place("h0"));
  CHECK(!mixed.steps_in_place("conv0"));  // its elements move
}

TEST_CASE("what does not fit a step is refused by name") {
  const Layer layer(recurrence, options(DType::f32, "plan=step"));
  const Tensor u = random({2, 1, 32}, 3, DType::f32);
  Tensor y(DType::f32, {2, 1, 20});
  Tensors states = layer.zero_states({{"b", 2}, {"t", 1}});
  const TensorMap inputs{{"u", u.ref()}}, outputs{{"y", y.ref()}};
  CHECK_NOTHROW(layer.step(inputs, refs(states), outputs));
  CHECK_THROWS_WITH(layer.step({}, refs(states), outputs), Contains("input u is missing"));
  CHECK_THROWS_WITH(layer.step(inputs, refs(states), {}), Contains("output y is missing"));
  CHECK_THROWS_WITH(layer.step(inputs, {}, outputs), Contains("is missing; allowed: every state"));
  CHECK_THROWS_WITH(layer.step({{"v", u.ref()}}, refs(states), outputs), Contains("input is v"));
  CHECK_THROWS_WITH(layer.step(inputs, inputs, outputs), Contains("state is u"));
  CHECK_THROWS_WITH(layer.step(inputs, refs(states), {{"h", y.ref()}}), Contains("output is h"));
  const Tensor two = random({2, 2, 32}, 3, DType::f32);
  CHECK_THROWS_WITH(layer.step({{"u", two.ref()}}, refs(states), outputs),
                    Contains("input u, dimension 1 (axis t) is 2; allowed: 1"));
  CHECK_THROWS_WITH(layer.forward(inputs), Contains("built without forward"));
}

}  // namespace
}  // namespace krait
