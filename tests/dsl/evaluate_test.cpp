// The oracle: scalar operators, Map, Contract, Reduce, sizes and what it refuses.
#include <cmath>
#include <numbers>

#include "evaluate_testing.h"

namespace krait {
namespace {

using Catch::Contains;

TEST_CASE("scalar operators have their stated meaning") {
  const auto of = [](ScalarOp op, double a, double b = 0, double c = 0) {
    return apply_scalar(op, a, b, c);
  };
  REQUIRE(of(ScalarOp::neg, 3) == -3);
  REQUIRE(of(ScalarOp::abs, -3) == 3);
  REQUIRE(of(ScalarOp::exp, 1) == Approx(std::numbers::e));
  REQUIRE(of(ScalarOp::exp_nonpositive, 2) == 1);
  REQUIRE(of(ScalarOp::exp_nonpositive, -2) == std::exp(-2));
  REQUIRE(of(ScalarOp::log, std::numbers::e) == Approx(1));
  REQUIRE(of(ScalarOp::log1p, 1e-12) == Approx(1e-12).epsilon(1e-11));
  REQUIRE(of(ScalarOp::expm1, 1e-12) == Approx(1e-12).epsilon(1e-11));
  REQUIRE(of(ScalarOp::sqrt, 9) == 3);
  REQUIRE(of(ScalarOp::rsqrt, 16) == 0.25);
  REQUIRE(of(ScalarOp::tanh, 0.5) == std::tanh(0.5));
  REQUIRE(of(ScalarOp::sigmoid, 0) == 0.5);
  REQUIRE(of(ScalarOp::sigmoid, -800) == 0);
  REQUIRE(of(ScalarOp::sigmoid, 800) == 1);
  REQUIRE(of(ScalarOp::softplus, 0) == std::log(2.0));
  REQUIRE(of(ScalarOp::softplus, 20.5) == 20.5);
  REQUIRE(of(ScalarOp::softplus, 20) == std::log1p(std::exp(20.0)));
  REQUIRE(of(ScalarOp::softplus, -40) == Approx(std::exp(-40.0)));
  REQUIRE(of(ScalarOp::sin_turns, 0.25) == 1);
  REQUIRE(of(ScalarOp::sin_turns, 1e6 + 0.125) == Approx(std::sqrt(0.5)).epsilon(1e-14));
  REQUIRE(of(ScalarOp::cos_turns, 0.5) == -1);
  REQUIRE(of(ScalarOp::floor, -0.5) == -1);
  REQUIRE(of(ScalarOp::wrap, 0.75) == -0.25);
  REQUIRE(of(ScalarOp::wrap, 0.5) == -0.5);
  REQUIRE(of(ScalarOp::wrap, -0.5) == -0.5);
  for (double x : {std::nextafter(0.5, 0), std::nextafter(-0.5, -1), -1e-20, 12345.5, -7.5}) {
    REQUIRE(of(ScalarOp::wrap, x) >= -0.5);
    REQUIRE(of(ScalarOp::wrap, x) < 0.5);
  }
  REQUIRE(of(ScalarOp::nonpositive, -1) == -1);
  REQUIRE(of(ScalarOp::logical_not, 0) == 1);
  REQUIRE(of(ScalarOp::logical_not, 2) == 0);
  REQUIRE(of(ScalarOp::add, 2, 3) == 5);
  REQUIRE(of(ScalarOp::sub, 2, 3) == -1);
  REQUIRE(of(ScalarOp::mul, 2, 3) == 6);
  REQUIRE(of(ScalarOp::div, 3, 2) == 1.5);
  REQUIRE(of(ScalarOp::min, 2, 3) == 2);
  REQUIRE(of(ScalarOp::max, 2, 3) == 3);
  for (ScalarOp op : {ScalarOp::min, ScalarOp::max}) {
    REQUIRE(std::isnan(of(op, NAN, 1)));
    REQUIRE(std::isnan(of(op, 1, NAN)));
  }
  REQUIRE(of(ScalarOp::less, 2, 3) == 1);
  REQUIRE(of(ScalarOp::less, 3, 3) == 0);
  REQUIRE(of(ScalarOp::less_equal, 3, 3) == 1);
  REQUIRE(of(ScalarOp::less_equal, 4, 3) == 0);
  REQUIRE(of(ScalarOp::equal, 3, 3) == 1);
  REQUIRE(of(ScalarOp::equal, 3, 4) == 0);
  REQUIRE(of(ScalarOp::logical_and, 1, 2) == 1);
  REQUIRE(of(ScalarOp::logical_and, 1, 0) == 0);
  REQUIRE(of(ScalarOp::logical_or, 0, 2) == 1);
  REQUIRE(of(ScalarOp::logical_or, 0, 0) == 0);
  REQUIRE(of(ScalarOp::select, 1, 5, 6) == 5);
  REQUIRE(of(ScalarOp::select, 0, 5, 6) == 6);
}

TEST_CASE("map broadcasts by name and reads indices and extents") {
  Bench bench;
  for (const Axis& axis : {Axis("t"), Axis("h", 2)}) bench.graph.declare(axis);
  Value x = bench.input("x", {"t"}, {3}, {1, 2, 3}), y = bench.input("y", {"h"}, {2}, {10, 20});
  Scalar e;
  // x^2 y where t < extent of t - 1, else -h
  const int a = e.operand(0), b = e.operand(1);
  const int inside =
      e.apply(ScalarOp::less, e.index("t"),
              e.apply(ScalarOp::sub, e.extent(Extent::symbolic("t")), e.constant(1)));
  e.finish(e.apply(ScalarOp::select, inside,
                   e.apply(ScalarOp::mul, e.apply(ScalarOp::mul, a, a), b),
                   e.apply(ScalarOp::neg, e.index("h"))));
  REQUIRE(bench.data(bench.graph.map(e, {x, y}), {"h", "t"}) == Numbers{10, 40, 0, 20, 80, -1});
  // The operands are what they were, although the map may work in place.
  REQUIRE(bench.data(x, {"t"}) == Numbers{1, 2, 3});
  REQUIRE(bench.data(bench.graph.map(ScalarOp::less, x, y), {"t", "h"}) ==
          Numbers{1, 1, 1, 1, 1, 1});
}

TEST_CASE("a value that is read again survives maps that work in place") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  Value x = bench.input("x", {"t"}, {2}, {1, 2});
  Value y = bench.graph.map(ScalarOp::neg, x);
  Value z = bench.graph.map(ScalarOp::mul, y, y);
  Value w = bench.graph.map(ScalarOp::sub, z, y);
  Value v = bench.graph.contract({}, {w, z, z});
  REQUIRE(bench.data(v, {"t"}) == Numbers{2, 96});
  Graph graph = bench.graph;
  for (Value value : {x, y, z, w, v})
    graph.add_output("%" + std::to_string(value.node), value, {"t"});
  const Tensors64 all = evaluate(graph, bench.inputs);
  REQUIRE(all.at("%" + std::to_string(x.node)).data == Numbers{1, 2});
  REQUIRE(all.at("%" + std::to_string(y.node)).data == Numbers{-1, -2});
  REQUIRE(all.at("%" + std::to_string(z.node)).data == Numbers{1, 4});
  REQUIRE(all.at("%" + std::to_string(w.node)).data == Numbers{2, 6});
}

TEST_CASE("a constant fills its axes") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  Value x = bench.input("x", {"t"}, {2}, {1, 2});
  Value c = bench.graph.constant(3.5, DType::f64, {"t"});
  REQUIRE(bench.data(c, {"t"}) == Numbers{3.5, 3.5});
  REQUIRE(bench.data(bench.graph.contract({"t"}, {x, c}), {}) == Numbers{10.5});
}

