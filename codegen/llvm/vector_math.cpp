#include "codegen/llvm/vector_math.h"

#include <cmath>
#include <limits>

#include "codegen/llvm/ir_text.h"
#include "codegen/math_constants.h"
#include "dsl/error.h"

namespace krait::ir {
namespace {

/// Writes the body of one function.
class Writer {
 public:
  Writer(const std::string& element, int lanes)
      : p_(math_constants(element == "float" ? DType::f32 : DType::f64)),
        element_(element),
        lanes_(lanes),
        type_(vector_type(element, lanes)),
        integer_(element == "float" ? "i32" : "i64"),
        integers_(vector_type(integer_, lanes)) {}

  const std::string& type() const { return type_; }
  Builder& builder() { return b_; }
  std::vector<ScalarOp> calls;

  Val exp(const Val& x) {
    // exp(x) = 2^n e^r with n the integer nearest to x / ln 2.
    Val bounded = clamp(x, p_.exp_low, p_.exp_high);
    auto [n, bits, r] = reduce(bounded);
    Val small = fma(mul(r, r), polynomial(p_.exp, r), r);
    // In two steps: 2^n itself may lie outside the exponents, and the product is rounded once.
    Val half = b_.binary("ashr", bits, integer(1));
    Val scaled = mul(add(small, c(1)), power_of_two(half));
    return mul(scaled, power_of_two(b_.binary("sub", bits, half)));
  }

  Val exp_nonpositive(const Val& x) {
    return call(ScalarOp::exp, b_.select(greater(x, c(0)), c(0), x));
  }

  Val expm1(const Val& x) {
    Val bounded = clamp(x, p_.expm1_low, p_.exp_high);
    auto [n, bits, r] = reduce(bounded);
    // 2^n (e^r - 1) + (2^n - 1), halved so that 2^n stays finite at the largest x.
    Val small = fma(mul(r, r), polynomial(p_.exp, r), r);
    Val t = power_of_two(b_.binary("sub", bits, integer(1)));
    Val sum = fma(t, small, sub(t, c(0.5)));
    // Without the sum where n is 0: it would lose -0 and nothing else.
    return b_.select(equal(n, c(0)), small, add(sum, sum));
  }

  Val log(const Val& x) {
    Val tiny = b_.compare("fcmp olt", x, c(std::ldexp(1.0, 1 - p_.bias)));
    Val scaled = b_.select(tiny, mul(x, c(std::ldexp(1.0, p_.mantissa + 2))), x);
    Val lost = b_.select(tiny, c(p_.mantissa + 2), c(0));
    auto [e, m] = split(scaled);
    return special_log(x, log_of(sub(e, lost), sub(m, c(1)), c(0)));
  }

  Val log1p(const Val& x) {
    // u + low = 1 + x exactly; low / u is what it adds to the logarithm, to first order.
    Val u = add(x, c(1));
    Val back = sub(u, c(1));
    Val low = add(sub(c(1), sub(u, back)), sub(x, back));
    auto [e, m] = split(u);
    Val result = special_log(u, log_of(e, sub(m, c(1)), div(low, u)));
    // Keeps -0 and denormals, whose low / u is themselves.
    Val minute = b_.compare("fcmp olt", abs(x), c(std::ldexp(1.0, -p_.mantissa - 2)));
    return b_.select(minute, x, result);
  }

  Val tanh(const Val& x) {
    Val size = abs(x);
    Val z = mul(x, x);
    Val near = fma(mul(x, z), polynomial(p_.tanh, z), x);
    // 1 - 2 / (e^2|x| + 1); e^2|x| may be inf.
    Val e = call(ScalarOp::exp, add(size, size));
    Val far = copysign(sub(c(1), div(c(2), add(e, c(1)))), x);
    return b_.select(b_.compare("fcmp olt", size, c(0.625)), near, far);
  }

  Val sigmoid(const Val& x) {
    // e^-|x| never overflows: 1 / (1 + e) or e / (1 + e).
    Val e = call(ScalarOp::exp, negate(abs(x)));
    Val top = b_.select(b_.compare("fcmp olt", x, c(0)), e, c(1));
    return div(top, add(e, c(1)));
  }

