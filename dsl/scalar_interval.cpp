// Intervals over scalar expressions. Bounds are those of exact arithmetic, not widened for
// rounding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dsl/error.h"
#include "dsl/scalar.h"

namespace krait {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

Interval multiply(Interval a, Interval b) {
  auto corners = {product(a.low, b.low), product(a.low, b.high), product(a.high, b.low),
                  product(a.high, b.high)};
  return {std::min(corners), std::max(corners)};
}

Interval square(Interval a) {
  double low = a.low > 0 ? a.low : a.high < 0 ? a.high : 0;
  double high = std::max(std::fabs(a.low), std::fabs(a.high));
  return {product(low, low), product(high, high)};
}

Interval divide(Interval a, Interval b) {
  if (b.low < 0 && b.high > 0) return {};
  if (b.low == 0 && b.high == 0) return {};
  // 1/b, one-sided; the reciprocal of 0 is the infinity on its side.
  Interval inverse(b.high <= 0 ? (b.high == 0 ? -kInfinity : 1 / b.high) : 1 / b.high,
                   b.low >= 0 ? (b.low == 0 ? kInfinity : 1 / b.low) : 1 / b.low);
  // inf / inf can be anything of the right sign.
  if (std::isinf(a.low) || std::isinf(a.high)) {
    if (inverse.low == 0 || inverse.high == 0) {
      bool negative = (a.low < 0 && inverse.high > 0) || (a.high > 0 && inverse.low < 0);
      bool positive = (a.high > 0 && inverse.high > 0) || (a.low < 0 && inverse.low < 0);
      return {negative ? -kInfinity : 0, positive ? kInfinity : 0};
    }
  }
  return multiply(a, inverse);
}

double sum(double a, double b, double if_undefined) {
  double value = a + b;
  return std::isnan(value) ? if_undefined : value;
}

Interval truth(bool surely, bool never) { return {surely ? 1.0 : 0.0, never ? 0.0 : 1.0}; }

bool surely_true(Interval a) { return a.low > 0 || a.high < 0; }
bool surely_false(Interval a) { return a.low == 0 && a.high == 0; }

Interval monotone(ScalarOp op, Interval a) {
  return {apply_scalar(op, a.low, 0, 0), apply_scalar(op, a.high, 0, 0)};
}

Interval apply_interval(ScalarOp op, Interval a, Interval b, Interval c) {
  switch (op) {
    case ScalarOp::neg: return {-a.high, -a.low};
    case ScalarOp::abs: {
      double low = a.low > 0 ? a.low : a.high < 0 ? -a.high : 0;
      return {low, std::max(std::fabs(a.low), std::fabs(a.high))};
    }
    case ScalarOp::exp:
    case ScalarOp::exp_nonpositive:
    case ScalarOp::expm1:
    case ScalarOp::tanh:
    case ScalarOp::floor: return monotone(op, a);
    case ScalarOp::sigmoid:
      return {a.low == -kInfinity ? 0 : apply_scalar(op, a.low, 0, 0),
              a.high == kInfinity ? 1 : apply_scalar(op, a.high, 0, 0)};
    // The step at 20, where log(1 + e^x) is left, is of the size of a rounding but goes down.
    case ScalarOp::softplus:
      return {a.low > 19 ? a.low : std::log1p(std::exp(a.low)),
              a.high <= 19 ? std::log1p(std::exp(a.high)) : a.high + std::log1p(std::exp(-a.high))};
    case ScalarOp::log:
      return {a.low > 0 ? std::log(a.low) : -kInfinity, a.high > 0 ? std::log(a.high) : kInfinity};
    case ScalarOp::log1p:
      return {a.low > -1 ? std::log1p(a.low) : -kInfinity,
              a.high > -1 ? std::log1p(a.high) : kInfinity};
    case ScalarOp::sqrt:
      return {a.low > 0 ? std::sqrt(a.low) : 0, a.high > 0 ? std::sqrt(a.high) : 0};
    case ScalarOp::rsqrt:
      return {a.high > 0 ? 1 / std::sqrt(a.high) : 0, a.low > 0 ? 1 / std::sqrt(a.low) : kInfinity};
    case ScalarOp::sin_turns:
    case ScalarOp::cos_turns: return {-1, 1};
    case ScalarOp::wrap: return a.low >= -0.5 && a.high < 0.5 ? a : Interval(-0.5, 0.5);
    case ScalarOp::nonpositive: return {std::min(a.low, 0.0), std::min(a.high, 0.0)};
    case ScalarOp::logical_not: return truth(surely_false(a), surely_true(a));
    case ScalarOp::add: return {sum(a.low, b.low, -kInfinity), sum(a.high, b.high, kInfinity)};
    case ScalarOp::sub: return {sum(a.low, -b.high, -kInfinity), sum(a.high, -b.low, kInfinity)};
    case ScalarOp::mul: return multiply(a, b);
    case ScalarOp::div: return divide(a, b);
    case ScalarOp::min: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case ScalarOp::max: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case ScalarOp::less: return truth(a.high < b.low, a.low >= b.high);
    case ScalarOp::less_equal: return truth(a.high <= b.low, a.low > b.high);
    case ScalarOp::equal:
      return truth(a.low == a.high && b.low == b.high && a.low == b.low,
                   a.high < b.low || b.high < a.low);
    case ScalarOp::logical_and:
      return truth(surely_true(a) && surely_true(b), surely_false(a) || surely_false(b));
    case ScalarOp::logical_or:
      return truth(surely_true(a) || surely_true(b), surely_false(a) && surely_false(b));
    case ScalarOp::select:
      if (surely_true(a)) return b;
      if (surely_false(a)) return c;
      return {std::min(b.low, c.low), std::max(b.high, c.high)};
    default: throw InternalError(text("no interval of ", name(op)));
  }
}

}  // namespace

Interval::Interval() : low(-kInfinity), high(kInfinity) {}

Interval Scalar::interval(const std::vector<Interval>& operands) const {
  std::vector<Interval> known;
  for (const auto& node : nodes()) {
    Interval args[3];
    for (int i = 0; i < arity(node.op); ++i) args[i] = known[node.args[i]];
    switch (node.op) {
      case ScalarOp::constant: known.emplace_back(node.value, node.value); break;
      case ScalarOp::operand:
        KRAIT_ASSERT(node.operand < static_cast<int>(operands.size()), "operand ", node.operand,
                     " of ", operands.size());
        known.push_back(operands[node.operand]);
        break;
      case ScalarOp::index:
      case ScalarOp::extent: known.emplace_back(0, kInfinity); break;
      case ScalarOp::mul:
        known.push_back(node.args[0] == node.args[1] ? square(args[0])
                                                     : multiply(args[0], args[1]));
        break;
      default: known.push_back(apply_interval(node.op, args[0], args[1], args[2]));
    }
  }
  return known.back();
}

}  // namespace krait
