#include <algorithm>
#include <set>

#include "dsl/adjoint.h"

namespace krait {
namespace {

bool subset(const AxisNames& small, const AxisNames& large) {
  return without(small, large).empty();
}

AxisNames common(const AxisNames& a, const AxisNames& b) { return without(a, without(a, b)); }

}  // namespace

AdjointBuilder::AdjointBuilder(const Graph& from, const std::vector<std::string>& wanted)
    : from_(from), rewriter_(from, to_) {
  rewriter_.copy_axes();
  active_.resize(from.nodes().size());
  for (std::size_t id = 0; id < active_.size(); ++id) {
    const Node& node = from.node(static_cast<int>(id));
    if (const auto* input = std::get_if<Input>(&node.op)) {
      active_[id] = std::find(wanted.begin(), wanted.end(), input->name) != wanted.end();
    } else {
      active_[id] = std::any_of(node.operands.begin(), node.operands.end(),
                                [&](Value operand) { return active(operand); });
    }
  }
}

bool AdjointBuilder::active(Value old) const {
  return active_[old.node] && is_float(from_.type(old).dtype);
}

Value AdjointBuilder::forward(Value old) {
  std::set<int> needed;
  std::vector<int> open{old.node};
  while (!open.empty()) {
    int id = open.back();
    open.pop_back();
    if (rewriter_.has({id, 0}) || !needed.insert(id).second) continue;
    for (Value operand : from_.node(id).operands) open.push_back(operand.node);
  }
  for (int id : needed) rewriter_.copy(id);  // ascending: operands come first
  return rewriter_.at(old);
}

void AdjointBuilder::contribute(Value old, Value cotangent, const AxisNames& over) {
  if (!active(old) || !cotangent.valid()) return;
  contributions_[old].push_back(reduce(cotangent, without(over, axes(old))));
}

Value AdjointBuilder::total(Value old) {
  auto found = contributions_.find(old);
  return found == contributions_.end() ? Value{} : sum(found->second);
}

Value AdjointBuilder::map(const Scalar& expression, const std::vector<Value>& operands) {
  std::vector<bool> read(operands.size());
  for (const ScalarNode& node : expression.nodes())
    if (node.op == ScalarOp::operand) read[node.operand] = true;
  Scalar compact;
  std::vector<Value> kept;
  std::vector<int> places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (read[i]) {
      places.push_back(compact.operand(static_cast<int>(kept.size())));
      kept.push_back(operands[i]);
    } else {
      places.push_back(-1);
    }
  }
  compact.finish(compact.inline_expression(expression, places));
  if (compact.root().op == ScalarOp::operand) return kept[compact.root().operand];
  return to_.map(compact, kept);
}

Value AdjointBuilder::multiply(const std::vector<Value>& factors, double scale,
                               const std::vector<Extent>& extents) {
  Scalar product;
  int result = product.constant(scale);
  for (std::size_t i = 0; i < factors.size(); ++i)
    result = product.apply(ScalarOp::mul, product.operand(static_cast<int>(i)), result);
  for (const Extent& extent : extents)
    result = product.apply(ScalarOp::mul, result, product.extent(extent));
  product.finish(result);
  return map(product, factors);
}

Value AdjointBuilder::sum(const std::vector<Value>& terms) {
  Scalar total;
  std::vector<Value> valid;
  int result = -1;
  for (Value term : terms) {
    if (!term.valid()) continue;
    int operand = total.operand(static_cast<int>(valid.size()));
    valid.push_back(term);
    result = result < 0 ? operand : total.apply(ScalarOp::add, result, operand);
  }
  if (valid.empty()) return {};
  total.finish(result);
  return map(total, valid);
}

Value AdjointBuilder::contract_step(const std::vector<Value>& factors, const AxisNames& sum) {
  if (factors.size() == 1) return to_.reduce(Reduce::Kind::sum, sum, factors[0]);
  return to_.contract(sum, factors);
}

