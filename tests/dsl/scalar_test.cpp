#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>

#include "dsl/error.h"
#include "tests/dsl/scalar_value.h"

using namespace krait;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Text of the expression that `write` makes over operands a, b, c.
std::string built(const std::function<int(Scalar&, int, int, int)>& write) {
  Scalar s;
  const int a = s.operand(0), b = s.operand(1), c = s.operand(2);
  s.finish(write(s, a, b, c));
  return s.text({"a", "b", "c"});
}

Scalar one_operator(ScalarOp op) {
  Scalar s;
  int args[3] = {-1, -1, -1};
  for (int i = 0; i < arity(op); ++i) args[i] = s.operand(i);
  s.finish(s.apply(op, args[0], args[1], args[2]));
  return s;
}

}  // namespace

TEST_CASE("every scalar operator has a name of its own and a value") {
  std::vector<std::string_view> names;
  for (ScalarOp op : operators()) {
    CHECK(std::find(names.begin(), names.end(), name(op)) == names.end());
    names.push_back(name(op));
    CHECK(std::isfinite(apply_scalar(op, 0.25, 0.5, 0.75)));
  }
  CHECK(names.size() == 30);
}

TEST_CASE("values of the operators that are no plain library call") {
  using enum ScalarOp;
  auto at = [](ScalarOp op, double a, double b = 0, double c = 0) {
    return apply_scalar(op, a, b, c);
  };
  CHECK(at(exp_nonpositive, 3) == 1);
  CHECK(at(exp_nonpositive, -1) == std::exp(-1));
  CHECK(at(sigmoid, 800) == 1);
  CHECK(at(sigmoid, -800) == 0);
  CHECK(at(sigmoid, 0.3) == Approx(1 / (1 + std::exp(-0.3))).epsilon(1e-15));
  CHECK(at(softplus, 20.5) == 20.5);
  CHECK(at(softplus, 800) == 800);
  CHECK(at(softplus, -50) == Approx(std::exp(-50)).epsilon(1e-14));
  CHECK(at(softplus, 1) == Approx(std::log(1 + std::exp(1))).epsilon(1e-15));
  CHECK(at(sin_turns, 1e6 + 0.25) == Approx(1).epsilon(1e-15));
  CHECK(std::fabs(at(sin_turns, 1e9)) < 1e-15);
  CHECK(at(cos_turns, 0.5) == -1);
  CHECK(at(wrap, 0.5) == -0.5);
  CHECK(at(wrap, -0.5) == -0.5);
  CHECK(at(wrap, 7.25) == 0.25);
  CHECK(at(rsqrt, 4) == 0.5);
  CHECK(at(select, 2, 5, 7) == 5);
  CHECK(at(select, 0, 5, 7) == 7);
  CHECK(std::isnan(at(max, NAN, 1)));
  CHECK(std::isnan(at(max, 1, NAN)));
  CHECK(std::isnan(at(min, 1, NAN)));
}

TEST_CASE("equal scalar nodes are one, whichever way round") {
  using enum ScalarOp;
  Scalar s;
  const int a = s.operand(0), b = s.operand(1);
  CHECK(s.apply(mul, a, b) == s.apply(mul, b, a));
  CHECK(s.apply(add, a, b) == s.apply(add, b, a));
  CHECK(s.apply(sub, a, b) != s.apply(sub, b, a));
  CHECK(s.apply(less, a, b) != s.apply(less, b, a));
  CHECK(s.index("t") == s.index("t"));
  CHECK(s.index("t") != s.index("k"));
  CHECK(s.extent(Extent::symbolic("t")) != s.extent(Extent::symbolic("b")));
  CHECK(s.constant(2) == s.constant(2));
}

