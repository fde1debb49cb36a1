#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "tests/dsl/scalar_value.h"

using namespace krait;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Draw {
 public:
  double number(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int below(int count) { return static_cast<int>(random_() % count); }

  /// Small, large, one-sided, points, and ends at the places where something happens.
  Interval interval() {
    static constexpr double special[] = {-kInfinity, -20, -1, -0.5, 0, 0.5, 1, 20, kInfinity};
    auto end = [&] { return below(2) == 0 ? special[below(9)] : number(-4, 4); };
    double a = end(), b = below(8) == 0 ? a : end();
    if (std::isinf(a) && a == b) a = 0;
    return {std::min(a, b), std::max(a, b)};
  }

  double inside(Interval i) {
    if (below(5) == 0 && std::isfinite(i.low)) return i.low;
    if (below(5) == 0 && std::isfinite(i.high)) return i.high;
    double low = std::max(i.low, std::min(i.high, 0.0) - 30);
    double high = std::min(i.high, std::max(i.low, 0.0) + 30);
    return number(low, high);
  }

 private:
  std::mt19937 random_{3};
};

bool holds(Interval interval, double value) {
  if (std::isinf(value)) return value == interval.low || value == interval.high;
  const double margin = 1e-12 * (1 + std::fabs(value));
  return value >= interval.low - margin && value <= interval.high + margin;
}

}  // namespace

TEST_CASE("intervals hold every value, operator by operator") {
  Draw draw;
  for (ScalarOp op : operators()) {
    for (int round = 0; round < 2000; ++round) {
      Scalar s;
      int args[3] = {-1, -1, -1};
      std::vector<Interval> intervals;
      std::vector<double> values;
      for (int i = 0; i < arity(op); ++i) {
        args[i] = s.operand(i);
        intervals.push_back(draw.interval());
        values.push_back(draw.inside(intervals.back()));
      }
      s.finish(s.apply(op, args[0], args[1], args[2]));
      const auto computed = values_of(s, values);
      if (!has_value(s, computed)) continue;
      const double value = computed.back();
      const Interval bound = s.interval(intervals);
      INFO(name(op) << " of " << values[0] << " in [" << intervals[0].low << ", "
                    << intervals[0].high << "] is " << value << ", bound [" << bound.low << ", "
                    << bound.high << "]");
      CHECK(bound.low <= bound.high);
      CHECK(holds(bound, value));
    }
  }
}

TEST_CASE("intervals hold every value of compositions") {
  Draw draw;
  const auto ops = operators();
  for (int round = 0; round < 3000; ++round) {
    Scalar s;
    std::vector<int> nodes{s.operand(0), s.operand(1), s.constant(draw.number(-2, 2)),
                           s.index("t")};
    for (int step = 0; step < 5; ++step) {
      const ScalarOp op = ops[draw.below(static_cast<int>(ops.size()))];
      int args[3] = {-1, -1, -1};
      for (int i = 0; i < arity(op); ++i)
        args[i] = nodes[draw.below(static_cast<int>(nodes.size()))];
      nodes.push_back(s.apply(op, args[0], args[1], args[2]));
    }
    s.finish(nodes.back());
    const std::vector<Interval> intervals{draw.interval(), draw.interval()};
    const auto values =
        values_of(s, {draw.inside(intervals[0]), draw.inside(intervals[1])}, draw.below(5));
    if (!has_value(s, values)) continue;
    const double value = values.back();
    const Interval bound = s.interval(intervals);
    INFO(s.text({"a", "b"}) << " is " << value << ", bound [" << bound.low << ", " << bound.high
                            << "]");
    CHECK(holds(bound, value));
  }
}

TEST_CASE("signs that decays rest on are found") {
  using enum ScalarOp;
  auto bound = [](auto write) {
    Scalar s;
    s.finish(write(s, s.operand(0), s.operand(1)));
    return s.interval({{}, {}});
  };
  CHECK(bound([](Scalar& s, int a, int) { return s.apply(neg, s.apply(exp, a)); }).nonpositive());
  CHECK(bound([](Scalar& s, int a, int) {
          return s.apply(neg, s.apply(softplus, a));
        }).nonpositive());
  CHECK(bound([](Scalar& s, int a, int b) {
          return s.apply(mul, s.apply(softplus, a), s.apply(neg, s.apply(exp, b)));
        }).nonpositive());
  CHECK(bound([](Scalar& s, int a, int) {
          return s.apply(neg, s.apply(max, a, s.constant(1e-4)));
        }).high == -1e-4);
  CHECK(bound([](Scalar& s, int a, int) { return s.apply(nonpositive, a); }).nonpositive());
  CHECK(bound([](Scalar& s, int a, int) { return s.apply(mul, a, a); }).nonnegative());
  CHECK(
      bound([](Scalar& s, int a, int) { return s.apply(log, s.apply(sigmoid, a)); }).nonpositive());
  CHECK(bound([](Scalar& s, int a, int) { return s.apply(min, a, s.constant(0)); }).nonpositive());
  CHECK_FALSE(bound([](Scalar& s, int a, int) { return s.apply(neg, a); }).nonpositive());
  CHECK_FALSE(
      bound([](Scalar& s, int a, int) { return s.apply(neg, s.apply(tanh, a)); }).nonpositive());
  const Interval wrapped = bound([](Scalar& s, int a, int) { return s.apply(wrap, a); });
  CHECK(wrapped.low == -0.5);
  CHECK(wrapped.high == 0.5);
}
