// Scalar::add: equal nodes become one, constants fold, identities vanish.
//
// Arithmetic is real here: x * 0 is 0, x - x is 0, x == x holds, whatever x becomes at run time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "dsl/error.h"
#include "dsl/scalar.h"

namespace krait {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool gives_boolean(ScalarOp op) {
  return op == ScalarOp::less || op == ScalarOp::less_equal || op == ScalarOp::equal ||
         op == ScalarOp::logical_and || op == ScalarOp::logical_or || op == ScalarOp::logical_not;
}

/// The identities of one operator over arguments that are in `scalar` already. Gives the node that
/// stands for it, or nothing.
class Folder {
 public:
  Folder(Scalar& scalar, const ScalarNode& node) : s_(scalar), node_(node) {
    a_ = node.args[0], b_ = node.args[1], c_ = node.args[2];
  }

  std::optional<int> fold() {
    if (auto value = constant_result()) return s_.constant(*value);
    switch (node_.op) {
      case ScalarOp::neg: return fold_neg();
      case ScalarOp::abs:
        if (is(a_, ScalarOp::abs)) return a_;
        if (is(a_, ScalarOp::neg)) return s_.apply(ScalarOp::abs, arg(a_, 0));
        return {};
      case ScalarOp::nonpositive:
      case ScalarOp::floor:
      case ScalarOp::wrap:
        if (is(a_, node_.op)) return a_;
        return {};
      case ScalarOp::logical_not:
        if (is(a_, ScalarOp::logical_not) && gives_boolean(s_.nodes()[arg(a_, 0)].op))
          return arg(a_, 0);
        return {};
      case ScalarOp::add: return fold_add();
      case ScalarOp::sub: return fold_sub();
      case ScalarOp::mul: return fold_mul();
      case ScalarOp::div:
        if (is_constant(b_, 1)) return a_;
        if (is_constant(b_, -1)) return s_.apply(ScalarOp::neg, a_);
        if (is_constant(a_, 0)) return a_;
        return {};
      case ScalarOp::min:
        if (a_ == b_ || is_constant(b_, kInfinity)) return a_;
        if (is_constant(a_, kInfinity)) return b_;
        return {};
      case ScalarOp::max:
        if (a_ == b_ || is_constant(b_, -kInfinity)) return a_;
        if (is_constant(a_, -kInfinity)) return b_;
        return {};
      case ScalarOp::less:
        if (a_ == b_) return s_.constant(0);
        return {};
      case ScalarOp::less_equal:
      case ScalarOp::equal:
        if (a_ == b_) return s_.constant(1);
        return {};
      case ScalarOp::logical_and: return fold_logical(0);
      case ScalarOp::logical_or: return fold_logical(1);
      case ScalarOp::select:
        if (b_ == c_) return b_;
        if (auto value = constant_value(a_)) return *value != 0 ? b_ : c_;
        if (is(a_, ScalarOp::logical_not)) return s_.apply(ScalarOp::select, arg(a_, 0), c_, b_);
        return {};
      default: return {};
    }
  }

 private:
  bool is(int id, ScalarOp op) const { return s_.nodes()[id].op == op; }
  int arg(int id, int number) const { return s_.nodes()[id].args[number]; }
  std::optional<double> constant_value(int id) const {
    if (id < 0 || !is(id, ScalarOp::constant)) return {};
    return s_.nodes()[id].value;
  }
  bool is_constant(int id, double value) const { return constant_value(id) == value; }

  std::optional<double> constant_result() const {
    double values[3] = {0, 0, 0};
    for (int i = 0; i < arity(node_.op); ++i) {
      auto value = constant_value(node_.args[i]);
      if (!value) return {};
      values[i] = *value;
    }
    double result = apply_scalar(node_.op, values[0], values[1], values[2]);
    // A NaN is not equal to itself and would make equal expressions differ; a broken promise is
    // reported by who evaluates it.
    if (std::isnan(result) || (node_.op == ScalarOp::nonpositive && result > 0)) return {};
    return result;
  }

  std::optional<int> fold_neg() {
    if (is(a_, ScalarOp::neg)) return arg(a_, 0);
    if (is(a_, ScalarOp::sub)) return s_.apply(ScalarOp::sub, arg(a_, 1), arg(a_, 0));
    if (is(a_, ScalarOp::mul))
      if (auto factor = constant_value(arg(a_, 1)))
        return s_.apply(ScalarOp::mul, arg(a_, 0), s_.constant(-*factor));
    return {};
  }

