// Arithmetic of the language: each function is one Map.
#include "dsl/expr.h"

#include <cmath>
#include <numbers>

#include "dsl/error.h"

namespace krait {
namespace {

Scope& common_scope(std::initializer_list<const Expr*> operands) {
  Scope* scope = nullptr;
  for (const Expr* operand : operands) {
    KRAIT_REQUIRE(operand->defined(), "an operand is undefined; allowed: values of a Scope");
    if (scope == nullptr) scope = &operand->scope();
    KRAIT_REQUIRE(scope == &operand->scope(),
                  "operands are of two Scopes; allowed: values of one Scope");
  }
  return *scope;
}

Expr apply(ScalarOp op, const Expr& a) {
  Scope& scope = common_scope({&a});
  return {scope, scope.graph().map(op, a.value())};
}

Expr apply(ScalarOp op, const Expr& a, const Expr& b) {
  Scope& scope = common_scope({&a, &b});
  return {scope, scope.graph().map(op, a.value(), b.value())};
}

/// A Map of one value; `write` gets the expression and the node of the operand, gives the result.
template <typename Write>
Expr map_of(const Expr& a, Write write) {
  Scope& scope = common_scope({&a});
  Scalar expression;
  const int operand = expression.operand(0);
  expression.finish(write(expression, operand));
  return {scope, scope.graph().map(std::move(expression), {a.value()})};
}

Expr apply(ScalarOp op, const Expr& a, double b) {
  KRAIT_REQUIRE(!std::isnan(b), "operand of ", name(op), " is nan; allowed: numbers");
  return map_of(a, [&](Scalar& s, int x) { return s.apply(op, x, s.constant(b)); });
}

Expr apply(ScalarOp op, double a, const Expr& b) {
  KRAIT_REQUIRE(!std::isnan(a), "operand of ", name(op), " is nan; allowed: numbers");
  return map_of(b, [&](Scalar& s, int x) { return s.apply(op, s.constant(a), x); });
}

}  // namespace

Scope& Expr::scope() const {
  KRAIT_REQUIRE(defined(), "an operand is undefined; allowed: values of a Scope");
  return *scope_;
}

AxisNames Expr::axes() const { return scope().graph().type(value_).axes; }

DType Expr::dtype() const { return scope().graph().type(value_).dtype; }

Expr Expr::named(const std::string& label) const {
  scope().graph().set_label(value_, label);
  return *this;
}

Expr operator-(const Expr& a) { return apply(ScalarOp::neg, a); }
Expr operator+(const Expr& a, const Expr& b) { return apply(ScalarOp::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return apply(ScalarOp::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return apply(ScalarOp::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return apply(ScalarOp::div, a, b); }
Expr operator+(const Expr& a, double b) { return apply(ScalarOp::add, a, b); }
Expr operator-(const Expr& a, double b) { return apply(ScalarOp::sub, a, b); }
Expr operator*(const Expr& a, double b) { return apply(ScalarOp::mul, a, b); }
Expr operator/(const Expr& a, double b) { return apply(ScalarOp::div, a, b); }
Expr operator+(double a, const Expr& b) { return apply(ScalarOp::add, a, b); }
Expr operator-(double a, const Expr& b) { return apply(ScalarOp::sub, a, b); }
Expr operator*(double a, const Expr& b) { return apply(ScalarOp::mul, a, b); }
Expr operator/(double a, const Expr& b) { return apply(ScalarOp::div, a, b); }
Expr operator<(const Expr& a, const Expr& b) { return apply(ScalarOp::less, a, b); }
Expr operator<=(const Expr& a, const Expr& b) { return apply(ScalarOp::less_equal, a, b); }
Expr operator==(const Expr& a, const Expr& b) { return apply(ScalarOp::equal, a, b); }
Expr operator&&(const Expr& a, const Expr& b) { return apply(ScalarOp::logical_and, a, b); }
Expr operator||(const Expr& a, const Expr& b) { return apply(ScalarOp::logical_or, a, b); }
Expr operator!(const Expr& a) { return apply(ScalarOp::logical_not, a); }
Expr operator<(const Expr& a, double b) { return apply(ScalarOp::less, a, b); }
Expr operator<=(const Expr& a, double b) { return apply(ScalarOp::less_equal, a, b); }
Expr operator==(const Expr& a, double b) { return apply(ScalarOp::equal, a, b); }

Expr operator!=(const Expr& a, const Expr& b) {
  Scope& scope = common_scope({&a, &b});
  Scalar s;
  const int x = s.operand(0), y = s.operand(1);
  s.finish(s.apply(ScalarOp::logical_not, s.apply(ScalarOp::equal, x, y)));
  return {scope, scope.graph().map(std::move(s), {a.value(), b.value()})};
}

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  Scope& scope = common_scope({&condition, &a, &b});
  return {scope, scope.graph().map(ScalarOp::select, condition.value(), a.value(), b.value())};
}

Expr min(const Expr& a, const Expr& b) { return apply(ScalarOp::min, a, b); }
Expr max(const Expr& a, const Expr& b) { return apply(ScalarOp::max, a, b); }
Expr min(const Expr& a, double b) { return apply(ScalarOp::min, a, b); }
Expr max(const Expr& a, double b) { return apply(ScalarOp::max, a, b); }

Expr clamp(const Expr& a, double low, double high) {
  if (!(low <= high))
    throw UsageError("bounds of clamp", text(low, " and ", high), "the lower one first");
  return map_of(a, [&](Scalar& s, int x) {
    // Infinite bounds fold away.
    return s.apply(ScalarOp::min, s.apply(ScalarOp::max, x, s.constant(low)), s.constant(high));
  });
}

Expr abs(const Expr& a) { return apply(ScalarOp::abs, a); }
Expr exp(const Expr& a) { return apply(ScalarOp::exp, a); }
Expr log(const Expr& a) { return apply(ScalarOp::log, a); }
Expr log1p(const Expr& a) { return apply(ScalarOp::log1p, a); }
Expr expm1(const Expr& a) { return apply(ScalarOp::expm1, a); }
Expr sqrt(const Expr& a) { return apply(ScalarOp::sqrt, a); }
Expr rsqrt(const Expr& a) { return apply(ScalarOp::rsqrt, a); }
Expr tanh(const Expr& a) { return apply(ScalarOp::tanh, a); }
Expr sigmoid(const Expr& a) { return apply(ScalarOp::sigmoid, a); }
Expr softplus(const Expr& a) { return apply(ScalarOp::softplus, a); }
Expr sin_turns(const Expr& a) { return apply(ScalarOp::sin_turns, a); }
Expr cos_turns(const Expr& a) { return apply(ScalarOp::cos_turns, a); }
Expr floor(const Expr& a) { return apply(ScalarOp::floor, a); }
Expr wrap(const Expr& a) { return apply(ScalarOp::wrap, a); }
Expr nonpositive(const Expr& a) { return apply(ScalarOp::nonpositive, a); }

Expr square(const Expr& a) {
  return map_of(a, [](Scalar& s, int x) { return s.apply(ScalarOp::mul, x, x); });
}

Expr silu(const Expr& a) {
  return map_of(
      a, [](Scalar& s, int x) { return s.apply(ScalarOp::mul, x, s.apply(ScalarOp::sigmoid, x)); });
}

namespace {
Expr of_radians(ScalarOp op, const Expr& a) {
  return map_of(a, [&](Scalar& s, int x) {
    return s.apply(op, s.apply(ScalarOp::mul, x, s.constant(0.5 / std::numbers::pi)));
  });
}
}  // namespace

Expr sin(const Expr& a) { return of_radians(ScalarOp::sin_turns, a); }
Expr cos(const Expr& a) { return of_radians(ScalarOp::cos_turns, a); }

}  // namespace krait