  Val softplus(const Val& x) {
    Val small = call(ScalarOp::log1p, call(ScalarOp::exp, x));
    return b_.select(greater(x, c(20)), x, small);
  }

  Val sin_turns(const Val& x) {
    const Turn t = turn(x);
    Val up = b_.select(t.odd, mul(t.q, t.cosine), t.sine);
    return b_.select(t.half, negate(up), up);
  }

  Val cos_turns(const Val& x) {
    const Turn t = turn(x);
    Val right = b_.select(t.odd, negate(mul(t.q, t.sine)), t.cosine);
    return b_.select(t.half, negate(right), right);
  }

 private:
  Val c(double value) const { return splat_constant(real(element_, value), lanes_); }
  Val integer(std::int64_t value) const {
    return splat_constant({integer_, std::to_string(value)}, lanes_);
  }
  Val add(const Val& a, const Val& b) { return b_.binary("fadd", a, b); }
  Val sub(const Val& a, const Val& b) { return b_.binary("fsub", a, b); }
  Val mul(const Val& a, const Val& b) { return b_.binary("fmul", a, b); }
  Val div(const Val& a, const Val& b) { return b_.binary("fdiv", a, b); }
  Val negate(const Val& a) { return b_.emit(a.type, "fneg " + a.text()); }
  Val fma(const Val& a, const Val& b, const Val& d) { return b_.intrinsic("fma", {a, b, d}); }
  Val abs(const Val& a) { return b_.intrinsic("fabs", {a}); }
  Val copysign(const Val& a, const Val& sign) { return b_.intrinsic("copysign", {a, sign}); }
  Val greater(const Val& a, const Val& b) { return b_.compare("fcmp ogt", a, b); }
  Val equal(const Val& a, const Val& b) { return b_.compare("fcmp oeq", a, b); }

  Val call(ScalarOp op, const Val& x) {
    calls.push_back(op);
    return b_.call(type_, math_function_name(op, element_, lanes_), {x}, "");
  }

  Val polynomial(const Polynomial& coefficients, const Val& x) {
    Val sum = c(coefficients.back());
    for (std::size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, c(coefficients[i]));
    return sum;
  }

  /// A NaN stays.
  Val clamp(const Val& x, double low, double high) {
    Val below = b_.select(greater(x, c(high)), c(high), x);
    return b_.select(b_.compare("fcmp olt", below, c(low)), c(low), below);
  }

  struct Reduced {
    Val n, bits, r;  // n as a number and as an integer; x - n ln 2
  };
  Reduced reduce(const Val& x) {
    // No conversion to integer, which is not defined for a NaN: the low bits of the sum hold n.
    Val sum = fma(x, c(1.4426950408889634), c(p_.magic));
    Val n = sub(sum, c(p_.magic));
    Val magic = b_.cast("bitcast", c(p_.magic), integers_);
    Val bits = b_.binary("sub", b_.cast("bitcast", sum, integers_), magic);
    Val r = fma(n, c(-p_.ln2_low), fma(n, c(-p_.ln2_high), x));
    return {n, bits, r};
  }

  Val power_of_two(const Val& exponent) {
    Val biased = b_.binary("add", exponent, integer(p_.bias));
    return b_.cast("bitcast", b_.binary("shl", biased, integer(p_.mantissa)), type_);
  }

  /// x = 2^e m with m in [sqrt(1/2), sqrt(2)), for x > 0 and normal.
  std::pair<Val, Val> split(const Val& x) {
    const bool f32 = element_ == "float";
    // Bits of sqrt(1/2): what is added moves the exponent's border there.
    const std::int64_t root = f32 ? 0x3f3504f3 : 0x3fe6a09e667f3bcdLL;
    Val bits = b_.cast("bitcast", x, integers_);
    Val moved = b_.binary("sub", bits, integer(root));
    Val e = b_.binary("ashr", moved, integer(p_.mantissa));
    Val m = b_.binary("sub", bits, b_.binary("shl", e, integer(p_.mantissa)));
    // An integer of few bits to a number, without an instruction that some vectors lack.
    Val magic = b_.cast("bitcast", c(p_.magic), integers_);
    Val number = sub(b_.cast("bitcast", b_.binary("add", e, magic), type_), c(p_.magic));
    return {number, b_.cast("bitcast", m, type_)};
  }

