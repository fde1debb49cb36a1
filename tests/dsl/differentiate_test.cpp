// One rule of `differentiate` at a time, then blocks, against finite differences.
#include "dsl/differentiate.h"

#include <catch2/catch.hpp>

#include "dsl/error.h"
#include "dsl/expr.h"
#include "tests/dsl/finite_differences.h"

using namespace krait;
using krait::testing::check_gradients;
using krait::testing::GradientCheck;
using krait::testing::random_integers;
using krait::testing::random_tensor;

namespace {

const Axis b("b"), t("t"), h("h", 2), p("p", 3), n("n", 4);
const std::vector<std::int64_t> lengths{1, 2, 5, 9};

Value input(Graph& graph, const std::string& name, const std::vector<Axis>& axes,
            DType dtype = DType::f64) {
  graph.set_accumulator(DType::f64);
  Input op{name, {}, dtype};
  for (const Axis& axis : axes) {
    graph.declare(axis);
    op.order.push_back(axis.name);
  }
  return graph.input(op);
}

/// Adds the value as an output.
void output(Graph& graph, const std::string& name, Value value) {
  graph.add_output(name, value, graph.type(value).axes);
}

void outputs_of(Graph& graph, int node) {
  for (int i = 0; i < static_cast<int>(graph.node(node).results.size()); ++i)
    output(graph, "y" + std::to_string(i), {node, i});
}

/// Documents of a few steps, some of one step only. The first position is a start now and then.
Tensor64 random_resets(const std::vector<std::int64_t>& shape, std::uint32_t seed = 3) {
  std::mt19937 random(seed);
  return random_integers(shape, random, 2);
}

int count_ops(const Graph& graph, const std::string& op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += name(node.op) == op;
  return count;
}

bool some_value_has(const Graph& graph, const AxisNames& axes) {
  for (const Node& node : graph.nodes())
    for (const Type& type : node.results)
      if (without(axes, type.axes).empty()) return true;
  return false;
}

const Sizes sizes_of(std::int64_t length) { return {{"b", 2}, {"t", length}}; }

}  // namespace

TEST_CASE("maps: derivatives, broadcasts, conditions", "[differentiate]") {
  auto graph = build_graph(
      [](Scope& s) {
        Expr x = s.input("x", {b, t, p}), w = s.param("w", {p}), z = s.param("z", {});
        Expr v = s.input("v", {b, t, n});
        s.output("y", silu(x * w + z) * exp(-softplus(v)), {"b", "t", "p", "n"});
        s.output("masked", select(s.index(t) < 2, x * s.index(p), w / (2 + square(x))),
                 {"t", "b", "p"});
        s.output("swept", x * s.size(t) - floor(v) * z, {"n", "p", "b", "t"});
      },
      DType::f64);
  for (auto length : lengths) check_gradients(graph, sizes_of(length));
}

TEST_CASE("maps of several operators, with factors of every sort", "[differentiate]") {
  Graph graph;
  Value w = input(graph, "w", {p}), x = input(graph, "x", {b, t}), v = input(graph, "v", {b, n});
  Value count = input(graph, "count", {b, t}, DType::i32);
  Value literal = graph.constant(2.5, DType::f64, {"t", "n"});
  Scalar e;
  int quotient = e.apply(ScalarOp::div, e.apply(ScalarOp::mul, e.operand(0), e.operand(1)),
                         e.apply(ScalarOp::exp, e.operand(2)));
  int signed_one = e.apply(ScalarOp::neg, e.apply(ScalarOp::mul, quotient, e.operand(3)));
  e.finish(e.apply(ScalarOp::mul, signed_one, e.index("t")));
  output(graph, "y", graph.map(e, {w, x, v, literal}));
  output(graph, "minus", graph.map(ScalarOp::neg, graph.map(ScalarOp::sub, x, w)));
  Scalar negated;
  negated.finish(negated.apply(ScalarOp::neg,
                               negated.apply(ScalarOp::mul, negated.operand(0),
                                             negated.apply(ScalarOp::tanh, negated.operand(1)))));
  output(graph, "negated", graph.map(negated, {w, x}));
  output(graph, "counted", graph.map(ScalarOp::mul, w, count));
  output(graph, "scaled", graph.contract({"n", "t"}, {literal, w, v}));
  std::mt19937 random(4);
  for (auto length : lengths)
    check_gradients(graph, sizes_of(length), {{"count", random_integers({2, length}, random, 4)}});
  Graph gradients = differentiate(graph);
  for (const Node& node : gradients.nodes()) {
    if (name(node.op) != "Contract") continue;
    for (Value operand : node.operands) CHECK(is_float(gradients.type(operand).dtype));
  }
}

