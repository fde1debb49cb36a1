// Readers of a trajectory. What is linear in it is kept as a sum of products, until a contraction
// takes a state axis away, or something that is not linear reads it: then it gets its chunked form.
#include <algorithm>

#include "dsl/error.h"
#include "schedules/chunk_join.h"
#include "schedules/chunk_rewrite.h"

namespace krait::chunking {
namespace {

std::string listed(const AxisNames& axes) {
  std::string joined;
  for (const auto& axis : axes) joined += (joined.empty() ? "" : " ") + axis;
  return "(" + joined + ")";
}

}  // namespace

AxisNames Rewrite::trajectory_axes(const Product& product) const {
  AxisNames axes = scans_[product.scan].axes;
  for (const Op& view : product.views) axes = apply_view(to_, view, axes);
  return axes;
}

void Rewrite::extend_linear(int id) {
  const Node& node = from_.node(id);
  const auto is_linear = [&](Value operand) { return linear_.count(operand) != 0; };
  const auto count = std::count_if(node.operands.begin(), node.operands.end(), is_linear);
  if (count == 0 || acts_along_time(node)) return;
  const auto trajectory = [&](const Product& product) {
    return product.scan < 0 ? AxisNames{} : scans_[product.scan].axes;
  };
  Products result;
  bool contracted = false;

  if (const auto* map = std::get_if<Map>(&node.op)) {
    const auto& nodes = map->expression.nodes();
    std::vector<bool> reads(nodes.size(), false);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      reads[i] = nodes[i].op == ScalarOp::operand && is_linear(node.operands[nodes[i].operand]);
      for (int arg : nodes[i].args) reads[i] = reads[i] || (arg >= 0 && reads[arg]);
    }
    Expansion how;
    how.operand = [&](Value operand) { return linear_.at(operand); };
    how.atom = [&](int i) { return part(node, i); };
    how.whole = [&](int i) { return !reads[i]; };
    auto products = expand(to_, node, map->expression.root_index(), how);
    if (!products) return;
    result = std::move(*products);
  } else if (const auto* contract = std::get_if<Contract>(&node.op)) {
    if (count != 1) return;
    const Value operand = *std::find_if(node.operands.begin(), node.operands.end(), is_linear);
    result = linear_.at(operand);
    // A library product reads its rows from memory.
    if (is_matrix_product(node) &&
        std::all_of(result.begin(), result.end(), [&](const auto& p) { return can_stand(p); }))
      return;
    for (Product& product : result) {
      Product others;
      for (Value other : node.operands)
        if (other != operand) others.factors.push_back(chunked(other));
      product = *multiply(to_, std::move(product), std::move(others));
      sum_over(to_, product, contract->sum, trajectory(product));
    }
    contracted = !contract->sum.empty();
  } else if (const auto* reduce = std::get_if<Reduce>(&node.op)) {
    if (reduce->kind != Reduce::Kind::sum) return;
    result = linear_.at(node.operands[0]);
    for (Product& product : result) sum_over(to_, product, reduce->axes, trajectory(product));
    contracted = true;
  } else if (is_view(node.op)) {
    result = linear_.at(node.operands[0]);
    for (Product& product : result) apply_view(to_, node.op, product);
  } else {
    return;
  }

  const bool stands =
      std::all_of(result.begin(), result.end(), [&](const Product& p) { return can_stand(p); });
  linear_[{id}] = std::move(result);
  homes_[id] = Home::chunked;
  if (contracted && stands) {
    chunked({id});
    linear_.erase({id});
  }
}