  std::optional<int> fold_add() {
    if (is_constant(b_, 0)) return a_;
    if (is_constant(a_, 0)) return b_;
    if (is(b_, ScalarOp::neg)) return s_.apply(ScalarOp::sub, a_, arg(b_, 0));
    if (is(a_, ScalarOp::neg)) return s_.apply(ScalarOp::sub, b_, arg(a_, 0));
    return {};
  }

  std::optional<int> fold_sub() {
    if (a_ == b_) return s_.constant(0);
    if (is_constant(b_, 0)) return a_;
    if (is_constant(a_, 0)) return s_.apply(ScalarOp::neg, b_);
    if (is(b_, ScalarOp::neg)) return s_.apply(ScalarOp::add, a_, arg(b_, 0));
    return {};
  }

  std::optional<int> fold_mul() {
    if (is_constant(a_, 0)) return a_;
    if (is_constant(b_, 0)) return b_;
    if (is_constant(a_, 1)) return b_;
    if (is_constant(b_, 1)) return a_;
    if (is_constant(a_, -1)) return s_.apply(ScalarOp::neg, b_);
    if (is_constant(b_, -1)) return s_.apply(ScalarOp::neg, a_);
    if (auto factor = constant_value(b_)) {
      if (is(a_, ScalarOp::neg)) return s_.apply(ScalarOp::mul, arg(a_, 0), s_.constant(-*factor));
      if (is(a_, ScalarOp::mul))
        if (auto inner = constant_value(arg(a_, 1))) {
          double both = *factor * *inner;
          if (std::isfinite(both) && both != 0)
            return s_.apply(ScalarOp::mul, arg(a_, 0), s_.constant(both));
        }
    }
    // A sign moves out of a product, so that two of them meet.
    if (is(a_, ScalarOp::neg))
      return s_.apply(ScalarOp::neg, s_.apply(ScalarOp::mul, arg(a_, 0), b_));
    if (is(b_, ScalarOp::neg))
      return s_.apply(ScalarOp::neg, s_.apply(ScalarOp::mul, a_, arg(b_, 0)));
    return {};
  }

  /// and: `absorbing` is 0; or: it is 1. The other constant leaves the boolean beside it.
  std::optional<int> fold_logical(int absorbing) {
    for (auto [one, other] : {std::pair(a_, b_), std::pair(b_, a_)}) {
      auto value = constant_value(one);
      if (value && (*value != 0) == (absorbing != 0)) return s_.constant(absorbing);
      if (value && gives_boolean(s_.nodes()[other].op)) return other;
    }
    if (a_ == b_ && gives_boolean(s_.nodes()[a_].op)) return a_;
    return {};
  }

  Scalar& s_;
  ScalarNode node_;
  int a_, b_, c_;
};

bool commutes(ScalarOp op) {
  return op == ScalarOp::add || op == ScalarOp::mul || op == ScalarOp::equal ||
         op == ScalarOp::logical_and || op == ScalarOp::logical_or;
}

}  // namespace

int Scalar::add(ScalarNode node) {
  const int count = arity(node.op);
  for (int i = 0; i < 3; ++i) {
    KRAIT_ASSERT(i < count ? node.args[i] >= 0 && node.args[i] < static_cast<int>(nodes().size())
                           : node.args[i] < 0,
                 name(node.op), " has argument ", i, " at node ", node.args[i]);
  }
  if (node.op == ScalarOp::extent && node.extent.is_constant())
    return constant(static_cast<double>(node.extent.offset));
  // Constants stand on the right, what else commutes as it was written.
  const bool swappable = commutes(node.op);
  if (swappable && nodes()[node.args[0]].op == ScalarOp::constant)
    std::swap(node.args[0], node.args[1]);
  if (count > 0)
    if (auto folded = Folder(*this, node).fold()) return *folded;
  for (int way = 0; way < (swappable ? 2 : 1); ++way) {
    auto found = std::find(nodes().begin(), nodes().end(), node);
    if (found != nodes().end()) return static_cast<int>(found - nodes().begin());
    if (swappable) std::swap(node.args[0], node.args[1]);
  }
  own().push_back(std::move(node));
  return root_index();
}

}  // namespace krait
