#include <numbers>

#include "dsl/error.h"
#include "dsl/scalar.h"

namespace krait {
namespace {

/// The slope of node `id`, whose arguments have the slopes da, db, dc (node numbers; `zero` where
/// there is no dependence).
int slope(Scalar& s, int id, int zero, int da, int db, int dc) {
  using enum ScalarOp;
  const ScalarNode node = s.nodes()[id];
  const auto [a, b, c] = node.args;
  auto times = [&](int factor) { return s.apply(mul, da, factor); };
  constexpr double turn = 2 * std::numbers::pi;
  switch (node.op) {
    case constant:
    case operand:
    case index:
    case extent:
    case floor:
    case logical_not:
    case less:
    case less_equal:
    case equal:
    case logical_and:
    case logical_or: return zero;
    case add: return s.apply(add, da, db);
    case sub: return s.apply(sub, da, db);
    case mul: return s.apply(add, s.apply(mul, da, b), s.apply(mul, a, db));
    case div: return s.apply(div, s.apply(sub, da, s.apply(mul, id, db)), b);
    case min: return s.apply(select, s.apply(less_equal, a, b), da, db);
    case max: return s.apply(select, s.apply(less_equal, b, a), da, db);
    case select: return s.apply(select, a, db, dc);
    default: break;
  }
  if (da == zero) return zero;
  switch (node.op) {
    case neg: return s.apply(neg, da);
    case wrap:
    case nonpositive: return da;
    case abs: return s.apply(select, s.apply(less, a, zero), s.apply(neg, da), da);
    case exp:
    case exp_nonpositive: return times(id);
    case log: return s.apply(div, da, a);
    case log1p: return s.apply(div, da, s.apply(add, a, s.constant(1)));
    case expm1: return times(s.apply(exp, a));
    case sqrt: return s.apply(div, times(s.constant(0.5)), id);
    case rsqrt: {
      int cube = s.apply(mul, s.apply(mul, id, id), id);
      return times(s.apply(mul, cube, s.constant(-0.5)));
    }
    case tanh: return times(s.apply(sub, s.constant(1), s.apply(mul, id, id)));
    // 1 - sigmoid(x) as sigmoid(-x): no digit is lost where the gate is open.
    case sigmoid: return times(s.apply(mul, id, s.apply(sigmoid, s.apply(neg, a))));
    case softplus:
      return times(
          s.apply(select, s.apply(less, s.constant(20), a), s.constant(1), s.apply(sigmoid, a)));
    case sin_turns: return times(s.apply(mul, s.apply(cos_turns, a), s.constant(turn)));
    case cos_turns: return times(s.apply(mul, s.apply(sin_turns, a), s.constant(-turn)));
    default: throw InternalError(text("no derivative of ", name(node.op)));
  }
}

}  // namespace

Scalar derivative(const Scalar& expression, int number) {
  Scalar result = expression;
  const int zero = result.constant(0);
  std::vector<int> slopes;
  for (int id = 0; id < static_cast<int>(expression.nodes().size()); ++id) {
    const ScalarNode& node = expression.nodes()[id];
    if (node.op == ScalarOp::operand && node.operand == number) {
      slopes.push_back(result.constant(1));
      continue;
    }
    int d[3] = {zero, zero, zero};
    bool depends = false;
    for (int i = 0; i < 3; ++i)
      if (node.args[i] >= 0) depends |= (d[i] = slopes[node.args[i]]) != zero;
    slopes.push_back(depends ? slope(result, id, zero, d[0], d[1], d[2]) : zero);
  }
  result.finish(slopes.back());
  return result;
}

}  // namespace krait