// Every operand over some of the axes a b c d, against a loop over all of them.
TEST_CASE("contract against a loop over every axis") {
  const std::vector<std::pair<std::string, std::int64_t>> sizes{
      {"a", 2}, {"b", 3}, {"c", 4}, {"d", 5}};
  const auto names = [&](int mask) {
    AxisNames axes;
    for (int d = 0; d < 4; ++d)
      if ((mask >> d & 1) != 0) axes.push_back(sizes[d].first);
    return axes;
  };
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const int count = 1 + trial % 4;
    std::vector<int> masks;
    int all = 0;
    for (int i = 0; i < count; ++i) {
      masks.push_back(static_cast<int>(random() % 16));
      all |= masks.back();
    }
    const int sum = static_cast<int>(random() % 16) & all;
    Bench bench;
    bench.random.seed(random());
    for (const auto& [axis, size] : sizes) bench.graph.declare(Axis(axis, size));
    std::vector<Value> operands;
    for (int i = 0; i < count; ++i) {
      std::vector<std::int64_t> shape;
      // Stored innermost first, so that no order is the one that the graph would choose.
      AxisNames order = names(masks[i]);
      std::reverse(order.begin(), order.end());
      for (const auto& axis : order) shape.push_back(bench.graph.axis(axis).extent.offset);
      operands.push_back(bench.random_input("x" + std::to_string(i), order, shape, -1, 1));
    }
    const AxisNames kept = names(all & ~sum);
    INFO("trial " << trial << " sum mask " << sum);
    const Numbers got = bench.data(bench.graph.contract(names(sum), operands), kept);
    Numbers expected(got.size(), 0);
    std::vector<std::int64_t> extents;
    for (int d = 0; d < 4; ++d) extents.push_back((all >> d & 1) != 0 ? sizes[d].second : 1);
    for (std::int64_t flat = 0; flat < extents[0] * extents[1] * extents[2] * extents[3]; ++flat) {
      std::int64_t at[4], rest = flat;
      for (int d = 3; d >= 0; --d) at[d] = rest % extents[d], rest /= extents[d];
      double product = 1;
      for (int i = 0; i < count; ++i) {
        std::int64_t offset = 0;
        for (int d = 3; d >= 0; --d)
          if ((masks[i] >> d & 1) != 0) offset = offset * extents[d] + at[d];
        product *= bench.inputs["x" + std::to_string(i)].data[offset];
      }
      std::int64_t to = 0;
      for (int d = 0; d < 4; ++d)
        if (((all & ~sum) >> d & 1) != 0) to = to * extents[d] + at[d];
      expected[to] += product;
    }
    require_close(got, expected);
  }
}