bool Rewrite::can_stand(const Product& product) const {
  if (product.scan < 0) return true;
  const ChunkedScan& scan = scans_[product.scan];
  const auto viewed = [&](AxisNames axes) {
    for (const Op& view : product.views) axes = apply_view(to_, view, axes);
    return axes;
  };
  // A sum over a state axis that the decay lacks has contracted the outer product. Else the axes
  // that are left must be together in one factor anyway; so are those of the decay or of a reader.
  AxisNames left = without(trajectory_axes(product), viewed(scan.decay));
  if (meet(left, product.sum)) return true;
  left = without(left, axes_of(to_, product.factors));
  return std::all_of(scan.input.begin(), scan.input.end(), [&](const Product& input) {
    return left.empty() || std::any_of(input.factors.begin(), input.factors.end(), [&](Value f) {
             return is_subset(left, viewed(to_.type(f).axes));
           });
  });
}

Value Rewrite::value_of(const Products& products) {
  std::vector<Value> terms;
  for (const Product& product : products) terms.push_back(value_of(product));
  if (terms.empty()) terms.push_back(to_.constant(0, from_.accumulator()));
  return add_up(to_, terms);
}

// With F[q] = exp(sum of a[0..q]) and E[q, k] = exp(sum of a[k+1..q]) for k <= q (0 where a
// document starts in between), S the state that enters the chunk and u the input:
//
//   state after q   = F[q] S + sum over k of E[q, k] u[k]
//   state before q  = the same at q - 1: rows of F and E one step later, 1 and 0 in the first
//
// and a reader sum over n of (state times O[q]) has O inside of both sums.
Value Rewrite::value_of(const Product& product) {
  if (product.scan < 0) {
    const Value value = product.sum.empty() && !product.factors.empty()
                            ? multiply(to_, 1, product.factors)
                            : to_.contract(product.sum, product.factors);
    return product.scale == 1 ? value : multiply(to_, product.scale, {value});
  }
  const ChunkedScan& scan = scans_[product.scan];
  if (!can_stand(product)) {
    const AxisNames left = without(trajectory_axes(product), product.sum);
    throw NotChunkable{"the states of scan " + scan.label + " along " + listed(left) +
                       " are read at every position without a sum over one of these axes"};
  }
  const auto viewed = [&](Value value) {
    for (const Op& view : product.views) value = apply_view(to_, view, value);
    return value;
  };
  Value from_start = scan.from_start, between = scan.between;
  if (!product.leaving) {
    from_start = {to_.add(Shift{.axis = q_, .steps = 1, .fill = 1}, {from_start})};
    between = {to_.add(Shift{.axis = q_, .steps = 1, .fill = 0}, {between})};
  }
  std::vector<Value> terms;

  // What entered with the chunk.
  if (scan.entering.valid()) {
    std::vector<Value> factors{viewed(scan.entering), viewed(from_start)};
    factors.insert(factors.end(), product.factors.begin(), product.factors.end());
    terms.push_back(multiply(to_, product.scale, {join(to_, factors, 0, product.sum, {})}));
  }

  // What the chunk itself put in, position k at position q.
  for (const Product& part : scan.input) {
    Product input = part;
    AxisNames taken = axes_of(to_, product.factors);
    taken.insert(taken.end(), scan.axes.begin(), scan.axes.end());
    const AxisNames mine = trajectory_axes(product);
    taken.insert(taken.end(), mine.begin(), mine.end());
    rename_sums(to_, input, taken);
    std::vector<Value> factors;
    std::vector<int> wide{-1};
    for (Value factor : input.factors) {
      wide.push_back(static_cast<int>(factors.size()));
      factors.push_back(viewed(apply_view(to_, Rename{q_, k_}, factor)));
    }
    factors.push_back(viewed(between));
    factors.insert(factors.end(), product.factors.begin(), product.factors.end());
    // A term of the input may lack an axis of the state that the reader sums.
    Product read{.scale = product.scale * input.scale, .factors = std::move(factors)};
    sum_over(to_, read, product.sum, {});
    read.sum.insert(read.sum.end(), input.sum.begin(), input.sum.end());
    read.sum.push_back(k_);
    terms.push_back(
        multiply(to_, read.scale, {join_best(to_, read.factors, wide, read.sum, {k_})}));
  }
  return add_up(to_, terms);
}

}  // namespace krait::chunking