TEST_CASE("constants fold and identities vanish") {
  using enum ScalarOp;
  auto c0 = [](Scalar& s) { return s.constant(0); };
  auto c1 = [](Scalar& s) { return s.constant(1); };
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(add, a, c0(s)); }) == "a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(add, c0(s), a); }) == "a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(sub, a, c0(s)); }) == "a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(sub, c0(s), a); }) == "-a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(sub, a, a); }) == "0");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(mul, c1(s), a); }) == "a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(mul, a, c0(s)); }) == "0");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(mul, a, s.constant(-1)); }) == "-a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(div, a, c1(s)); }) == "a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(div, c0(s), a); }) == "0");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(neg, s.apply(neg, a)); }) == "a");
  CHECK(built([&](Scalar& s, int a, int b, int) { return s.apply(add, a, s.apply(neg, b)); }) ==
        "a - b");
  CHECK(built([&](Scalar& s, int a, int b, int) { return s.apply(sub, a, s.apply(neg, b)); }) ==
        "a + b");
  CHECK(built([&](Scalar& s, int a, int b, int) { return s.apply(neg, s.apply(sub, a, b)); }) ==
        "b - a");
  CHECK(built([&](Scalar& s, int a, int b, int) {
          return s.apply(mul, s.apply(neg, a), s.apply(neg, b));
        }) == "a * b");
  CHECK(built([&](Scalar& s, int a, int, int) {
          return s.apply(mul, s.constant(3), s.apply(mul, a, s.constant(2)));
        }) == "a * 6");
  CHECK(built([&](Scalar& s, int, int, int) { return s.apply(exp, s.constant(0)); }) == "1");
  CHECK(built([&](Scalar& s, int a, int b, int) { return s.apply(select, c1(s), a, b); }) == "a");
  CHECK(built([&](Scalar& s, int a, int b, int) { return s.apply(select, c0(s), a, b); }) == "b");
  CHECK(built([&](Scalar& s, int a, int b, int) { return s.apply(select, a, b, b); }) == "b");
  CHECK(built([&](Scalar& s, int a, int b, int c) {
          return s.apply(select, s.apply(logical_not, a), b, c);
        }) == "select(a, c, b)");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(max, a, a); }) == "a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(min, a, s.constant(kInfinity)); }) ==
        "a");
  CHECK(built([&](Scalar& s, int a, int, int) {
          return s.apply(max, s.constant(-kInfinity), a);
        }) == "a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(less, a, a); }) == "0");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(less_equal, a, a); }) == "1");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(logical_and, a, c0(s)); }) == "0");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(logical_or, c1(s), a); }) == "1");
  CHECK(built([&](Scalar& s, int a, int b, int) {
          return s.apply(logical_and, c1(s), s.apply(less, a, b));
        }) == "a < b");
  // Truth of a number is not the number.
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(logical_and, a, c1(s)); }) ==
        "a && 1");
  CHECK(built([&](Scalar& s, int a, int, int) {
          return s.apply(logical_not, s.apply(logical_not, a));
        }) == "!!a");
  CHECK(built([&](Scalar& s, int a, int, int) { return s.apply(abs, s.apply(neg, a)); }) ==
        "abs(a)");
  CHECK(built([&](Scalar& s, int, int, int) { return s.extent(Extent::constant(12)); }) == "12");
  // No NaN becomes a constant, and a broken promise stays for who evaluates it.
  CHECK(built([&](Scalar& s, int, int, int) { return s.apply(log, s.constant(-1)); }) == "log(-1)");
  CHECK(built([&](Scalar& s, int, int, int) { return s.apply(nonpositive, s.constant(1)); }) ==
        "nonpositive(1)");
}

TEST_CASE("folding keeps the value of random expressions") {
  std::mt19937 random(7);
  auto pick = [&](int count) { return static_cast<int>(random() % count); };
  const std::vector<ScalarOp> ops{ScalarOp::neg,         ScalarOp::abs,    ScalarOp::add,
                                  ScalarOp::sub,         ScalarOp::mul,    ScalarOp::min,
                                  ScalarOp::max,         ScalarOp::select, ScalarOp::less,
                                  ScalarOp::logical_not, ScalarOp::floor};
  for (int round = 0; round < 500; ++round) {
    Scalar s;
    std::vector<double> operands{-1.5, 0, 1, 2.25};
    std::vector<std::pair<int, double>> known;  // node, value without any folding
    for (int i = 0; i < 4; ++i) known.emplace_back(s.operand(i), operands[i]);
    for (double value : {-1.0, 0.0, 1.0, 3.0}) known.emplace_back(s.constant(value), value);
    for (int step = 0; step < 12; ++step) {
      const ScalarOp op = ops[pick(static_cast<int>(ops.size()))];
      int args[3] = {-1, -1, -1};
      double values[3] = {0, 0, 0};
      for (int i = 0; i < arity(op); ++i)
        std::tie(args[i], values[i]) = known[pick(static_cast<int>(known.size()))];
      known.emplace_back(s.apply(op, args[0], args[1], args[2]),
                         apply_scalar(op, values[0], values[1], values[2]));
    }
    s.finish(known.back().first);
    CHECK(value_of(s, operands) == Approx(known.back().second).margin(1e-12));
  }
}

