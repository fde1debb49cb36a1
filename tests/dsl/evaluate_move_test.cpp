// Ops of the oracle that move elements, by values worked by hand.
#include "evaluate_testing.h"

namespace krait {
namespace {

using Catch::Contains;

TEST_CASE("shift back, ahead, and by more than the window") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  bench.graph.declare(Axis("c", 2));
  Value x = bench.input("x", {"t", "c"}, {3, 2}, {1, 10, 2, 20, 3, 30});
  const auto run = [&](std::int64_t steps, double fill) {
    return bench.data({bench.graph.add(Shift{"t", steps, fill, false, ""}, {x})}, {"c", "t"});
  };
  REQUIRE(run(1, 0) == Numbers{0, 1, 2, 0, 10, 20});
  REQUIRE(run(2, -5) == Numbers{-5, -5, 1, -5, -5, 10});
  REQUIRE(run(3, 7) == Numbers{7, 7, 7, 7, 7, 7});
  REQUIRE(run(8, 7) == Numbers{7, 7, 7, 7, 7, 7});
  REQUIRE(run(-1, 7) == Numbers{2, 3, 7, 20, 30, 7});
  REQUIRE(run(-3, 7) == Numbers{7, 7, 7, 7, 7, 7});
  REQUIRE(run(-8, 7) == Numbers{7, 7, 7, 7, 7, 7});
}

TEST_CASE("shift reads the carried state, oldest first") {
  for (std::int64_t size : {1, 2, 3, 5}) {
    INFO("window of " << size);
    for (std::int64_t steps : {1, 2, 3}) {
      INFO("steps " << steps);
      Bench bench;
      for (const Axis& axis : {Axis("b"), Axis("t"), Axis("k", 3)}) bench.graph.declare(axis);
      Numbers data;
      for (int b = 0; b < 2; ++b)
        for (int t = 0; t < size; ++t) data.push_back(100 * b + t);
      Value x = bench.input("x", {"b", "t"}, {2, size}, data);
      // Element j of the state stands at position j - 3.
      Value state = bench.input("state", {"b", "k"}, {2, 3}, {-3, -2, -1, 97, 98, 99});
      const int node = bench.graph.add(Shift{"t", steps, 0, true, "k"}, {x, state});
      Numbers expected;
      for (int b = 0; b < 2; ++b)
        for (int t = 0; t < size; ++t) expected.push_back(static_cast<double>(100 * b + t - steps));
      REQUIRE(bench.data({node}, {"b", "t"}) == expected);
    }
  }
}

TEST_CASE("gather picks rows") {
  Bench bench;
  for (const Axis& axis : {Axis("b"), Axis("t"), Axis("v", 3), Axis("d", 2)})
    bench.graph.declare(axis);
  Value table = bench.input("table", {"v", "d"}, {3, 2}, {0, 1, 10, 11, 20, 21});
  Value index = bench.input("index", {"b", "t"}, {2, 2}, {2, 0, 1, 1}, DType::i32);
  REQUIRE(bench.data({bench.graph.add(Gather{"v"}, {table, index})}, {"b", "t", "d"}) ==
          Numbers{20, 21, 0, 1, 10, 11, 10, 11});
}

TEST_CASE("an index out of range is named") {
  for (double wrong : {3.0, -1.0}) {
    Bench bench;
    for (const Axis& axis : {Axis("t"), Axis("v", 3)}) bench.graph.declare(axis);
    Value table = bench.input("table", {"v"}, {3}, {1, 2, 3});
    Value index = bench.input("tokens", {"t"}, {2}, {0, wrong}, DType::i32);
    Value x = bench.input("x", {"t"}, {2}, {1, 2});
    Value rows{bench.graph.add(Gather{"v"}, {table, index})};
    REQUIRE_THROWS_AS(bench.run(rows, {"t"}), UsageError);
    REQUIRE_THROWS_WITH(bench.run(rows, {"t"}),
                        Contains("tokens") && Contains(text(wrong)) && Contains("0 to 2"));
    Value sums{bench.graph.add(ScatterSum{"v"}, {x, index})};
    REQUIRE_THROWS_AS(bench.run(sums, {"v"}), UsageError);
  }
}

TEST_CASE("scatter adds up rows with one index") {
  Bench bench;
  for (const Axis& axis : {Axis("b"), Axis("t"), Axis("v", 4), Axis("d", 2)})
    bench.graph.declare(axis);
  Value x = bench.input("x", {"b", "t", "d"}, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Value index = bench.input("index", {"b", "t"}, {2, 2}, {2, 0, 2, 1}, DType::i32);
  REQUIRE(bench.data({bench.graph.add(ScatterSum{"v"}, {x, index})}, {"v", "d"}) ==
          Numbers{3, 4, 7, 8, 6, 8, 0, 0});
}

TEST_CASE("split pads the last chunk with zeros and merge cuts it off again") {
  for (std::int64_t size : {1, 2, 3, 4, 5, 7}) {
    INFO("size " << size);
    Bench bench;
    bench.graph.declare(Axis("t"));
    for (const Axis& axis : {Axis("h", 2), Axis("c", Extent::symbolic("t").ceil_div(3)),
                             Axis("q", 3), Axis("s", Extent::symbolic("t"))})
      bench.graph.declare(axis);
    Numbers data;
    for (int t = 0; t < size; ++t)
      for (int h = 0; h < 2; ++h) data.push_back(10 * h + t + 1);
    Value x = bench.input("x", {"t", "h"}, {size, 2}, data);
    Value parts{bench.graph.add(Split{"t", "c", "q"}, {x})};
    const std::int64_t chunks = (size + 2) / 3;
    Numbers expected;
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < chunks * 3; ++i) expected.push_back(i < size ? 10 * h + i + 1 : 0);
    const Tensor64 split = bench.run(parts, {"h", "c", "q"});
    REQUIRE(split.shape == std::vector<std::int64_t>{2, chunks, 3});
    REQUIRE(split.data == expected);
    Value merged{bench.graph.add(Merge{"c", "q", "s"}, {parts})};
    REQUIRE(bench.data(merged, {"s", "h"}) == data);
  }
}

TEST_CASE("slice from either end, with and without an axis left") {
  Bench bench;
  bench.graph.declare(Axis("t"));
  for (const Axis& axis : {Axis("c", 2), Axis("k", 2)}) bench.graph.declare(axis);
  Value x = bench.input("x", {"t", "c"}, {4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  const auto run = [&](const Slice& op, const AxisNames& order) {
    return bench.data({bench.graph.add(op, {x})}, order);
  };
  REQUIRE(run({"t", 1, false, "k"}, {"c", "k"}) == Numbers{10, 20, 11, 21});
  REQUIRE(run({"t", 2, true, "k"}, {"k", "c"}) == Numbers{20, 21, 30, 31});
  REQUIRE(run({"t", 0, false, ""}, {"c"}) == Numbers{0, 1});
  REQUIRE(run({"t", 1, true, ""}, {"c"}) == Numbers{30, 31});
  REQUIRE(run({"c", 1, false, ""}, {"t"}) == Numbers{1, 11, 21, 31});
  REQUIRE_THROWS_AS(run({"t", 3, false, "k"}, {"c", "k"}), UsageError);
  REQUIRE_THROWS_AS(run({"t", 5, true, "k"}, {"c", "k"}), UsageError);
}

TEST_CASE("concat of axes of several sizes, one of them symbolic") {
  for (std::int64_t size : {1, 3}) {
    Bench bench;
    bench.graph.declare(Axis("t"));
    for (const Axis& axis : {Axis("b", 2), Axis("k", 2), Axis("all", Extent{"t", 2, 1})})
      bench.graph.declare(axis);
    Numbers x_data, expected;
    for (int b = 0; b < 2; ++b)
      for (int t = 0; t < size; ++t) x_data.push_back(10 * b + t);
    Value x = bench.input("x", {"b", "t"}, {2, size}, x_data);
    Value state = bench.input("state", {"b", "k"}, {2, 2}, {-2, -1, 8, 9});
    for (int b = 0; b < 2; ++b)
      for (int i = -2; i < size; ++i) expected.push_back(10 * b + i);
    Value joined{bench.graph.add(Concat{{"k", "t"}, "all"}, {state, x})};
    REQUIRE(bench.data(joined, {"b", "all"}) == expected);
  }
}

TEST_CASE("rename moves the data to the place of the new axis") {
  Bench bench;
  for (const Axis& axis : {Axis("r", 2), Axis("b", 2), Axis("s", 2)}) bench.graph.declare(axis);
  Value x = bench.input("x", {"r", "b"}, {2, 2}, {1, 2, 3, 4});
  Value y{bench.graph.add(Rename{"r", "s"}, {x})};
  REQUIRE(bench.data(y, {"s", "b"}) == Numbers{1, 2, 3, 4});
  REQUIRE(bench.data(y, {"b", "s"}) == Numbers{1, 3, 2, 4});
  // Both axes at once: an outer product of a value with itself.
  REQUIRE(bench.data(bench.graph.contract({"b"}, {x, y}), {"r", "s"}) == Numbers{5, 11, 11, 25});
}

}  // namespace
}  // namespace krait
