// Bits of a GPU against those of the host, with math=exact.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <random>

#include "runtime/krait.h"

namespace krait {
namespace {

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

Tensor drawn(const Shape& shape, unsigned seed) {
  Tensor made(DType::f32, shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  for (std::int64_t i = 0; i < made.count(); ++i) made.data_as<float>()[i] = normal(random);
  return made;
}

TEST_CASE("with math=exact a GPU gives the host's bits") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  LayerOptions options;
  options.schedule = parse_schedule("chunk=8 math=exact");
  options.cotangents = options.wanted = std::vector<std::string>{};
  const Layer host(functions, options);
  options.device = "cuda:0";
  const Layer gpu(functions, options);
  const Tensor x = drawn({2, 21, 3, 5}, 1), a = drawn({2, 21, 3}, 2);
  const Layer::Forward expected = host.forward({{"x", x.ref()}, {"a", a.ref()}});
  const Tensor gpu_x = to_device(x.ref(), *gpu.device()), gpu_a = to_device(a.ref(), *gpu.device());
  const Layer::Forward got = gpu.forward({{"x", gpu_x.ref()}, {"a", gpu_a.ref()}});
  REQUIRE(got.outputs.size() == expected.outputs.size());
  for (const auto& [name, tensor] : expected.outputs) {
    INFO(name);
    const Tensor back = to_host(got.outputs.at(name).ref(), *gpu.device());
    CHECK(std::memcmp(back.data(), tensor.data(), static_cast<std::size_t>(tensor.count()) * 4) ==
          0);
  }
}

}  // namespace
}  // namespace krait
