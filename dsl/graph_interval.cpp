// What the values of a graph can be. Sums are judged by sign alone, whatever their number of terms.
#include <algorithm>
#include <limits>

#include "dsl/error.h"
#include "dsl/graph.h"

namespace krait {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Interval hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

/// A sum of any number of such terms, also of none.
Interval sum_of(Interval term) {
  return {term.low < 0 ? -kInfinity : 0, term.high > 0 ? kInfinity : 0};
}

using Known = std::vector<std::vector<Interval>>;

struct Rule {
  const Node& node;
  const Known& known;

  const Interval& operand(int i) const {
    const Value value = node.operands[i];
    return known[value.node][value.result];
  }
  int count() const { return static_cast<int>(node.operands.size()); }

  Interval operator()(const Input&) const { return {}; }
  Interval operator()(const Constant& op) const { return {op.value, op.value}; }
  Interval operator()(const Map& op) const {
    std::vector<Interval> operands;
    for (int i = 0; i < count(); ++i) operands.push_back(operand(i));
    return op.expression.interval(operands);
  }
  Interval operator()(const Contract& op) const {
    // As a scalar expression, in which an operand that stands twice is a square.
    Scalar product;
    std::vector<Interval> factors;
    int result = product.constant(1);
    for (int i = 0; i < count(); ++i) {
      factors.push_back(operand(i));
      const auto& all = node.operands;
      if (std::find(all.begin(), all.begin() + i, all[i]) != all.begin() + i) continue;
      const int x = product.operand(i);
      for (auto left = std::count(all.begin(), all.end(), all[i]); left > 0; left -= 2)
        result =
            product.apply(ScalarOp::mul, result, left > 1 ? product.apply(ScalarOp::mul, x, x) : x);
    }
    product.finish(result);
    const Interval term = product.interval(factors);
    return op.sum.empty() ? term : sum_of(term);
  }
  Interval operator()(const Reduce& op) const {
    return op.kind == Reduce::Kind::max ? operand(0) : sum_of(operand(0));
  }
  Interval operator()(const Cumsum& op) const {
    if (op.wrap) return {-0.5, 0.5};
    return sum_of(op.has_initial ? hull(operand(0), operand(1)) : operand(0));
  }
  Interval operator()(const Scan& op) const {
    return sum_of(op.has_initial ? hull(operand(1), operand(2)) : operand(1));
  }
  Interval operator()(const Gap&) const { return {-kInfinity, 0}; }
  Interval operator()(const PairSum&) const { return {}; }
  Interval operator()(const Shift& op) const {
    if (op.steps == 0) return operand(0);
    return hull(operand(0), op.has_state ? operand(1) : Interval(op.fill, op.fill));
  }
  Interval operator()(const Gather&) const { return operand(0); }
  Interval operator()(const ScatterSum&) const { return sum_of(operand(0)); }
  Interval operator()(const Split&) const { return hull(operand(0), {0, 0}); }
  Interval operator()(const Merge&) const { return operand(0); }
  Interval operator()(const Slice&) const { return operand(0); }
  Interval operator()(const Concat&) const {
    Interval all = operand(0);
    for (int i = 1; i < count(); ++i) all = hull(all, operand(i));
    return all;
  }
  Interval operator()(const Rename&) const { return operand(0); }
};

}  // namespace

Interval Graph::interval(Value value) const {
  KRAIT_ASSERT(value.node >= 0 && value.node < static_cast<int>(nodes_.size()), "node ", value.node,
               " of ", nodes_.size());
  while (static_cast<int>(intervals_.size()) <= value.node) {
    const Node& node = nodes_[intervals_.size()];
    Interval interval = std::visit(Rule{node, intervals_}, node.op);
    intervals_.emplace_back(node.results.size(), interval);
  }
  return intervals_[value.node][value.result];
}

}  // namespace krait
