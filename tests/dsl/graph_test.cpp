#include "dsl/graph.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>

#include "dsl/error.h"
#include "dsl/expr.h"

using namespace krait;
using Catch::Matchers::Contains;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Axes of all kinds, and inputs over them.
struct World {
  Graph graph;
  Value x, half, wide, ids, state;

  World() {
    for (const Axis& axis : {Axis("b"), Axis("t"), Axis("h", 4), Axis("k", 3), Axis("k2", 2),
                             Axis("q", 16), Axis("c", Extent{"t", 0, 16}),
                             Axis("t3", Extent{"t", 3, 1}), Axis("u", Extent{"t", 0, 1}),
                             Axis("h7", 7), Axis("hi", 2), Axis("ho", 2), Axis("one", 1)})
      graph.declare(axis);
    x = graph.input({"x", {"t", "b", "h"}, DType::f32});
    half = graph.input({"half", {"b", "t"}, DType::bf16});
    wide = graph.input({"wide", {"b", "t"}, DType::f64});
    ids = graph.input({"ids", {"b", "t"}, DType::i32});
    state = graph.input({"state", {"b", "k", "h"}, DType::f32, Role::state});
  }

  std::string type(const Op& op, std::vector<Value> operands, int result = 0) {
    const Type type = infer(graph, op, operands).at(result);
    std::string text(name(type.dtype));
    for (const auto& axis : type.axes) text += " " + axis;
    return text;
  }
};

Scalar unary(ScalarOp op) {
  Scalar s;
  s.finish(s.apply(op, s.operand(0)));
  return s;
}

Scalar binary(ScalarOp op) {
  Scalar s;
  const int a = s.operand(0), b = s.operand(1);
  s.finish(s.apply(op, a, b));
  return s;
}

Shift carried(std::int64_t steps, std::string state_axis) {
  return Shift{"t", steps, 0, true, std::move(state_axis)};
}

}  // namespace

TEST_CASE("axes of a graph") {
  Graph graph;
  graph.declare(Axis("t"));
  graph.declare(Axis("h", 4));
  graph.declare(Axis("t"));
  CHECK(graph.axes().size() == 2);
  CHECK(graph.sorted({"h", "t", "h"}) == AxisNames{"t", "h"});
  CHECK(graph.fresh_axis_name("c") == "c");
  CHECK(graph.fresh_axis_name("t") == "t1");
  graph.declare(Axis("t1"));
  CHECK(graph.fresh_axis_name("t") == "t2");
  CHECK_THROWS_WITH(graph.declare(Axis("h", 5)), Contains("h is 5; allowed: 4"));
  CHECK_THROWS_WITH(graph.axis("z"), Contains("\"z\"; allowed: t, h"));
  CHECK_THROWS_AS(graph.declare(Axis("", 5)), UsageError);
  CHECK_THROWS_AS(graph.sorted({"z"}), UsageError);
}