TEST_CASE("contract sums many terms into few and into many columns") {
  Bench bench;
  for (const Axis& axis : {Axis("m", 2), Axis("k", 11), Axis("n", 6)}) bench.graph.declare(axis);
  Value x = bench.random_input("x", {"m", "k"}, {2, 11}, -1, 1);
  Value y = bench.random_input("y", {"k", "n"}, {11, 6}, -1, 1);
  Value z = bench.random_input("z", {"m", "k"}, {2, 11}, -1, 1);
  const Numbers &xs = bench.inputs["x"].data, &ys = bench.inputs["y"].data,
                &zs = bench.inputs["z"].data;
  Numbers xy(12, 0), xz(2, 0);
  for (int m = 0; m < 2; ++m)
    for (int k = 0; k < 11; ++k) {
      for (int n = 0; n < 6; ++n) xy[m * 6 + n] += xs[m * 11 + k] * ys[k * 6 + n];
      xz[m] += xs[m * 11 + k] * zs[m * 11 + k];
    }
  require_close(bench.data(bench.graph.contract({"k"}, {x, y}), {"m", "n"}), xy);
  require_close(bench.data(bench.graph.contract({"k"}, {y, x}), {"m", "n"}), xy);
  require_close(bench.data(bench.graph.contract({"k"}, {x, z}), {"m"}), xz);
}