/// Sums over the axes that only some of the factors have, those with the fewest factors first,
/// where what comes out has no more axes than one of the others. Tells whether it did.
bool AdjointBuilder::eliminate(std::vector<Value>& factors, AxisNames& sum) {
  std::vector<Value> best, best_rest;
  AxisNames best_axes;
  for (const std::string& axis : sum) {
    std::vector<Value> with, rest;
    AxisNames joined;
    for (Value factor : factors) {
      bool has = contains(new_axes(factor), axis);
      (has ? with : rest).push_back(factor);
      if (has) joined.insert(joined.end(), new_axes(factor).begin(), new_axes(factor).end());
    }
    if (rest.empty() || (!best.empty() && best.size() <= with.size())) continue;
    AxisNames outside, gone;
    for (Value factor : rest)
      outside.insert(outside.end(), new_axes(factor).begin(), new_axes(factor).end());
    gone = without(common(sum, joined), outside);
    // An axis that joins several of these factors but not all goes later, with fewer axes around.
    for (Value factor : with) gone = common(gone, new_axes(factor));
    AxisNames left = without(joined, gone);
    bool fits = std::any_of(rest.begin(), rest.end(),
                            [&](Value factor) { return subset(left, new_axes(factor)); });
    if (!fits || gone.empty()) continue;
    best = with, best_rest = rest, best_axes = gone;
  }
  if (best.empty()) return false;
  best_rest.insert(best_rest.begin(), contract_step(best, best_axes));
  factors = best_rest;
  sum = without(sum, best_axes);
  return true;
}

/// Multiplies a factor into another one that has all its axes, so that products of two remain where
/// that costs no memory. Of several the one with the fewest axes, and the fewest summed ones.
bool AdjointBuilder::absorb(std::vector<Value>& factors, const AxisNames& sum) {
  if (factors.size() <= 2) return false;
  for (std::size_t i = factors.size(); i-- > 0;) {
    std::size_t into = factors.size();
    auto cost = [&](std::size_t j) {
      const AxisNames& axes = new_axes(factors[j]);
      return std::pair(axes.size(), common(axes, sum).size());
    };
    for (std::size_t j = 0; j < factors.size(); ++j) {
      if (i == j || !subset(new_axes(factors[i]), new_axes(factors[j]))) continue;
      if (into == factors.size() || cost(j) < cost(into)) into = j;
    }
    if (into == factors.size()) continue;
    factors[into] = multiply({factors[into], factors[i]});
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

Value AdjointBuilder::sum_product(std::vector<Value> factors, const AxisNames& sum, double scale) {
  // A literal that only stands along an axis is a number: the product varies as the others do.
  auto literal = [&](Value factor) {
    const auto* constant = std::get_if<Constant>(&to_.node(factor.node).op);
    if (constant != nullptr) scale *= constant->value;
    return constant != nullptr;
  };
  factors.erase(std::remove_if(factors.begin(), factors.end(), literal), factors.end());
  std::vector<Value> outer;
  AxisNames open = sum;
  std::vector<Extent> extents;
  for (const std::string& axis : sum) {
    bool met = std::any_of(factors.begin(), factors.end(),
                           [&](Value factor) { return contains(new_axes(factor), axis); });
    if (!met) {
      extents.push_back(to_.axis(axis).extent);
      open = without(open, {axis});
    }
  }
  auto move_out = [&] {
    auto stays = [&](Value factor) { return !common(new_axes(factor), open).empty(); };
    auto from = std::stable_partition(factors.begin(), factors.end(), stays);
    outer.insert(outer.end(), from, factors.end());
    factors.erase(from, factors.end());
  };
  move_out();
  while (eliminate(factors, open) || absorb(factors, open)) move_out();
  if (!factors.empty()) outer.insert(outer.begin(), contract_step(factors, open));
  return multiply(outer, scale, extents);
}

Value AdjointBuilder::broadcast(Value value, const AxisNames& axes) {
  AxisNames missing = without(axes, new_axes(value));
  if (missing.empty()) return value;
  return multiply({value, to_.constant(1, to_.type(value).dtype, missing)});
}

Value AdjointBuilder::broadcast_or_zeros(Value value, DType dtype, const AxisNames& axes) {
  return value.valid() ? broadcast(value, axes) : to_.constant(0, accumulator(dtype), axes);
}

Value AdjointBuilder::position(Value value, const std::string& axis, std::int64_t start,
                               bool from_end) {
  if (!value.valid() || !contains(new_axes(value), axis)) return value;
  return {to_.add(Slice{axis, start, from_end, ""}, {value}), 0};
}

Value AdjointBuilder::zeros_like(Value like, const std::string& axis, const Extent& extent,
                                 std::string& name) {
  std::string& made = zero_axes_[extent.text()];
  if (made.empty()) {
    made = to_.fresh_axis_name("zeros");
    to_.declare(Axis(made, extent));
  }
  name = made;
  AxisNames axes = without(new_axes(like), {axis});
  axes.push_back(made);
  return to_.constant(0, to_.type(like).dtype, to_.sorted(axes));
}

}  // namespace krait