TEST_CASE("a product is differentiated by contractions, not by wide maps", "[differentiate]") {
  Graph graph;
  Value k = input(graph, "k", {b, t, n}), v = input(graph, "v", {b, t, p});
  Value dt = input(graph, "dt", {b, t});
  Scalar product;
  int kv = product.apply(ScalarOp::mul, product.operand(0), product.operand(1));
  product.finish(product.apply(ScalarOp::mul, kv, product.operand(2)));
  output(graph, "u", graph.map(product, {k, v, dt}));
  Graph gradients = differentiate(graph);
  CHECK(count_ops(gradients, "Contract") > 0);
  for (const Node& node : gradients.nodes()) {
    if (name(node.op) != "Map") continue;
    bool outer = contains(node.results[0].axes, "p") && contains(node.results[0].axes, "n");
    CHECK_FALSE(outer);
  }
  check_gradients(graph, sizes_of(3));
}

TEST_CASE("contractions", "[differentiate]") {
  Graph graph;
  Value x = input(graph, "x", {b, t, p}), w = input(graph, "w", {p, n});
  Value scale = input(graph, "scale", {h}), alone = input(graph, "alone", {h, n});
  output(graph, "matrix", graph.contract({"p"}, {x, w}));
  output(graph, "square", graph.contract({"t", "p"}, {x, x}));
  output(graph, "outer", graph.contract({}, {x, scale}));
  output(graph, "single", graph.contract({"n", "h"}, {alone, x}));
  for (auto length : lengths) check_gradients(graph, sizes_of(length));
}

TEST_CASE("no intermediate of a contraction's gradient is wider than its factors",
          "[differentiate]") {
  Axis q("q"), k("k", Extent::symbolic("q"));
  Graph graph;
  Value scores = input(graph, "scores", {q, k}), decay = input(graph, "decay", {q, k, h});
  Value dt = input(graph, "dt", {k, h}), x = input(graph, "x", {k, h, p});
  output(graph, "y", graph.contract({"k"}, {scores, decay, dt, x}));
  Graph gradients = differentiate(graph);
  CHECK_FALSE(some_value_has(gradients, {"q", "k", "h", "p"}));
  check_gradients(graph, {{"q", 3}});

  // A state that carries the head: no key per head comes to be.
  Graph other;
  Value key = input(other, "key", {q, n}), state = input(other, "state", {h, p, n});
  decay = input(other, "decay", {q, h});
  output(other, "y", other.contract({"n"}, {key, state, decay}));
  CHECK_FALSE(some_value_has(differentiate(other), {"q", "h", "n"}));
  check_gradients(other, {{"q", 3}});
}

TEST_CASE("reductions", "[differentiate]") {
  Graph graph;
  Value x = input(graph, "x", {b, t, p});
  Value squares = graph.map(ScalarOp::mul, x, x);
  output(graph, "sum", graph.reduce(Reduce::Kind::sum, {"t"}, x));
  output(graph, "sum_of_squares", graph.reduce(Reduce::Kind::sum, {"b", "p"}, squares));
  output(graph, "max", graph.reduce(Reduce::Kind::max, {"p", "b"}, x));
  output(graph, "max_of_all", graph.reduce(Reduce::Kind::max, {"b", "t", "p"}, squares));
  for (auto length : lengths) check_gradients(graph, sizes_of(length));
}

TEST_CASE("elements that are the largest alike share the cotangent", "[differentiate]") {
  Graph graph;
  Value x = input(graph, "x", {n});
  output(graph, "y", graph.reduce(Reduce::Kind::max, {"n"}, x));
  Tensors64 given{{"x", Tensor64({4})}, {"cot.y", Tensor64({}, 6)}};
  given["x"].data = {1, 5, 2, 5};
  auto gradient = evaluate(differentiate(graph), given).at("grad.x");
  CHECK(gradient.data == std::vector<double>{0, 3, 0, 3});
}

