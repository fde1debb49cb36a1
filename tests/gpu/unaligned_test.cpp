// Tensors that start anywhere, with rows anywhere apart: the emulated GPU reports a wide access
// that is not aligned, and a launch with a report fails.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <random>

#include "runtime/krait.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), h("h", 2), n("n", 8), p("p", 4);

void outer_products(Scope& s) {
  const Expr k = s.input("k", {b, t, h, n}), v = s.input("v", {b, t, h, p});
  const Expr q = s.input("q", {b, t, h, n}), a = s.input("a", {b, t, h});
  const ScanResult state = scan(t, -softplus(a), k * v);
  s.output("y", sum(state.leaving * q, n), {b, t, h, p});
  s.output("sum", v + square(v), {b, t, h, p});
}

/// A tensor (b 2, t 21, h 2, last) that starts `first` elements into its memory and whose positions
/// lie `gap` elements further apart than they need.
struct Slice {
  Tensor memory;
  TensorRef view;
  Slice(std::int64_t last, std::int64_t first, std::int64_t gap, Device& device, unsigned seed) {
    const std::int64_t row = 2 * last + gap;
    Tensor host(DType::f32, {first + 2 * 21 * row});
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const Shape shape{2, 21, 2, last}, strides{21 * row, row, last, 1};
    // The same numbers whatever the gap.
    for (std::int64_t i = 0; i < 42; ++i)
      for (std::int64_t j = 0; j < 2 * last; ++j)
        host.data_as<float>()[first + i * row + j] = normal(random);
    memory = to_device(host.ref(), device);
    view = TensorRef(static_cast<const float*>(memory.data()) + first, DType::f32, shape, strides);
  }
};

TEST_CASE("tensors of a GPU may start and step by any number of elements") {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  LayerOptions options;
  options.schedule = parse_schedule("chunk=8");
  options.device = "cuda:0";
  const Layer layer(outer_products, options);
  Device& gpu = *layer.device();
  const auto bits = [&](std::int64_t first, std::int64_t gap) {
    const Slice k(8, first, gap, gpu, 1), v(4, first, gap, gpu, 2), q(8, first, gap, gpu, 3);
    const Slice a(1, first, gap, gpu, 4), y(4, first, gap, gpu, 5), sum(4, first, gap, gpu, 6);
    const TensorRef a_view(a.view.data, DType::f32, {2, 21, 2},
                           {a.view.strides[0], a.view.strides[1], 1});
    layer.forward({{"k", k.view}, {"v", v.view}, {"q", q.view}, {"a", a_view}},
                  {{"y", y.view}, {"sum", sum.view}});
    std::vector<float> all;
    for (const Slice* slice : {&y, &sum}) {
      const Tensor dense = to_host(slice->view, gpu);
      const float* data = dense.data_as<float>();
      all.insert(all.end(), data, data + dense.count());
    }
    return all;
  };
  const std::vector<float> aligned = bits(0, 0);
  for (const auto& [first, gap] : {std::pair{1, 0}, {2, 0}, {0, 1}, {3, 5}, {4, 2}, {4, 4}}) {
    INFO("from element " << first << " on, " << gap << " more a row");
    CHECK(bits(first, gap) == aligned);
  }
}

}  // namespace
}  // namespace krait