TEST_CASE("types of what ops give") {
  World w;
  const Value x = w.x, half = w.half, wide = w.wide, ids = w.ids, state = w.state;
  CHECK(w.type(Input{"y", {"h", "b"}, DType::f16}, {}) == "f16 b h");
  CHECK(w.type(Constant{1, DType::i32, {"h", "b"}}, {}) == "i32 b h");

  CHECK(w.type(Map{unary(ScalarOp::exp)}, {half}) == "f32 b t");
  CHECK(w.type(Map{binary(ScalarOp::mul)}, {half, x}) == "f32 b t h");
  CHECK(w.type(Map{binary(ScalarOp::mul)}, {half, wide}) == "f64 b t");
  CHECK(w.type(Map{binary(ScalarOp::mul)}, {ids, half}) == "f32 b t");
  CHECK(w.type(Map{binary(ScalarOp::mul)}, {ids, ids}) == "i32 b t");
  CHECK(w.type(Map{binary(ScalarOp::less)}, {x, half}) == "i32 b t h");
  CHECK(w.type(Map{unary(ScalarOp::exp)}, {ids}) == "f32 b t");
  Scalar position;
  position.finish(position.apply(ScalarOp::add, position.index("q"), position.operand(0)));
  CHECK(w.type(Map{position}, {ids}) == "i32 b t q");

  CHECK(w.type(Contract{{"t"}}, {half, x}) == "f32 b h");
  CHECK(w.type(Contract{{}}, {half, half}) == "f32 b t");
  CHECK(w.type(Contract{{"t"}}, {ids, wide}) == "f64 b");
  CHECK(w.type(Contract{{"t"}}, {ids, ids}) == "i32 b");
  CHECK(w.type(Reduce{Reduce::Kind::sum, {"b", "t"}}, {half}) == "f32");
  CHECK(w.type(Reduce{Reduce::Kind::max, {"t"}}, {ids}) == "i32 b");

  CHECK(w.type(Cumsum{"t"}, {half}) == "f32 b t");
  CHECK(w.type(Cumsum{"t"}, {half}, 1) == "f32 b");
  CHECK(w.type(Cumsum{"t"}, {ids}, 1) == "i32 b");
  CHECK(w.type(Cumsum{"t", true, true, true, false, true}, {half, ids}) == "f32 b t");

  const Value decay = w.graph.input({"decay", {"h"}, DType::f64});
  CHECK(w.type(Scan{"t"}, {decay, half}) == "f64 b t h");
  CHECK(w.type(Scan{"t"}, {half, x}) == "f32 b t h");
  CHECK(w.type(Scan{"t", true, true, true}, {half, x, decay, ids}, 2) == "f64 b h");

  CHECK(w.type(Gap{Gap::Kind::between, "t", "u"}, {x}) == "f32 b t h u");
  CHECK(w.type(Gap{Gap::Kind::from_start, "t", ""}, {half}) == "f32 b t");
  CHECK(w.type(Gap{Gap::Kind::to_end, "t", ""}, {x}) == "f32 b t h");
  CHECK(w.type(Gap{Gap::Kind::total, "t", ""}, {wide}) == "f64 b");

  CHECK(w.type(PairSum{"t"}, {half}, 1) == "f32 b t");

  CHECK(w.type(Shift{"t", -2, 1}, {half}) == "bf16 b t");
  CHECK(w.type(carried(3, "k"), {x, state}) == "f32 b t h");
  const Value taps = w.graph.reduce(Reduce::Kind::sum, {"h"}, state);
  CHECK(w.type(carried(3, "k"), {half, taps}) == "f32 b t");

  const Value table = w.graph.input({"table", {"q", "h"}, DType::bf16});
  CHECK(w.type(Gather{"q"}, {table, ids}) == "bf16 b t h");
  CHECK(w.type(ScatterSum{"q"}, {x, ids}) == "f32 h q");

  CHECK(w.type(Split{"t", "c", "q"}, {half}) == "bf16 b q c");
  CHECK(w.type(Split{"h", "ho", "hi"}, {x}) == "f32 b t hi ho");
  const Value chunks = {w.graph.add(Split{"t", "c", "q"}, {half})};
  CHECK(w.type(Merge{"c", "q", "u"}, {chunks}) == "bf16 b u");
  CHECK(w.type(Slice{"h", 1, false, "k"}, {x}) == "f32 b t k");
  CHECK(w.type(Slice{"h", 3, true, "k"}, {x}) == "f32 b t k");
  CHECK(w.type(Slice{"t", 5, true, ""}, {ids}) == "i32 b");
  CHECK(w.type(Slice{"t", 2, false, "k"}, {half}) == "bf16 b k");
  CHECK(w.type(Concat{{"k", "h"}, "h7"}, {w.graph.reduce(Reduce::Kind::sum, {"h"}, state),
                                          w.graph.reduce(Reduce::Kind::sum, {"k"}, state)}) ==
        "f32 b h7");
  const Value long_state = {w.graph.add(Concat{{"k", "t"}, "t3"}, {state, x})};
  CHECK(w.type(Slice{"t3", 3, false, "t"}, {long_state}) == "f32 b t h");
  CHECK(w.type(Slice{"t3", 3, true, "k"}, {long_state}) == "f32 b h k");
  CHECK(w.type(Rename{"t", "u"}, {x}) == "f32 b h u");
}