TEST_CASE("a sum of a sum counts the axes that a cotangent does not have", "[differentiate]") {
  Graph graph;
  Value x = input(graph, "x", {b, t}), w = input(graph, "w", {p});
  // The cotangent of the product is the same along all axes; w has none of b and t.
  Value y = graph.map(ScalarOp::add, x, w);
  output(graph, "total", graph.reduce(Reduce::Kind::sum, {"b", "t", "p"}, y));
  check_gradients(graph, sizes_of(5));
}

TEST_CASE("the gradient graph takes an input for a size that nothing else gives",
          "[differentiate]") {
  Axis c("c", Extent::symbolic("t").ceil_div(4)), q("q", 4);
  Graph graph;
  Value x = input(graph, "x", {t}), w = input(graph, "w", {p});
  graph.declare(c);
  graph.declare(q);
  output(graph, "total", graph.reduce(Reduce::Kind::sum, {"t"}, x));
  output(graph, "parts", {graph.add(Split{"t", "c", "q"}, {x}), 0});
  output(graph, "w", w);
  CHECK(differentiate(graph, {"total"}, {"x"}).find_input("x").has_value());
  CHECK(differentiate(graph, {"parts"}, {"x"}).find_input("x").has_value());
  CHECK_FALSE(differentiate(graph, {"w"}, {"w"}).find_input("x").has_value());
  check_gradients(graph, {{"t", 6}});
}

TEST_CASE("running sums in every form", "[differentiate]") {
  for (int form = 0; form < 32; ++form) {
    Cumsum op{
        "t", (form & 1) != 0, (form & 2) != 0, (form & 16) != 0, (form & 4) != 0, (form & 8) != 0};
    for (int shown = 1; shown < 4; ++shown) {
      Graph graph;
      Value x = input(graph, "x", {b, t, p});
      std::vector<Value> operands{x};
      if (op.has_initial) operands.push_back(input(graph, "initial", {p}));
      if (op.has_reset) operands.push_back(input(graph, "reset", {b, t}, DType::i32));
      int node = graph.add(op, operands);
      if ((shown & 1) != 0) output(graph, "values", {node, 0});
      if ((shown & 2) != 0) output(graph, "last", {node, 1});
      for (auto length : lengths) {
        INFO("reverse " << op.reverse << " exclusive " << op.exclusive << " wrap " << op.wrap
                        << " initial " << op.has_initial << " reset " << op.has_reset << " shown "
                        << shown << " length " << length);
        Tensors64 given;
        if (op.has_reset) given["reset"] = random_resets({2, length});
        check_gradients(graph, sizes_of(length), given, {.directions = 1, .elements = 4});
      }
    }
  }
}

TEST_CASE("scans in every form", "[differentiate]") {
  for (int form = 0; form < 8; ++form) {
    Scan op{"t", (form & 1) != 0, (form & 2) != 0, (form & 4) != 0};
    for (int shown = 1; shown < 8; ++shown) {
      Graph graph;
      Value decay = input(graph, "decay", {b, t, h}), u = input(graph, "u", {b, t, p});
      std::vector<Value> operands{decay, u};
      if (op.has_initial) operands.push_back(input(graph, "initial", {p, b, h}));
      if (op.has_reset) operands.push_back(input(graph, "reset", {b, t}, DType::i32));
      int node = graph.add(op, operands);
      for (int result = 0; result < 3; ++result)
        if ((shown >> result & 1) != 0) output(graph, "y" + std::to_string(result), {node, result});
      for (auto length : lengths) {
        INFO("reverse " << op.reverse << " initial " << op.has_initial << " reset " << op.has_reset
                        << " shown " << shown << " length " << length);
        std::mt19937 random(5);
        Tensors64 given{{"decay", random_tensor({2, length, 2}, random, -2, -0.1)}};
        if (op.has_reset) given["reset"] = random_resets({2, length});
        check_gradients(graph, sizes_of(length), given, {.directions = 1, .elements = 4});
      }
    }
  }
}

TEST_CASE("a scan whose decay is constant in time, and one whose input is", "[differentiate]") {
  Graph graph;
  Value decay = input(graph, "decay", {h}), u = input(graph, "u", {b, t, p});
  outputs_of(graph, graph.add(Scan{"t"}, {decay, u}));
  Graph other;
  decay = input(other, "decay", {b, t, h, p});
  u = input(other, "u", {h});
  Value initial = input(other, "initial", {h});
  outputs_of(other, other.add(Scan{"t", false, true}, {decay, u, initial}));
  for (auto length : lengths) {
    std::mt19937 random(5);
    check_gradients(graph, sizes_of(length), {{"decay", random_tensor({2}, random, -2, -0.1)}});
    check_gradients(other, sizes_of(length),
                    {{"decay", random_tensor({2, length, 2, 3}, random, -2, -0.1)}});
  }
}