TEST_CASE("reduce sums and finds the largest") {
  Bench bench;
  for (const Axis& axis : {Axis("a", 2), Axis("b", 3)}) bench.graph.declare(axis);
  Value x = bench.input("x", {"a", "b"}, {2, 3}, {-1, -2, -3, -40, -50, -60});
  REQUIRE(bench.data(bench.graph.reduce(Reduce::Kind::sum, {"b"}, x), {"a"}) == Numbers{-6, -150});
  REQUIRE(bench.data(bench.graph.reduce(Reduce::Kind::sum, {"a", "b"}, x), {}) == Numbers{-156});
  REQUIRE(bench.data(bench.graph.reduce(Reduce::Kind::max, {"b"}, x), {"a"}) == Numbers{-1, -40});
  REQUIRE(bench.data(bench.graph.reduce(Reduce::Kind::max, {"a"}, x), {"b"}) ==
          Numbers{-1, -2, -3});
}

TEST_CASE("a log decay that is positive is refused by name and number") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  Value x = bench.input("log_decay", {"t"}, {3}, {-1, 0, 0});
  Value y = bench.graph.map(ScalarOp::nonpositive, x);
  REQUIRE(bench.data(y, {"t"}) == Numbers{-1, 0, 0});
  bench.inputs["log_decay"].data[1] = 0.125;
  REQUIRE_THROWS_AS(bench.run(y, {"t"}), UsageError);
  REQUIRE_THROWS_WITH(bench.run(y, {"t"}), Contains("log_decay") && Contains("0.125"));
  Scalar e;
  e.finish(e.apply(ScalarOp::nonpositive, e.apply(ScalarOp::mul, e.operand(0), e.constant(2))));
  Value twice = bench.graph.map(e, {x});
  bench.graph.set_label(twice, "dA");
  REQUIRE_THROWS_WITH(bench.run(twice, {"t"}), Contains("dA") && Contains("0.25"));
}

TEST_CASE("sizes come from the shapes of inputs") {
  Bench bench;
  for (const Axis& axis : {Axis("b"), Axis("t"), Axis("h", 3), Axis("s", Extent{"t", 2, 1})})
    bench.graph.declare(axis);
  Value x = bench.random_input("x", {"b", "t", "h"}, {2, 5, 3}, -1, 1);
  bench.random_input("w", {"s", "b"}, {7, 2}, -1, 1);
  REQUIRE(sizes_from_inputs(bench.graph, bench.inputs) == Sizes{{"b", 2}, {"t", 5}});
  const auto refuses = [&](const std::string& name, const Tensor64& tensor) {
    Bench broken = bench;
    broken.inputs[name] = tensor;
    try {
      broken.run(x, {"b", "t", "h"});
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  REQUIRE_THAT(refuses("x", Tensor64({2, 5, 4})),
               Contains("input x") && Contains("axis h") && Contains("4") && Contains("3"));
  REQUIRE_THAT(refuses("w", Tensor64({8, 2})),
               Contains("input w") && Contains("axis s") && Contains("8") && Contains("7"));
  REQUIRE_THAT(refuses("w", Tensor64({7, 3})), Contains("input w") && Contains("axis b"));
  REQUIRE_THAT(refuses("x", Tensor64({2, 5})), Contains("input x") && Contains("dimensions"));
  REQUIRE_THAT(refuses("x", Tensor64({2, 0, 3})), Contains("input x") && Contains("axis t"));
  Tensor64 short_data({2, 5, 3});
  short_data.data.pop_back();
  REQUIRE_THAT(refuses("x", short_data), Contains("input x") && Contains("29"));
  Bench missing = bench;
  missing.inputs.erase("w");
  REQUIRE_THROWS_WITH(missing.run(x, {"b", "t", "h"}), Contains("input w") && Contains("missing"));
}

TEST_CASE("an i32 input holds whole numbers") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  Value x = bench.input("count", {"t"}, {2}, {1, 2.5}, DType::i32);
  REQUIRE_THROWS_WITH(bench.run(x, {"t"}), Contains("count") && Contains("2.5"));
}

}  // namespace
}  // namespace krait
