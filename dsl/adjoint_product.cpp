// Adjoints of what works element by element and of sums: Map, Contract, Reduce.
#include <algorithm>

#include "dsl/adjoint.h"

namespace krait {
namespace {

/// An expression as scale times a product of subexpressions, given as node numbers.
struct Factors {
  double scale = 1;
  std::vector<int> nodes;
  std::vector<int> inverse;  // these divide
};

void collect(const Scalar& expression, int number, bool inverse, Factors& factors) {
  const ScalarNode& node = expression.nodes()[number];
  switch (node.op) {
    case ScalarOp::constant:
      factors.scale = inverse ? factors.scale / node.value : factors.scale * node.value;
      break;
    case ScalarOp::neg:
      factors.scale = -factors.scale;
      collect(expression, node.args[0], inverse, factors);
      break;
    case ScalarOp::mul:
    case ScalarOp::div:
      collect(expression, node.args[0], inverse, factors);
      collect(expression, node.args[1], inverse != (node.op == ScalarOp::div), factors);
      break;
    default: (inverse ? factors.inverse : factors.nodes).push_back(number);
  }
}

/// The product of factors that have the same axes, in one expression.
struct Group {
  Scalar expression;
  int result = -1;
  AxisNames axes;
};

class MapAdjoint {
 public:
  MapAdjoint(AdjointBuilder& b, const Map& op, const AdjointOf& at) : b_(b), op_(op), at_(at) {
    for (Value operand : at.node.operands)
      integer_.push_back(!is_float(b.from().type(operand).dtype));
  }

  void run() {
    for (std::size_t i = 0; i < at_.node.operands.size(); ++i)
      if (b_.active(at_.operand(static_cast<int>(i)))) operand(static_cast<int>(i));
  }

 private:
  AdjointBuilder& b_;
  const Map& op_;
  const AdjointOf& at_;
  std::vector<bool> integer_;

  /// A Map of `expression` over the forward operands, times `g` where that is valid.
  Value over_operands(const Scalar& expression, Value g) {
    Scalar product;
    std::vector<Value> operands(at_.node.operands.size());
    std::vector<int> places(operands.size(), -1);
    for (const ScalarNode& node : expression.nodes()) {
      if (node.op != ScalarOp::operand) continue;
      operands[node.operand] = b_.forward(at_.operand(node.operand));
      places[node.operand] = product.operand(node.operand);
    }
    int result = product.inline_expression(expression, places);
    if (g.valid()) {
      int own = product.operand(static_cast<int>(operands.size()));
      operands.push_back(g);
      result = product.apply(ScalarOp::mul, own, result);
    }
    product.finish(result);
    return b_.map(product, operands);
  }

  AxisNames axes_of(const Scalar& expression, int number) {
    Scalar part = expression;
    part.finish(number);
    AxisNames axes = part.index_axes();
    for (const ScalarNode& node : part.nodes()) {
      if (node.op != ScalarOp::operand) continue;
      const AxisNames& own = b_.axes(at_.operand(node.operand));
      axes.insert(axes.end(), own.begin(), own.end());
    }
    return b_.from().sorted(axes);
  }

  void operand(int number) {
    Value x = at_.operand(number);
    Value g = at_.g[0];
    Scalar slope = derivative(op_.expression, number);
    if (slope.root().op == ScalarOp::constant && slope.root().value == 0) return;
    AxisNames missing = without(b_.axes(at_.result(0)), b_.axes(x));
    if (missing.empty()) {
      b_.contribute(x, over_operands(slope, g), {});
      return;
    }
    Factors factors;
    collect(slope, slope.root_index(), false, factors);
    std::vector<Value> product{g};
    std::vector<Group> groups;
    auto join = [&](int node, bool inverse) {
      const ScalarNode& leaf = slope.nodes()[node];
      if (leaf.op == ScalarOp::operand && !inverse && !integer_[leaf.operand]) {
        product.push_back(b_.forward(at_.operand(leaf.operand)));
        return;
      }
      AxisNames axes = axes_of(slope, node);
      Group* group = nullptr;
      for (Group& candidate : groups)
        if (candidate.axes == axes) group = &candidate;
      if (group == nullptr) {
        groups.push_back({slope, -1, axes});
        group = &groups.back();
      }
      Scalar& e = group->expression;
      if (group->result < 0 && !inverse) {
        group->result = node;
      } else {
        int so_far = group->result < 0 ? e.constant(1) : group->result;
        group->result = e.apply(inverse ? ScalarOp::div : ScalarOp::mul, so_far, node);
      }
    };
    for (int node : factors.nodes) join(node, false);
    for (int node : factors.inverse) join(node, true);
    for (Group& group : groups) {
      group.expression.finish(group.result);
      auto kind = group.expression.kinds(integer_).back();
      // An integer factor alone would make an integer Map; it goes into g.
      if (kind == ScalarKind::real) {
        product.push_back(over_operands(group.expression, {}));
      } else {
        product[0] = over_operands(group.expression, product[0]);
      }
    }
    b_.contribute(x, b_.sum_product(product, missing, factors.scale), {});
  }
};

}  // namespace

void adjoint(AdjointBuilder& b, const Map& op, const AdjointOf& at) { MapAdjoint(b, op, at).run(); }

void adjoint(AdjointBuilder& b, const Contract& op, const AdjointOf& at) {
  AxisNames all = b.axes(at.result(0));
  all.insert(all.end(), op.sum.begin(), op.sum.end());
  all = b.from().sorted(all);
  const std::vector<Value>& operands = at.node.operands;
  for (auto own = operands.begin(); own != operands.end(); ++own) {
    // A value that stands several times, as in a sum of squares: once, times how often it does.
    if (!b.active(*own) || std::find(operands.begin(), own, *own) != own) continue;
    std::vector<Value> factors{at.g[0]};
    for (auto other = operands.begin(); other != operands.end(); ++other)
      if (other != own) factors.push_back(b.forward(*other));
    auto times = static_cast<double>(std::count(own, operands.end(), *own));
    b.contribute(*own, b.sum_product(factors, without(all, b.axes(*own)), times), {});
  }
}

void adjoint(AdjointBuilder& b, const Reduce& op, const AdjointOf& at) {
  Value x = at.operand(0);
  if (op.kind == Reduce::Kind::sum) {
    b.contribute(x, at.g[0], {});
    return;
  }
  // The elements that equal the largest share its cotangent.
  std::vector<Value> operands{b.forward(x), b.forward(at.result(0))};
  auto is_largest = [](Scalar& e, int yes) {
    int equal = e.apply(ScalarOp::equal, e.operand(0), e.operand(1));
    return e.apply(ScalarOp::select, equal, yes, e.constant(0));
  };
  Scalar one;
  one.finish(is_largest(one, one.constant(1)));
  Value count = b.to().reduce(Reduce::Kind::sum, op.axes, b.map(one, operands));
  operands.insert(operands.end(), {at.g[0], count});
  Scalar share;
  share.finish(is_largest(share, share.apply(ScalarOp::div, share.operand(2), share.operand(3))));
  b.contribute(x, b.map(share, operands), {});
}

}  // namespace krait