TEST_CASE("gaps of every kind", "[differentiate]") {
  Axis q("q", 5), k("k", 5);
  for (auto kind :
       {Gap::Kind::between, Gap::Kind::from_start, Gap::Kind::to_end, Gap::Kind::total}) {
    Graph graph;
    Value a = input(graph, "a", {b, q, h});
    graph.declare(k);
    Gap op{kind, "q", kind == Gap::Kind::between ? "k" : ""};
    Value gap{graph.add(op, {a}), 0};
    output(graph, "gap", gap);
    output(graph, "decay", graph.map(ScalarOp::exp, gap));
    output(graph, "total", graph.reduce(Reduce::Kind::sum, graph.type(gap).axes, gap));
    std::mt19937 random(5);
    INFO("kind " << static_cast<int>(kind));
    check_gradients(graph, {{"b", 2}}, {{"a", random_tensor({2, 5, 2}, random, -2, -0.1)}});
    // Sums of cotangents only: a difference of sums would cancel.
    CHECK(to_text(differentiate(graph)).find(" - ") == std::string::npos);
  }
}

TEST_CASE("shifts, also by more than the window", "[differentiate]") {
  Axis k("k", 4), taps("taps", 3);
  for (int steps : {-6, -2, -1, 0, 1, 2, 3}) {
    Graph graph;
    Value x = input(graph, "x", {b, t, p});
    output(graph, "filled", {graph.add(Shift{"t", steps, 0.5, false, ""}, {x}), 0});
    if (steps > 0) {
      Value state = input(graph, "state", {p, k}), own = input(graph, "own", {b, p, taps});
      output(graph, "carried", {graph.add(Shift{"t", steps, 0, true, "k"}, {x, state}), 0});
      output(graph, "whole", {graph.add(Shift{"t", steps, 0, true, "taps"}, {x, own}), 0});
    }
    for (auto length : lengths) {
      INFO("steps " << steps << " length " << length);
      check_gradients(graph, sizes_of(length));
    }
  }
}

TEST_CASE("a shift along chunks with a state", "[differentiate]") {
  Axis c("c", Extent::symbolic("t").ceil_div(4)), q("q", 4), k("k", 3);
  Graph graph;
  Value x = input(graph, "x", {t, p}), state = input(graph, "state", {k, q, p});
  graph.declare(c);
  graph.declare(q);
  Value chunks{graph.add(Split{"t", "c", "q"}, {x}), 0};
  output(graph, "y", {graph.add(Shift{"c", 2, 0, true, "k"}, {chunks, state}), 0});
  for (int length : {1, 8, 13}) check_gradients(graph, {{"t", length}});
}

TEST_CASE("rows: gather and its adjoint", "[differentiate]") {
  Axis rows("rows", 6);
  Graph graph;
  Value table = input(graph, "table", {rows, p}), x = input(graph, "x", {b, t, p});
  Value index = input(graph, "index", {b, t}, DType::i32);
  output(graph, "picked", {graph.add(Gather{"rows"}, {table, index}), 0});
  output(graph, "summed", {graph.add(ScatterSum{"rows"}, {x, index}), 0});
  std::mt19937 random(4);
  check_gradients(graph, sizes_of(5), {{"index", random_integers({2, 5}, random, 6)}});
}

TEST_CASE("split and merge cut and pad alike", "[differentiate]") {
  Axis c("c", Extent::symbolic("t").ceil_div(4)), q("q", 4);
  Graph graph;
  Value x = input(graph, "x", {b, t, p});
  graph.declare(c);
  graph.declare(q);
  Value parts{graph.add(Split{"t", "c", "q"}, {x}), 0};
  output(graph, "parts", parts);
  Scalar e;  // nonzero in the padding, which must not come back
  e.finish(
      e.apply(ScalarOp::add, e.apply(ScalarOp::mul, e.operand(0), e.operand(0)), e.index("q")));
  Value whole{graph.add(Merge{"c", "q", "t"}, {graph.map(e, {parts})}), 0};
  output(graph, "whole", whole);
  output(graph, "sum", graph.reduce(Reduce::Kind::sum, {"t", "b"}, whole));
  output(graph, "sum_of_parts", graph.reduce(Reduce::Kind::sum, {"c", "q"}, parts));
  for (auto length : lengths) check_gradients(graph, sizes_of(length));
}

