// Tensors of bf16 and f16 on a GPU, against the host's bits.
#include <catch2/catch.hpp>

#include "tests/gpu/same_bits.h"

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
  Tensors inputs;
  inputs["x"] = patterns(DType::bf16);
  inputs["y"] = patterns(DType::f16);
  const Tensors outputs = testing::require_same_bits(halves, "chunk=64", inputs);
  CHECK(outputs.at("before").dtype() == DType::bf16);
  CHECK(outputs.at("later").dtype() == DType::f16);
}

}  // namespace
}  // namespace krait