TEST_CASE("a Map without a float operand takes the float dtype of its graph") {
  Graph graph;
  graph.declare(Axis("t"));
  graph.set_accumulator(DType::f64);
  Scalar s;
  s.finish(s.apply(ScalarOp::mul, s.index("t"), s.constant(0.5)));
  CHECK(graph.type(graph.map(s, {})).dtype == DType::f64);
  graph.set_accumulator(DType::bf16);
  CHECK(graph.accumulator() == DType::f32);
  Graph other;
  Rewriter(graph, other).copy_axes();
  CHECK(other.has_axis("t"));
}

TEST_CASE("what ops refuse, by op and field") {
  World w;
  const Value x = w.x, half = w.half, ids = w.ids, state = w.state;
  const Value total = w.graph.reduce(Reduce::Kind::sum, {"t"}, x);
  const Value long_state = {w.graph.add(Concat{{"k", "t"}, "t3"}, {state, x})};
  struct Case {
    Op op;
    std::vector<Value> operands;
    std::string message;
  };
  const std::vector<Case> cases{
      {Input{"", {"b"}}, {}, "Input.name"},
      {Input{"y", {"b", "b"}}, {}, "Input.order is (b b)"},
      {Input{"y", {"zz"}}, {}, "Input.order is \"zz\""},
      {Input{"y", {"b"}}, {x}, "Input.operands is 1; allowed: 0"},
      {Input{"x", {"b"}}, {}, "name of an input is \"x\""},
      {Constant{0.5, DType::i32, {}}, {}, "Constant.value is 0.5"},
      {Constant{0.5, DType::f32, {"zz"}}, {}, "Constant.axes is \"zz\""},
      {Map{binary(ScalarOp::add)}, {x}, "Map.expression is reading 2 operands"},
      {Map{}, {x}, "Map.expression is empty"},
      {Contract{{"q"}}, {x, half}, "Contract.sum is \"q\"; allowed: one of (b t h)"},
      {Contract{{"zz"}}, {x, half}, "Contract.sum is \"zz\"; allowed: a declared axis"},
      {Contract{{}}, {}, "Contract.operands is 0"},
      {Reduce{Reduce::Kind::sum, {}}, {x}, "Reduce.axes is ()"},
      {Reduce{Reduce::Kind::sum, {"q"}}, {x}, "Reduce.axes is \"q\""},
      {Reduce{Reduce::Kind::sum, {"b"}}, {x, x}, "Reduce.operands is 2; allowed: 1"},
      {Cumsum{"q"}, {x}, "Cumsum.axis is \"q\""},
      {Cumsum{"t"}, {x, x}, "Cumsum.operands is 2; allowed: 1"},
      {Cumsum{"t", false, false, true}, {ids}, "Cumsum.wrap is i32"},
      {Cumsum{"t", false, false, false, true}, {x, half}, "Cumsum.initial is along (b t)"},
      {Cumsum{"t", false, false, false, true}, {ids, total}, "Cumsum.initial is along (b h)"},
      {Cumsum{"t", false, false, false, false, true}, {x, half}, "Cumsum.reset is bf16"},
      {Scan{"q"}, {x, x}, "Scan.axis is \"q\""},
      {Scan{"t"}, {x}, "Scan.operands is 1; allowed: 2"},
      {Scan{"t"}, {ids, x}, "Scan.log_decay is i32"},
      {Scan{"t"}, {x, ids}, "Scan.input is i32"},
      {Scan{"t", false, true}, {x, x, state}, "Scan.initial is along (b h k)"},
      {Scan{"t", false, true}, {x, x, x}, "Scan.initial is along (b t h)"},
      {Scan{"t", false, false, true}, {x, x, half}, "Scan.reset is bf16"},
      {Scan{"t", false, false, true},
       {x, x, w.graph.reduce(Reduce::Kind::sum, {"t"}, ids)},
       "Scan.reset is \"t\"; allowed: one of (b)"},
      {Gap{Gap::Kind::between, "t", "h"}, {x}, "Gap.other is \"h\""},
      {Gap{Gap::Kind::between, "t", "q"}, {x}, "Gap.other is \"q\" of size 16; allowed: size t"},
      {Gap{Gap::Kind::between, "t", "zz"}, {x}, "Gap.other is \"zz\""},
      {Gap{Gap::Kind::total, "t", "u"}, {x}, "Gap.other is \"u\"; allowed: empty"},
      {Gap{Gap::Kind::total, "q", ""}, {x}, "Gap.axis is \"q\""},
      {Gap{Gap::Kind::total, "t", ""}, {ids}, "Gap.log_decay is i32"},
      {PairSum{"q"}, {x}, "PairSum.axis is \"q\""},
      {PairSum{"t"}, {ids}, "PairSum.operand is i32"},
      {PairSum{"t"}, {x, x}, "PairSum.operands is 2; allowed: 1"},
      {Shift{"q", 1}, {x}, "Shift.axis is \"q\""},
      {Shift{"t", 1, 0.5}, {ids}, "Shift.fill is 0.5"},
      {Shift{"t", 1, 0, false, "k"}, {x}, "Shift.state_axis is \"k\"; allowed: empty"},
      {carried(-1, "k"), {x, state}, "Shift.steps is -1"},
      {carried(4, "k"), {x, state}, "Shift.state_axis is \"k\" of size 3"},
      {carried(1, "q"), {x, state}, "Shift.state_axis is \"q\""},
      {carried(1, "b"), {x, total}, "Shift.state_axis is \"b\" of size b"},
      {carried(1, "k"), {half, state}, "Shift.state is along (b h k)"},
      {carried(1, "k"), {w.graph.map(ScalarOp::less, x, half), state}, "Shift.state is f32"},
      {Gather{"q"}, {x, ids}, "Gather.axis is \"q\""},
      {Gather{"h"}, {x, ids}, "Gather.index is along \"b\""},
      {Gather{"h"}, {x, half}, "Gather.index is bf16"},
      {ScatterSum{"h"}, {x, ids}, "ScatterSum.axis is \"h\""},
      {ScatterSum{"q"}, {total, ids}, "ScatterSum.index is \"t\""},
      {ScatterSum{"q"}, {x, half}, "ScatterSum.index is bf16"},
      {Split{"t", "k", "q"}, {x}, "Split.outer is \"k\" of size 3; allowed: size ceil(t/16)"},
      {Split{"t", "c", "u"}, {x}, "Split.inner is \"u\" of size t; allowed: a constant size"},
      {Split{"q", "c", "k"}, {x}, "Split.axis is \"q\""},
      {Split{"t", "b", "one"}, {x}, "Split.outer is \"b\""},
      {Merge{"c", "q", "u"}, {x}, "Merge.outer is \"c\""},
      {Merge{"t", "h", "u"}, {x}, "Merge.outer is \"t\" of size t; allowed: size ceil(t/4)"},
      {Slice{"q", 0, false, "k"}, {x}, "Slice.axis is \"q\""},
      {Slice{"h", -1, false, "k"}, {x}, "Slice.start is -1"},
      {Slice{"h", 2, false, "k"}, {x}, "Slice.start is 2 of 3"},
      {Slice{"h", 4, false, ""}, {x}, "Slice.start is 4 of 1"},
      {Slice{"h", 2, true, "k"}, {x}, "Slice.start is 2 from the end of 3"},
      {Slice{"h", 5, true, "k"}, {x}, "Slice.start is 5 from the end of 3"},
      {Slice{"h", 0, false, "b"}, {x}, "Slice.result is \"b\""},
      {Slice{"t3", 4, false, "t"}, {long_state}, "Slice.start is 4 of t"},
      {Concat{{}, "h7"}, {}, "Concat.operands is 0"},
      {Concat{{"k"}, "h7"}, {state, x}, "Concat.axes is (k)"},
      {Concat{{"k", "t"}, "h7"},
       {state, x},
       "Concat.result is \"h7\" of size 7; allowed: size t+3"},
      {Concat{{"k", "q"}, "h7"}, {state, x}, "Concat.axes is \"q\""},
      {Concat{{"t", "t"}, "u"}, {x, half}, "Concat.operand 1 is (b t); allowed: (b h) and t"},
      {Concat{{"t", "t"}, "u"}, {half, ids}, "Concat.operand 1 is i32"},
      {Concat{{"t", "t"}, "u"}, {half, half}, "Concat.axes is (t t); allowed: at most one"},
      {Concat{{"k"}, "b"}, {state}, "Concat.result is \"b\""},
      {Rename{"q", "u"}, {x}, "Rename.from is \"q\""},
      {Rename{"t", "b"}, {x}, "Rename.to is \"b\""},
      {Rename{"t", "q"}, {x}, "Rename.to is \"q\" of size 16; allowed: size t"},
      {Rename{"t", "zz"}, {x}, "Rename.to is \"zz\""},
      {Rename{"t", "u"}, {{99, 0}}, "Rename reads node 99"},
      {Rename{"t", "u"}, {{0, 1}}, "Rename reads result 1 of node 0"},
  };
  std::vector<bool> refused(std::variant_size_v<Op>, false);
  for (const auto& bad : cases) {
    INFO(bad.message);
    const auto before = w.graph.nodes().size();
    CHECK_THROWS_AS(w.graph.add(bad.op, bad.operands), UsageError);
    CHECK_THROWS_WITH(w.graph.add(bad.op, bad.operands), Contains(bad.message));
    CHECK(w.graph.nodes().size() == before);
    refused[bad.op.index()] = true;
  }
  CHECK(std::count(refused.begin(), refused.end(), false) == 0);
}

