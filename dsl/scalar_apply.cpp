// The meaning of each scalar operator, in float64.
#include <cmath>
#include <numbers>

#include "dsl/error.h"
#include "dsl/scalar.h"

namespace krait {
namespace {

double wrap(double x) { return x - std::floor(x + 0.5); }

// NaN in either place gives NaN: an oracle must not hide one.
double smaller(double a, double b) { return std::isnan(b) || b < a ? b : a; }
double larger(double a, double b) { return std::isnan(b) || b > a ? b : a; }

constexpr double two_pi = 2 * std::numbers::pi;

}  // namespace

double apply_scalar(ScalarOp op, double a, double b, double c) {
  switch (op) {
    case ScalarOp::constant:
    case ScalarOp::operand:
    case ScalarOp::index:
    case ScalarOp::extent: break;
    case ScalarOp::neg: return -a;
    case ScalarOp::abs: return std::fabs(a);
    case ScalarOp::exp: return std::exp(a);
    case ScalarOp::exp_nonpositive: return a > 0 ? 1 : std::exp(a);
    case ScalarOp::log: return std::log(a);
    case ScalarOp::log1p: return std::log1p(a);
    case ScalarOp::expm1: return std::expm1(a);
    case ScalarOp::sqrt: return std::sqrt(a);
    case ScalarOp::rsqrt: return 1 / std::sqrt(a);
    case ScalarOp::tanh: return std::tanh(a);
    case ScalarOp::sigmoid: return 1 / (1 + std::exp(-a));
    case ScalarOp::softplus: return a > 20 ? a : std::log1p(std::exp(a));
    case ScalarOp::sin_turns: return std::sin(two_pi * wrap(a));
    case ScalarOp::cos_turns: return std::cos(two_pi * wrap(a));
    case ScalarOp::floor: return std::floor(a);
    case ScalarOp::wrap: return wrap(a);
    case ScalarOp::nonpositive: return a;
    case ScalarOp::logical_not: return a == 0;
    case ScalarOp::add: return a + b;
    case ScalarOp::sub: return a - b;
    case ScalarOp::mul: return a * b;
    case ScalarOp::div: return a / b;
    case ScalarOp::min: return smaller(a, b);
    case ScalarOp::max: return larger(a, b);
    case ScalarOp::less: return a < b;
    case ScalarOp::less_equal: return a <= b;
    case ScalarOp::equal: return a == b;
    case ScalarOp::logical_and: return a != 0 && b != 0;
    case ScalarOp::logical_or: return a != 0 || b != 0;
    case ScalarOp::select: return a != 0 ? b : c;
  }
  throw InternalError(text("apply_scalar: ", name(op), " is a leaf"));
}

}  // namespace krait
