// Tensors of bf16 and f16 on a GPU, against the host's bits.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "runtime/krait.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), n("n", 5);

/// Halves that are computed with in f32, and halves that stay such.
void halves(Scope& s) {
  const Expr x = s.input("x", {b, t, n}, DType::bf16), y = s.input("y", {b, t, n}, DType::f16);
  s.output("product", x * y, {b, t, n});
  s.output("running", cumsum(t, x + y).values, {b, t, n});
  s.output("before", shift(x, t, 1, 0.3), {b, t, n});
  s.output("later", shift(y, t, -2, 1e-7), {b, t, n});
}

/// Every 16-bit pattern of a number in turn: halves below the least normal, infinities too.
Tensor patterns(DType dtype) {
  Tensor made(dtype, {2, 6560, 5});
  auto* bits = static_cast<std::uint16_t*>(made.data());
  const std::uint32_t infinity = dtype == DType::f16 ? 0x7c00u : 0x7f80u;
  for (std::int64_t i = 0; i < made.count(); ++i) {
    const auto pattern = static_cast<std::uint32_t>(i) & 0xffffu;
    bits[i] = static_cast<std::uint16_t>((pattern & 0x7fffu) > infinity ? 0u : pattern);
  }
  return made;
}

TEST_CASE("bf16 and f16 are read and written as on the host") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  LayerOptions options;
  options.schedule = parse_schedule("chunk=64 math=exact");
  options.cotangents = options.wanted = std::vector<std::string>{};
  const Layer host(halves, options);
  options.device = "cuda:0";
  const Layer gpu(halves, options);
  Device& device = *gpu.device();
  const Tensor x = patterns(DType::bf16), y = patterns(DType::f16);
  const Layer::Forward expected = host.forward({{"x", x.ref()}, {"y", y.ref()}});
  const Tensor on_x = to_device(x.ref(), device), on_y = to_device(y.ref(), device);
  const Layer::Forward got = gpu.forward({{"x", on_x.ref()}, {"y", on_y.ref()}});
  REQUIRE(got.outputs.at("before").dtype() == DType::bf16);
  REQUIRE(got.outputs.at("later").dtype() == DType::f16);
  for (const char* name : {"before", "later"}) {
    INFO(name);
    const Tensor back = to_host(got.outputs.at(name).ref(), device);
    const Tensor& wanted = expected.outputs.at(name);
    CHECK(std::memcmp(back.data(), wanted.data(), static_cast<std::size_t>(wanted.count()) * 2) ==
          0);
  }
  for (const char* name : {"product", "running"}) {
    INFO(name);
    const Tensor back = to_host(got.outputs.at(name).ref(), device);
    const Tensor& wanted = expected.outputs.at(name);
    std::int64_t differ = 0;
    for (std::int64_t i = 0; i < wanted.count(); ++i) {
      const float a = back.data_as<float>()[i], c = wanted.data_as<float>()[i];
      differ += std::memcmp(&a, &c, 4) != 0 && (a == a || c == c) ? 1 : 0;
    }
    CHECK(differ == 0);
  }
}

}  // namespace
}  // namespace krait