  /// e ln 2 + log(1 + f) + low, for f in [sqrt(1/2) - 1, sqrt(2) - 1]. With s = f / (2 + f),
  /// log(1 + f) = 2 atanh(s) = f - (f^2 / 2 - s (f^2 / 2 + s^2 P(s^2))).
  Val log_of(const Val& e, const Val& f, const Val& low) {
    Val s = div(f, add(f, c(2)));
    Val z = mul(s, s);
    Val half = mul(mul(f, c(0.5)), f);
    Val rest = fma(s, fma(z, polynomial(p_.log, z), half), fma(e, c(p_.ln2_low), low));
    Val tail = sub(f, sub(half, rest));
    return fma(e, c(p_.ln2_high), tail);
  }

  Val special_log(const Val& x, const Val& usual) {
    const double inf = std::numeric_limits<double>::infinity();
    Val sign = b_.select(b_.compare("fcmp oge", x, c(0)), usual,
                         c(std::numeric_limits<double>::quiet_NaN()));
    Val top = b_.select(equal(x, c(inf)), x, sign);
    return b_.select(equal(x, c(0)), c(-inf), top);
  }

  /// x is a whole number, q quarters and s turns, |s| <= 1/8, without rounding.
  struct Turn {
    Val q, odd, half;  // q: -2 .. 2; whether it is -1 or 1, and -2 or 2
    Val sine, cosine;  // of 2 pi s
  };
  Turn turn(const Val& x) {
    Val f = sub(x, b_.intrinsic("roundeven", {x}));
    Val q = b_.intrinsic("roundeven", {mul(f, c(4))});
    Val s = fma(q, c(-0.25), f);
    Val size = abs(q);
    Val z = mul(s, s);
    Val rest = fma(z, polynomial(p_.sin, z), c(p_.turn_low));
    Val sine = fma(s, c(p_.turn_high), mul(s, rest));
    return {q, equal(size, c(1)), equal(size, c(2)), sine, fma(z, polynomial(p_.cos, z), c(1))};
  }

  const MathConstants& p_;
  Builder b_;
  std::string element_;
  int lanes_;
  std::string type_, integer_, integers_;
};

}  // namespace

bool is_math_function(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::exp_nonpositive:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::expm1:
    case ScalarOp::tanh:
    case ScalarOp::sigmoid:
    case ScalarOp::softplus:
    case ScalarOp::sin_turns:
    case ScalarOp::cos_turns: return true;
    default: return false;
  }
}

std::string math_function_name(ScalarOp op, const std::string& element, int lanes) {
  return "krait_" + std::string(name(op)) + '_' + mangled(vector_type(element, lanes));
}

MathFunction math_function(ScalarOp op, const std::string& element, int lanes) {
  Writer writer(element, lanes);
  const Val x{writer.type(), "%x"};
  Val result;
  switch (op) {
    case ScalarOp::exp: result = writer.exp(x); break;
    case ScalarOp::exp_nonpositive: result = writer.exp_nonpositive(x); break;
    case ScalarOp::log: result = writer.log(x); break;
    case ScalarOp::log1p: result = writer.log1p(x); break;
    case ScalarOp::expm1: result = writer.expm1(x); break;
    case ScalarOp::tanh: result = writer.tanh(x); break;
    case ScalarOp::sigmoid: result = writer.sigmoid(x); break;
    case ScalarOp::softplus: result = writer.softplus(x); break;
    case ScalarOp::sin_turns: result = writer.sin_turns(x); break;
    case ScalarOp::cos_turns: result = writer.cos_turns(x); break;
    default: throw InternalError(text(name(op), " is no function of the vector maths"));
  }
  const std::string& type = writer.type();
  return {"define internal " + type + " @" + math_function_name(op, element, lanes) + '(' + type +
              " %x) alwaysinline nounwind {\n" + writer.builder().text() + "  ret " +
              result.text() + "\n}\n",
          writer.builder().declarations(), writer.calls};
}

}  // namespace krait::ir