TEST_CASE("finish keeps what the result needs, in an order of its own") {
  using enum ScalarOp;
  Scalar one, other;
  {
    const int a = one.operand(0), b = one.operand(1);
    one.apply(exp, b);
    one.finish(one.apply(sub, one.apply(exp, a), one.apply(log, b)));
  }
  {
    const int b = other.operand(1);
    const int right = other.apply(log, b);
    other.finish(other.apply(sub, other.apply(exp, other.operand(0)), right));
  }
  CHECK(one == other);
  CHECK(one.nodes().size() == 5);
  CHECK(one.operand_count() == 2);
}

TEST_CASE("an expression goes into another one") {
  using enum ScalarOp;
  Scalar inner;
  inner.finish(inner.apply(mul, inner.operand(0), inner.apply(sigmoid, inner.operand(1))));
  Scalar outer;
  const int x = outer.operand(0);
  outer.finish(outer.inline_expression(inner, {outer.constant(2), outer.apply(neg, x)}));
  CHECK(outer.text({"x"}) == "sigmoid(-x) * 2");
  CHECK_THROWS_AS(outer.inline_expression(inner, {0}), InternalError);
}

TEST_CASE("text keeps the order of evaluation and names what is shared") {
  using enum ScalarOp;
  CHECK(built([](Scalar& s, int a, int b, int c) { return s.apply(sub, a, s.apply(sub, b, c)); }) ==
        "a - (b - c)");
  CHECK(built([](Scalar& s, int a, int b, int c) { return s.apply(sub, s.apply(sub, a, b), c); }) ==
        "a - b - c");
  CHECK(built([](Scalar& s, int a, int b, int c) { return s.apply(div, a, s.apply(mul, b, c)); }) ==
        "a / (b * c)");
  CHECK(built([](Scalar& s, int a, int b, int c) { return s.apply(mul, s.apply(add, a, b), c); }) ==
        "(a + b) * c");
  CHECK(built([](Scalar& s, int a, int b, int) {
          return s.apply(mul, s.apply(exp, s.apply(add, a, b)), s.apply(exp, s.apply(add, a, b)));
        }) == "$0 * $0 where $0 = exp(a + b)");
  CHECK(built([](Scalar& s, int a, int, int) { return s.apply(add, a, s.constant(0.1)); }) ==
        "a + 0.1");
  CHECK(built([](Scalar& s, int a, int, int) {
          return s.apply(less_equal, s.index("k"), s.apply(sub, s.extent({"t", 3, 1}), a));
        }) == "index(k) <= size(t+3) - a");
}

TEST_CASE("kinds of scalar expressions") {
  using enum ScalarOp;
  auto kind = [](const std::function<int(Scalar&, int, int)>& write) {
    Scalar s;
    const int i = s.operand(0), x = s.operand(1);
    s.finish(write(s, i, x));
    return s.kinds({true, false}).back();
  };
  CHECK(kind([](Scalar& s, int i, int) { return s.apply(add, i, s.constant(1)); }) ==
        ScalarKind::integer);
  CHECK(kind([](Scalar& s, int i, int) { return s.apply(mul, i, s.constant(0.5)); }) ==
        ScalarKind::real);
  CHECK(kind([](Scalar& s, int i, int x) { return s.apply(mul, i, x); }) == ScalarKind::real);
  CHECK(kind([](Scalar& s, int i, int) { return s.apply(less, i, s.index("t")); }) ==
        ScalarKind::boolean);
  CHECK(kind([](Scalar& s, int i, int) { return s.apply(div, i, s.constant(2)); }) ==
        ScalarKind::real);
  CHECK(kind([](Scalar& s, int i, int) {
          return s.apply(floor, s.apply(div, i, s.constant(2)));
        }) == ScalarKind::integer);
  CHECK(kind([](Scalar& s, int, int x) { return s.apply(floor, x); }) == ScalarKind::real);
  CHECK(kind([](Scalar& s, int i, int) {
          return s.apply(select, i, s.constant(1), s.constant(0));
        }) == ScalarKind::real);
  CHECK(kind([](Scalar& s, int i, int) { return s.apply(select, i, i, s.constant(0)); }) ==
        ScalarKind::integer);
  CHECK(kind([](Scalar& s, int i, int) {
          return s.apply(max, i, s.extent({"t", 0, 1}));
        }) == ScalarKind::integer);
  CHECK(kind([](Scalar& s, int, int) { return s.constant(3); }) == ScalarKind::real);
  CHECK(kind([](Scalar& s, int i, int) { return s.apply(exp, i); }) == ScalarKind::real);
  CHECK(kind([](Scalar& s, int i, int) {
          return s.apply(add, s.apply(less, i, s.constant(3)), i);
        }) == ScalarKind::integer);
}