TEST_CASE("equal nodes are one node") {
  World w;
  const int a = w.graph.add(Contract{{"t", "b"}}, {w.x, w.half});
  CHECK(w.graph.add(Contract{{"b", "t"}}, {w.x, w.half}) == a);
  CHECK(w.graph.add(Contract{{"b"}}, {w.x, w.half}) != a);
  CHECK(w.graph.map(ScalarOp::exp, w.x) == w.graph.map(ScalarOp::exp, w.x));
  CHECK(w.graph.map(ScalarOp::exp, w.x) != w.graph.map(ScalarOp::log, w.x));
  CHECK(w.graph.constant(1, DType::f32) == w.graph.constant(1, DType::f32));
  CHECK(w.graph.constant(1, DType::f32) != w.graph.constant(1, DType::f64));
  CHECK(w.graph.find_input("half") == w.half);
  CHECK_FALSE(w.graph.find_input("nothing"));
  CHECK(w.graph.inputs() == std::vector<Value>{w.x, w.half, w.wide, w.ids, w.state});
}

TEST_CASE("Maps are simplified as they are added") {
  World w;
  Graph& g = w.graph;
  const Value one = g.constant(1, DType::f32), zero = g.constant(0, DType::f32);
  CHECK(g.map(ScalarOp::mul, w.x, one) == w.x);
  CHECK(g.map(ScalarOp::add, zero, w.x) == w.x);
  // The dtype stays: a Map of a bf16 value accumulates.
  CHECK(g.type(g.map(ScalarOp::mul, w.half, one)).dtype == DType::f32);
  // The axes stay: zeros keep the shape of what they came from.
  const Value zeros = g.map(ScalarOp::mul, w.x, zero);
  CHECK(std::get<Constant>(g.node(zeros.node).op) == Constant{0, DType::f32, {"b", "t", "h"}});
  const Value picked = g.map(ScalarOp::select, one, w.half, w.x);
  CHECK(g.type(picked) == Type{DType::f32, {"b", "t", "h"}});
  // An integer with a float literal stays a float.
  CHECK(g.type(g.map(ScalarOp::add, w.ids, one)).dtype == DType::f32);
  CHECK(g.type(g.map(ScalarOp::add, w.ids, g.constant(1, DType::i32))).dtype == DType::i32);
  const Value twice = g.map(ScalarOp::mul, w.x, w.x);
  CHECK(g.node(twice.node).operands == std::vector<Value>{w.x});
  CHECK_THROWS_AS(g.map(ScalarOp::mul, w.x), UsageError);
  CHECK_THROWS_AS(g.map(binary(ScalarOp::mul), {w.x}), UsageError);
}