TEST_CASE("the cut of a merge has no gradient", "[differentiate]") {
  Axis c("c", 2), q("q", 4), seven("seven", 7);
  Graph graph;
  Value x = input(graph, "x", {c, q});
  graph.declare(seven);
  Value whole{graph.add(Merge{"c", "q", "seven"}, {x}), 0};
  output(graph, "sum", graph.reduce(Reduce::Kind::sum, {"seven"}, whole));
  check_gradients(graph, Sizes{});
}

TEST_CASE("slices from both ends, and concatenations around a symbol", "[differentiate]") {
  Axis longer("longer", Extent::symbolic("t").plus(3)), three("three", 3), two("two", 2);
  Axis five("five", 5), shorter("shorter", Extent::symbolic("t").plus(2)), other("s");
  Graph graph;
  Value head = input(graph, "head", {b, three}), x = input(graph, "x", {b, t});
  Value tail = input(graph, "tail", {b, five}), y = input(graph, "y", {b, other});
  for (const Axis& axis : {longer, two, shorter}) graph.declare(axis);
  Value front{graph.add(Concat{{"three", "t"}, "longer"}, {head, x}), 0};
  auto slice = [&](Value of, const std::string& axis, std::int64_t start, bool from_end,
                   const std::string& result) {
    Value part{graph.add(Slice{axis, start, from_end, result}, {of}), 0};
    Value squares = graph.map(ScalarOp::mul, part, part);
    output(graph, text("y", graph.outputs().size()), squares);
  };
  slice(front, "longer", 0, false, "");
  slice(front, "longer", 2, false, "");
  slice(front, "longer", 1, true, "");
  slice(front, "longer", 3, true, "");
  slice(front, "longer", 3, true, "three");
  slice(front, "longer", 3, true, "two");
  slice(front, "longer", 2, true, "two");
  slice(front, "longer", 0, false, "three");
  slice(front, "longer", 1, false, "two");
  slice(front, "longer", 2, false, "t");
  slice(front, "longer", 3, false, "t");
  slice(front, "longer", 1, false, "shorter");
  slice(tail, "five", 1, false, "three");
  slice(tail, "five", 5, true, "two");
  slice(tail, "five", 4, false, "");
  slice(y, "s", 1, false, "t");  // how much is left is known at run time alone
  Axis all("all", Extent::symbolic("t").plus(8));
  graph.declare(all);
  Value both{graph.add(Concat{{"three", "t", "five"}, "all"}, {head, x, tail}), 0};
  output(graph, "all", both);
  output(graph, "sum", graph.reduce(Reduce::Kind::sum, {"all"}, both));
  for (auto length : lengths)
    check_gradients(graph, {{"b", 2}, {"t", length}, {"s", length + 1 + length % 2}});
}

TEST_CASE("renamed axes", "[differentiate]") {
  Axis k("k", Extent::symbolic("t"));
  Graph graph;
  Value x = input(graph, "x", {t, p});
  graph.declare(k);
  Value renamed{graph.add(Rename{"t", "k"}, {x}), 0};
  output(graph, "products", graph.contract({"p"}, {x, renamed}));
  output(graph, "sum", graph.reduce(Reduce::Kind::sum, {"k"}, renamed));
  check_gradients(graph, {{"t", 4}});
}

TEST_CASE("a gated retention with decays that depend on the data", "[differentiate]") {
  auto graph = build_graph(
      [](Scope& s) {
        Expr q = s.input("q", {b, t, h, n}), k = s.input("k", {b, t, h, n});
        Expr v = s.input("v", {b, t, h, p}), z = s.input("z", {b, t, h, p});
        Expr raw = s.input("raw", {b, t, h}), bias = s.param("bias", {h});
        Expr skip = s.param("skip", {h}), norm = s.param("norm", {p});
        Expr reset = s.input("reset", {b, t}, DType::i32);
        Expr first = s.state("s0", "s1", {b, h, p, n});
        Expr dt = softplus(raw + bias);
        auto state = scan(t, -dt, dt * v * k, {.initial = first, .reset = reset});
        s.leave("s1", state.last);
        Expr y = (sum(state * q, n) + skip * v) * silu(z);
        s.output("y", y * rsqrt(mean(square(y), {p}) + 1e-5) * norm, {"b", "t", "h", "p"});
      },
      DType::f64);
  for (auto length : lengths)
    check_gradients(graph, sizes_of(length), {{"reset", random_resets({2, length})}});
  CHECK(differentiate(graph).states().empty());
}

