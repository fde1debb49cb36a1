#include "dsl/expr.h"

#include <catch2/catch.hpp>
#include <limits>

#include "dsl/error.h"

using namespace krait;
using Catch::Matchers::Contains;

namespace {

const Axis b("b"), t("t"), h("h", 4), n("n", 8), p("p", 16);

/// How the node of a value is printed behind "=".
std::string body(const Expr& value) {
  Graph graph = prune([&] {
    Graph copy = value.scope().graph();
    copy.add_output("value", value.value(), copy.type(value.value()).axes);
    return copy;
  }());
  const std::string text = to_text(graph);
  const auto outputs = text.find("\noutput ");
  const auto line = text.rfind("\n", outputs - 1) + 1;
  const auto equals = text.find("= ", line) + 2;
  return text.substr(equals, outputs - equals);
}

}  // namespace

TEST_CASE("arithmetic of the language, one Map each") {
  Scope s;
  auto x = s.input("x", {b, t, h}), y = s.input("y", {t, n});
  auto i = s.input("i", {b}, DType::i32);
  CHECK((x + y).axes() == AxisNames{"b", "t", "h", "n"});
  CHECK((x + y).dtype() == DType::f32);
  CHECK((x < y).dtype() == DType::i32);
  CHECK((i + 1.0).dtype() == DType::i32);
  CHECK((i * 0.5).dtype() == DType::f32);
  CHECK(s.index(t).dtype() == DType::i32);
  CHECK(s.size(t).dtype() == DType::i32);
  CHECK(s.size(h).dtype() == DType::i32);
  CHECK(s.constant(2, {h}).axes() == AxisNames{"h"});
  for (const auto& [value, text] : std::vector<std::pair<Expr, std::string>>{
           {x + y, "x + y"},
           {x - y, "x - y"},
           {x * y, "x * y"},
           {x / y, "x / y"},
           {-x, "-x"},
           {x + 2, "x + 2"},
           {x - 2, "x - 2"},
           {x * 2, "x * 2"},
           {x / 2, "x / 2"},
           {2 + x, "x + 2"},
           {2 - x, "2 - x"},
           {2 * x, "x * 2"},
           {2 / x, "2 / x"},
           {x < y, "x < y"},
           {x <= y, "x <= y"},
           {x == y, "x == y"},
           {x != y, "!(x == y)"},
           {x < 1, "x < 1"},
           {x <= 1, "x <= 1"},
           {x == 1, "x == 1"},
           {x && y, "x && y"},
           {x || y, "x || y"},
           {!x, "!x"},
           {select(i, x, y), "select(i, x, y)"},
           {min(x, y), "min(x, y)"},
           {max(x, y), "max(x, y)"},
           {min(x, 1), "min(x, 1)"},
           {max(x, 1), "max(x, 1)"},
           {clamp(x, 0, 1), "min(max(x, 0), 1)"},
           {clamp(x, 0, std::numeric_limits<double>::infinity()), "max(x, 0)"},
           {clamp(x, -std::numeric_limits<double>::infinity(), 1), "min(x, 1)"},
           {abs(x), "abs(x)"},
           {exp(x), "exp(x)"},
           {log(x), "log(x)"},
           {log1p(x), "log1p(x)"},
           {expm1(x), "expm1(x)"},
           {sqrt(x), "sqrt(x)"},
           {rsqrt(x), "rsqrt(x)"},
           {square(x), "x * x"},
           {tanh(x), "tanh(x)"},
           {sigmoid(x), "sigmoid(x)"},
           {silu(x), "x * sigmoid(x)"},
           {softplus(x), "softplus(x)"},
           {sin(x), "sin_turns(x * 0.15915494309189535)"},
           {cos(x), "cos_turns(x * 0.15915494309189535)"},
           {sin_turns(x), "sin_turns(x)"},
           {cos_turns(x), "cos_turns(x)"},
           {floor(x), "floor(x)"},
           {wrap(x), "wrap(x)"},
           {nonpositive(x), "nonpositive(x)"},
       }) {
    CHECK(body(value) == "Map " + text);
  }
  CHECK((x * y).value() == (x * y).value());
}

TEST_CASE("sums of products are contractions of their factors") {
  Scope s;
  auto x = s.input("x", {b, t, n}), y = s.input("y", {b, t, n}), z = s.input("z", {n, h});
  CHECK(body(sum(x * y, n)) == "Contract sum (n) of x * y");
  CHECK(body(sum(x * (y * z), n)) == "Contract sum (n) of x * y * z");
  CHECK(body(sum(square(x), n)) == "Contract sum (n) of x * x");
  CHECK(body(sum(exp(x) * y, {t, n})) == "Contract sum (t n) of %3 * y");
  CHECK(body(sum(-x * z, n)) == "Map -%3");
  CHECK(body(sum(x * z * 3.0, n)) == "Map %3 * 3");
  CHECK(body(sum(x, n)) == "Reduce sum (n) of x");
  CHECK(body(sum(x * 2.0, n)) == "Reduce sum (n) of %3");
  CHECK(body(sum(x + y, n)) == "Reduce sum (n) of %3");
  CHECK(body(sum(x / y, n)) == "Reduce sum (n) of %3");
  CHECK(body(sum((x + y) * z, n)) == "Contract sum (n) of %3 * z");
  CHECK(body(sum((x * 0.0) * z, n)) == "Contract sum (n) of %3 * z");
  CHECK(sum(x * z, std::vector<Axis>{}).value() == (x * z).value());
  // A value that only lends its axes is a factor all the same.
  CHECK(sum(broadcast(x, {h}) * y, h).axes() == AxisNames{"b", "t", "n"});
  CHECK(body(contract({x, z}, {n})) == "Contract sum (n) of x * z");
  CHECK(body(mean(x, {t, n})) == "Map %3 / (size(t) * 8)");
  CHECK(body(mean(x, {n})) == "Map %3 / 8");
  CHECK(body(maximum(x, {t})) == "Reduce max (t) of x");
  // Powers of powers stay bounded.
  auto power = x;
  for (int i = 0; i < 20; ++i) power = square(power);
  const Node& node = s.graph().node(sum(power, n).value().node);
  CHECK(node.operands.size() <= 8);
}