TEST_CASE("outputs are checked") {
  World w;
  w.graph.add_output("y", w.x, {"h", "b", "t"});
  CHECK_THROWS_WITH(w.graph.add_output("y", w.half, {"b", "t"}), Contains("output is \"y\""));
  CHECK_THROWS_WITH(w.graph.add_output("z", w.x, {"b", "t"}),
                    Contains("axes of output z is (b t); allowed: (b t h)"));
  CHECK_THROWS_AS(w.graph.add_output("z", w.x, {"b", "t", "t"}), UsageError);
  CHECK_THROWS_AS(w.graph.add_output("", w.half, {"b", "t"}), UsageError);
  CHECK_THROWS_AS(w.graph.add_output("z", Value{}, {}), UsageError);
  CHECK(w.graph.outputs().size() == 1);
}

TEST_CASE("intervals go through ops") {
  World w;
  Graph& g = w.graph;
  auto node = [&](Op op, std::vector<Value> operands, int result = 0) {
    return g.interval({g.add(std::move(op), std::move(operands)), result});
  };
  auto is = [](Interval interval, double low, double high) {
    return interval.low == low && interval.high == high;
  };
  const Value positive = g.map(ScalarOp::exp, w.half);
  const Value negative = g.map(ScalarOp::neg, positive);
  const Value bounded = g.map(ScalarOp::tanh, w.x);
  const Value ones = g.constant(1, DType::f32, {"b", "t"});
  CHECK(is(g.interval(w.x), -kInfinity, kInfinity));
  CHECK(is(g.interval(ones), 1, 1));
  CHECK(is(g.interval(bounded), -1, 1));
  CHECK(is(node(Contract{{"t"}}, {positive, negative}), -kInfinity, 0));
  CHECK(is(node(Contract{{}}, {bounded, bounded, ones}), 0, 1));
  CHECK(is(node(Contract{{"t"}}, {w.x, w.x}), 0, kInfinity));
  CHECK(is(node(Contract{{"t"}}, {w.x, w.x, w.x}), -kInfinity, kInfinity));
  CHECK(is(node(Reduce{Reduce::Kind::sum, {"t"}}, {negative}), -kInfinity, 0));
  CHECK(is(node(Reduce{Reduce::Kind::max, {"t"}}, {bounded}), -1, 1));
  CHECK(is(node(Cumsum{"t"}, {positive}), 0, kInfinity));
  CHECK(is(node(Cumsum{"t", false, false, true}, {positive}), -0.5, 0.5));
  const Value start = g.reduce(Reduce::Kind::sum, {"t"}, negative);
  CHECK(is(node(Cumsum{"t", false, false, false, true}, {positive, start}), -kInfinity, kInfinity));
  CHECK(is(node(Scan{"t"}, {negative, positive}, 1), 0, kInfinity));
  CHECK(is(node(Scan{"t", false, true}, {negative, positive, start}, 2), -kInfinity, kInfinity));
  CHECK(is(node(Gap{Gap::Kind::total, "t", ""}, {w.x}), -kInfinity, 0));
  CHECK(is(node(Shift{"t", 1, 2}, {bounded}), -1, 2));
  CHECK(is(node(carried(1, "k"), {bounded, g.map(ScalarOp::exp, w.state)}), -1, kInfinity));
  CHECK(is(node(Split{"t", "c", "q"}, {ones}), 0, 1));
  CHECK(is(node(Slice{"t", 0, false, ""}, {ones}), 1, 1));
  CHECK(is(node(Rename{"t", "u"}, {negative}), -kInfinity, 0));
  CHECK(is(node(Gather{"h"}, {g.constant(3, DType::f32, {"h"}), w.ids}), 3, 3));
  CHECK(is(node(ScatterSum{"q"}, {positive, w.ids}), 0, kInfinity));
  const Value threes = g.constant(3, DType::f32, {"b", "k", "h"});
  CHECK(is(node(Concat{{"k", "t"}, "t3"}, {threes, bounded}), -1, 3));
}

TEST_CASE("readers of nodes") {
  World w;
  const int a = w.graph.map(ScalarOp::exp, w.x).node;
  const int b = w.graph.add(Contract{{"t"}}, {w.x, w.x, Value{a}});
  CHECK(w.graph.users()[w.x.node] == std::vector<int>{a, b});
  CHECK(w.graph.users()[a] == std::vector<int>{b});
  CHECK(w.graph.users()[b].empty());
}
