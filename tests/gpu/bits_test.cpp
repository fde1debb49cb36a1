// Bits of a GPU against those of the host, with math=exact.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "runtime/krait.h"
#include "tests/gpu/same_bits.h"

namespace krait {
namespace {

using testing::drawn;

const Axis b("b"), t("t"), h("h", 3), n("n", 5);

/// Every elementary function, and a running sum; no sum whose order a device may choose.
void functions(Scope& s) {
  const Expr x = s.input("x", {b, t, h, n}), a = s.input("a", {b, t, h});
  s.output("running", cumsum(t, softplus(a) * tanh(x)).values, {b, t, h, n});
  s.output("exp", exp(x) + expm1(x), {b, t, h, n});
  s.output("log", log(abs(x)) + log1p(square(x)), {b, t, h, n});
  s.output("turns", sin_turns(x) * cos_turns(x), {b, t, h, n});
  s.output("gate", silu(x) + rsqrt(square(x) + 1), {b, t, h, n});
}

TEST_CASE("with math=exact a GPU gives the host's bits") {
  Tensors inputs;
  inputs["x"] = drawn({2, 21, 3, 5}, 1);
  inputs["a"] = drawn({2, 21, 3}, 2);
  testing::require_same_bits(functions, "chunk=8", inputs);
}

/// A recurrence with products, so that its loop over chunks loads tiles.
void outer_products(Scope& s) {
  const Axis heads("h", 2), state("n", 16), channel("p", 8);
  const Expr k = s.input("k", {b, t, heads, state}), v = s.input("v", {b, t, heads, channel});
  const Expr q = s.input("q", {b, t, heads, state}), a = s.input("a", {b, t, heads});
  const ScanResult states = scan(t, -softplus(a), k * v);
  s.output("y", sum(states.leaving * q, state), {b, t, heads, channel});
}

TEST_CASE("loads that run ahead change no bit") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  const auto gradients = [](const std::string& schedule) {
    LayerOptions options;
    options.schedule = parse_schedule("chunk=16 " + schedule);
    options.device = "cuda:0";
    const Layer layer(outer_products, options);
    Device& gpu = *layer.device();
    const Tensor k = to_device(drawn({2, 51, 2, 16}, 1).ref(), gpu);
    const Tensor v = to_device(drawn({2, 51, 2, 8}, 2).ref(), gpu);
    const Tensor q = to_device(drawn({2, 51, 2, 16}, 3).ref(), gpu);
    const Tensor a = to_device(drawn({2, 51, 2}, 4).ref(), gpu);
    const Tensor y = to_device(drawn({2, 51, 2, 8}, 5).ref(), gpu);
    Layer::Forward made =
        layer.forward({{"k", k.ref()}, {"v", v.ref()}, {"q", q.ref()}, {"a", a.ref()}});
    Tensors all = layer.backward(made.tape, {{"y", y.ref()}});
    for (auto& [name, tensor] : made.outputs) all["out." + name] = std::move(tensor);
    std::map<std::string, std::vector<float>> bits;
    for (const auto& [name, tensor] : all) {
      const Tensor host = to_host(tensor.ref(), gpu);
      bits[name].assign(host.data_as<float>(), host.data_as<float>() + host.count());
    }
    return bits;
  };
  CHECK(gradients("stages=2") == gradients("stages=1"));
}

/// Products of parameters and their gradients.
void products(Scope& s) {
  const Axis d("d", 40), e("e", 72);
  s.output("y", contract({s.input("x", {b, t, d}), s.param("w", {e, d})}, {d}), {b, t, e});
}

TEST_CASE("with math=exact generated products have the host's bits, sums over sequences too") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  LayerOptions options;
  options.schedule = parse_schedule("math=exact");
  const Layer host(products, options);
  options.device = "cuda:0";
  const Layer gpu(products, options);
  const Tensor x = drawn({3, 150, 40}, 1), w = drawn({72, 40}, 2), dy = drawn({3, 150, 72}, 3);
  const auto run = [&](const Layer& layer) {
    Device& device = *layer.device();
    const Tensor own_x = to_device(x.ref(), device), own_w = to_device(w.ref(), device),
                 own_dy = to_device(dy.ref(), device);
    const Layer::Forward forward = layer.forward({{"x", own_x.ref()}, {"w", own_w.ref()}});
    const Tensors gradients = layer.backward(forward.tape, {{"y", own_dy.ref()}});
    std::vector<Tensor> all;
    for (const Tensor* tensor : {&forward.outputs.at("y"), &gradients.at("x"), &gradients.at("w")})
      all.push_back(to_host(tensor->ref(), device));
    return all;
  };
  const std::vector<Tensor> expected = run(host), got = run(gpu);
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(i);
    CHECK(std::memcmp(got[i].data(), expected[i].data(),
                      static_cast<std::size_t>(got[i].count()) * 4) == 0);
  }
}

}  // namespace
}  // namespace krait