TEST_CASE("derivatives agree with finite differences, operator by operator") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(-3, 3);
  for (ScalarOp op : operators()) {
    const Scalar f = one_operator(op);
    INFO(name(op));
    for (int number = 0; number < arity(op); ++number) {
      const Scalar d = derivative(f, number);
      for (int round = 0; round < 50; ++round) {
        std::vector<double> at{uniform(random), uniform(random), uniform(random)};
        const bool positive = op == ScalarOp::log || op == ScalarOp::log1p ||
                              op == ScalarOp::sqrt || op == ScalarOp::rsqrt;
        if (positive) at[0] = std::fabs(at[0]) + 0.1;
        if (op == ScalarOp::exp_nonpositive) at[0] = -std::fabs(at[0]) - 0.1;
        if (op == ScalarOp::div) at[1] += std::copysign(1, at[1]);
        constexpr double step = 1e-5;
        auto near = [&](double x) {
          auto moved = at;
          moved[number] += x;
          return value_of(f, moved);
        };
        // Not across a step or a kink.
        const double left = (near(0) - near(-step)) / step, right = (near(step) - near(0)) / step;
        if (std::fabs(left - right) > 1e-3 * (1 + std::fabs(left))) continue;
        CHECK(value_of(d, at) ==
              Approx((near(step) - near(-step)) / (2 * step)).epsilon(1e-7).margin(1e-8));
      }
    }
  }
}

TEST_CASE("derivatives at the points that a convention decides") {
  using enum ScalarOp;
  auto slope = [](ScalarOp op, int number, double a, double b = 0) {
    return value_of(derivative(one_operator(op), number), {a, b, 0});
  };
  CHECK(slope(exp_nonpositive, 0, 0.5) == 1);
  CHECK(slope(exp_nonpositive, 0, -1) == std::exp(-1));
  CHECK(slope(wrap, 0, 0.5) == 1);
  CHECK(slope(nonpositive, 0, 0) == 1);
  CHECK(slope(floor, 0, 2) == 0);
  CHECK(slope(max, 0, 1, 1) == 1);
  CHECK(slope(max, 1, 1, 1) == 0);
  CHECK(slope(min, 0, 1, 1) == 1);
  CHECK(slope(min, 1, 1, 1) == 0);
  CHECK(slope(softplus, 0, 25) == 1);
  CHECK(slope(sigmoid, 0, 40) == Approx(std::exp(-40)).epsilon(1e-12));
}

TEST_CASE("derivatives of compositions agree with finite differences") {
  std::mt19937 random(5);
  const std::vector<ScalarOp> ops{ScalarOp::add,       ScalarOp::sub,
                                  ScalarOp::mul,       ScalarOp::tanh,
                                  ScalarOp::sigmoid,   ScalarOp::softplus,
                                  ScalarOp::neg,       ScalarOp::sin_turns,
                                  ScalarOp::cos_turns, ScalarOp::exp_nonpositive};
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int round = 0; round < 200; ++round) {
    Scalar f;
    std::vector<int> nodes{f.operand(0), f.operand(1), f.constant(0.5)};
    for (int step = 0; step < 6; ++step) {
      ScalarOp op = ops[random() % ops.size()];
      auto any = [&] { return nodes[random() % nodes.size()]; };
      int a = any(), b = arity(op) > 1 ? any() : -1;
      // Bounded, so that differences stay exact, and on the smooth side of its guard.
      if (op == ScalarOp::exp_nonpositive)
        a = f.apply(ScalarOp::neg, f.apply(ScalarOp::softplus, a));
      if (op == ScalarOp::sin_turns || op == ScalarOp::cos_turns) a = f.apply(ScalarOp::tanh, a);
      nodes.push_back(f.apply(op, a, b));
    }
    f.finish(nodes.back());
    const double x = uniform(random), y = uniform(random);
    constexpr double step = 1e-5;
    CHECK(value_of(derivative(f, 0), {x, y}) ==
          Approx((value_of(f, {x + step, y}) - value_of(f, {x - step, y})) / (2 * step))
              .epsilon(1e-5)
              .margin(1e-5));
  }
}

TEST_CASE("no dependence is the constant 0") {
  using enum ScalarOp;
  Scalar s;
  s.finish(s.apply(select, s.apply(less, s.operand(0), s.index("t")), s.operand(1), s.constant(2)));
  CHECK(derivative(s, 0).root().op == constant);
  CHECK(derivative(s, 0).root().value == 0);
  CHECK(derivative(s, 1).text({"a", "b"}) == "select(a < index(t), 1, 0)");
  CHECK(derivative(s, 2).root().op == constant);
}