TEST_CASE("broadcast lends axes and leaves the dtype") {
  Scope s;
  auto x = s.input("x", {b, t});
  auto wide = broadcast(x, {t, h});
  CHECK(wide.axes() == AxisNames{"b", "t", "h"});
  CHECK(wide.dtype() == DType::f32);
  CHECK(broadcast(x, {t}).value() == x.value());
  auto i = s.input("i", {b}, DType::i32);
  CHECK(broadcast(i, {t}).dtype() == DType::i32);
}

TEST_CASE("dtypes of a Scope") {
  auto dtypes = [](DType activation) {
    Scope s(activation);
    auto x = s.input("x", {b, h});
    auto w = s.param("w", {h});
    auto in = s.state("in", "out", {b, h});
    s.leave("out", x);  // takes the dtype of the state
    s.output("y", s.index(h) * 0.5, {"h"});
    Graph graph = s.finish();
    return text(name(x.dtype()), " ", name(w.dtype()), " ", name(in.dtype()), " ",
                name(graph.type(graph.outputs()[0].value).dtype), " ",
                name(graph.type(graph.outputs()[1].value).dtype));
  };
  CHECK(dtypes(DType::f64) == "f64 f64 f64 f64 f64");
  CHECK(dtypes(DType::f32) == "f32 f32 f32 f32 f32");
  CHECK(dtypes(DType::bf16) == "bf16 f32 f32 f32 f32");
  CHECK(dtypes(DType::f16) == "f16 f32 f32 f32 f32");
  CHECK_THROWS_WITH(Scope(DType::i32), Contains("activation dtype is i32"));
}

TEST_CASE("a prefix stands before every name and ends with its object") {
  Scope s;
  auto block = [&] {
    auto x = s.input("x", {h});
    auto w = s.param("w", {h});
    auto in = s.state("in", "out", {h});
    s.leave("out", x * w + in);
    s.output("y", x + in, {h});
  };
  {
    Scope::Prefix outer(s, "layers.0.");
    block();
    Scope::Prefix inner(s, "inner.");
    block();
  }
  block();
  Graph graph = s.finish();
  for (const char* name : {"layers.0.x", "layers.0.w", "layers.0.in", "layers.0.inner.x", "w"})
    CHECK(graph.find_input(name));
  std::vector<std::string> outputs;
  for (const auto& output : graph.outputs()) outputs.push_back(output.name);
  CHECK(outputs == std::vector<std::string>{"layers.0.out", "layers.0.y", "layers.0.inner.out",
                                            "layers.0.inner.y", "out", "y"});
  CHECK(graph.states()[1].in == "layers.0.inner.in");
  CHECK(graph.states()[1].out == "layers.0.inner.out");
}

TEST_CASE("mistakes of a block's author") {
  Scope s, other;
  auto x = s.input("x", {b, t, h});
  auto y = other.input("y", {b, t, h});
  CHECK_THROWS_WITH(x + y, Contains("two Scopes"));
  CHECK_THROWS_WITH(x + Expr(), Contains("undefined"));
  CHECK_THROWS_WITH(exp(Expr()), Contains("undefined"));
  CHECK_THROWS_WITH(contract({x, y}, {t}), Contains("two Scopes"));
  CHECK_THROWS_WITH(contract({}, {t}), Contains("0; allowed: 1 and up"));
  CHECK_THROWS_WITH(sum(x, n), Contains("Reduce.axes is \"n\""));
  CHECK_THROWS_WITH(sum(x * x, n), Contains("Contract.sum is \"n\""));
  CHECK_THROWS_WITH(clamp(x, 1, 0), Contains("bounds of clamp is 1 and 0"));
  CHECK_THROWS_WITH(x * std::numeric_limits<double>::quiet_NaN(), Contains("nan"));
  CHECK_THROWS_WITH(s.input("z", {Axis("h", 5)}), Contains("size of axis h is 5; allowed: 4"));
  CHECK_THROWS_WITH(s.input("x", {b}), Contains("\"x\""));
  CHECK_THROWS_WITH(s.output("y", y, {"b", "t", "h"}), Contains("another Scope"));
  CHECK_THROWS_WITH(s.output("y", x, {"b", "t"}), Contains("axes of output y"));
  CHECK_THROWS_WITH(tail(x, t, Axis("k")), Contains("size of axis k of tail is k"));
  CHECK_THROWS_WITH(s.finish(), Contains("outputs nothing"));
  auto in = s.state("in", "out", {b, h});
  CHECK_THROWS_WITH(s.state("in2", "out", {b, h}), Contains("\"out\""));
  CHECK_THROWS_WITH(s.leave("else", in), Contains("\"else\""));
  CHECK_THROWS_WITH(s.leave("out", x), Contains("axes of output out"));
  CHECK_THROWS_WITH(s.leave("out", in < 1.0), Contains("dtype of state out is i32"));
  CHECK_THROWS_WITH(s.output("out", in, {"b", "h"}), Contains("use leave"));
  s.output("y", x, {"b", "t", "h"});
  CHECK_THROWS_WITH(s.finish(), Contains("state in has no leaving value"));
  s.leave("out", in);
  CHECK_THROWS_WITH(s.leave("out", in), Contains("left twice"));
  CHECK_NOTHROW(s.finish());
}