TEST_CASE("gradients of gradients", "[differentiate]") {
  Graph graph;
  Value decay = input(graph, "decay", {b, t}), u = input(graph, "u", {b, t, p});
  Value initial = input(graph, "initial", {b, p});
  Value reset = input(graph, "reset", {b, t}, DType::i32);
  Value y{graph.add(Scan{"t", false, true, true}, {decay, u, initial, reset}), 1};
  Value sums{graph.add(Cumsum{"t", false, true, false, true, true}, {y, initial, reset}), 0};
  output(graph, "y", graph.contract({"p"}, {y, y, sums}));
  Graph gradients = differentiate(graph);
  for (auto length : lengths) {
    std::mt19937 random(5);
    check_gradients(gradients, sizes_of(length),
                    {{"decay", random_tensor({2, length}, random, -2, -0.1)},
                     {"reset", random_resets({2, length})}});
  }
}

TEST_CASE("what the gradient graph takes and gives", "[differentiate]") {
  Graph graph;
  Value x = input(graph, "x", {b, t, p}, DType::bf16), w = input(graph, "w", {p}, DType::f32);
  Value unused = input(graph, "unused", {n, b}, DType::f32);
  Value documents = input(graph, "documents", {b, t}, DType::i32);
  graph.set_accumulator(DType::f32);
  graph.add_output("y", graph.map(ScalarOp::mul, x, w), {"p", "b", "t"});
  graph.add_output("z", unused, {"b", "n"});
  graph.add_output("copy", documents, {"b", "t"});
  graph.add_output("through", x, {"t", "b", "p"});

  Graph gradients = differentiate(graph, {"y"}, {"unused", "w"});
  std::vector<std::string> names;
  for (Value value : gradients.inputs()) names.push_back(gradients.input_of(value).name);
  CHECK(names == std::vector<std::string>{"x", "cot.y"});
  const Input& cotangent = gradients.input_of(*gradients.find_input("cot.y"));
  CHECK(cotangent.order == AxisNames{"p", "b", "t"});
  CHECK(cotangent.dtype == DType::f32);
  REQUIRE(gradients.outputs().size() == 2);
  CHECK(gradients.outputs()[0].name == "grad.unused");
  CHECK(gradients.outputs()[0].order == AxisNames{"n", "b"});
  const auto* zero = std::get_if<Constant>(&gradients.node(gradients.outputs()[0].value.node).op);
  REQUIRE(zero != nullptr);
  CHECK(zero->value == 0);
  CHECK(gradients.outputs()[1].name == "grad.w");
  CHECK(gradients.type(gradients.outputs()[1].value).dtype == DType::f32);

  Graph all = differentiate(graph);
  CHECK(all.outputs().size() == 3);
  CHECK(all.find_input("cot.z").has_value());
  CHECK_FALSE(all.find_input("cot.copy").has_value());
  CHECK(all.input_of(*all.find_input("cot.through")).dtype == DType::f32);
  CHECK(to_text(all) == to_text(differentiate(graph)));
}

TEST_CASE("gradients that cannot be asked for", "[differentiate]") {
  Graph graph;
  Value x = input(graph, "x", {t}), documents = input(graph, "documents", {t}, DType::i32);
  output(graph, "y", graph.map(ScalarOp::mul, x, documents));
  output(graph, "same", documents);
  using Catch::Contains;
  using Catch::Predicate;
  auto message_of = [&](const std::vector<std::string>& cotangents,
                        const std::vector<std::string>& wanted) -> std::string {
    try {
      differentiate(graph, cotangents, wanted);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(message_of({"y"}, {"documents"}), Contains("documents") && Contains("allowed: x"));
  CHECK_THAT(message_of({"y"}, {"w"}), Contains("\"w\"") && Contains("allowed: x"));
  CHECK_THAT(message_of({"z"}, {"x"}), Contains("\"z\"") && Contains("allowed: y"));
  CHECK_THAT(message_of({"same"}, {"x"}), Contains("same"));
  CHECK_THAT(message_of({"y"}, {"x", "x"}), Contains("twice"));
  CHECK_THAT(message_of({"y"}, {}), Contains("none"));
  CHECK(message_of({"y"}, {"x"}).empty());
}
