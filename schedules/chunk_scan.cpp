// A Scan along t becomes products inside a chunk and a Scan over chunks.
#include <algorithm>

#include "dsl/error.h"
#include "schedules/chunk_join.h"
#include "schedules/chunk_rewrite.h"

namespace krait::chunking {

// With a the log decay, u the input, and n(q) the documents that started in the chunk up to q:
//
//   F[q]    = exp(sum of a[0..q])    where n(q) = 0, else 0
//   E[q, k] = exp(sum of a[k+1..q])  where k <= q and n(q) = n(k), else 0
//   L       = sum over k of exp(sum of a[k+1..Q-1]) u[k], where n(k) = n(Q-1)
//   S[c+1]  = exp(sum of a[0..Q-1]) S[c] + L[c], where a document that starts in c drops S[c]
void Rewrite::chunk_scan(int id) {
  const Node& node = from_.node(id);
  const Scan& op = std::get<Scan>(node.op);
  const Value log_decay = node.operands[0], input = node.operands[1];
  ChunkedScan scan;
  scan.label = from_.label({id, 1});
  if (op.reverse)
    throw NotChunkable{"scan " + scan.label + " runs backwards; chunk before differentiating"};
  if (!from_.interval(log_decay).nonpositive())
    throw NotChunkable{"the log decay " + from_.label(log_decay) + " of scan " + scan.label +
                       " is not declared nonpositive"};
  scan.axes = without(from_.type({id, 1}).axes, {t_});
  scan.decay = without(from_.type(log_decay).axes, {t_});
  scan.input = factors_of(input, scan);
  for (Product& product : scan.input) gather_factors(product, scan);
  for (const Product& product : scan.input) {
    const bool outer =
        std::none_of(product.factors.begin(), product.factors.end(), [&](Value factor) {
          return is_subset(without(scan.axes, to_.type(factor).axes),
                           without(scan.axes, axes_of(to_, product.factors)));
        });
    if (outer && is_subset(scan.axes, scan.decay))
      throw NotChunkable{"the log decay " + from_.label(log_decay) + " of scan " + scan.label +
                         " varies along every axis of its state, which is an outer product"};
  }
  for (Product& product : scan.input) mask(product, scan);

  const Value decay = masked(chunked(log_decay));
  const auto gap = [&](Gap::Kind kind, const std::string& other = "") {
    return Value{to_.add(Gap{kind, q_, other}, {decay})};
  };
  Value running, any;
  std::vector<Value> carried;
  if (op.has_initial) carried.push_back(whole(node.operands[2]));
  if (op.has_reset) {
    const int count =
        to_.add(Cumsum{.axis = q_}, {flags(chunked(node.operands[op.has_initial ? 3 : 2]))});
    running = {count, 0};
    any = {count, 1};
    carried.push_back(any);
  }
  // exp(gap), zero where a document starts between `from` and `to`.
  const auto decayed = [&](Value exponent, auto same_document) {
    Formula f(to_);
    const int power = f(ScalarOp::exp_nonpositive, f.read(exponent));
    const int same = same_document(f);
    return f.finish(same < 0 ? power : f(ScalarOp::select, same, power, f.constant(0)));
  };
  scan.from_start = decayed(gap(Gap::Kind::from_start), [&](Formula& f) {
    return op.has_reset ? f(ScalarOp::equal, f.read(running), f.constant(0)) : -1;
  });
  scan.between = decayed(gap(Gap::Kind::between, k_), [&](Formula& f) {
    const int earlier = f(ScalarOp::less_equal, f.scalar().index(k_), f.scalar().index(q_));
    if (!op.has_reset) return earlier;
    const Value at_k = apply_view(to_, Rename{q_, k_}, running);
    return f(ScalarOp::logical_and, earlier, f(ScalarOp::equal, f.read(running), f.read(at_k)));
  });
  const Value to_end = decayed(gap(Gap::Kind::to_end), [&](Formula& f) {
    return op.has_reset ? f(ScalarOp::equal, f.read(running), f.read(any)) : -1;
  });

  std::vector<Value> left;
  for (const Product& product : scan.input) {
    std::vector<Value> factors = product.factors;
    std::vector<int> wide;
    for (std::size_t i = 0; i < factors.size(); ++i) wide.push_back(static_cast<int>(i));
    factors.insert(factors.begin() + static_cast<std::ptrdiff_t>(factors.size()), to_end);
    AxisNames sum = product.sum;
    sum.push_back(q_);
    left.push_back(multiply(to_, product.scale, {join_best(to_, factors, wide, sum, {q_})}));
  }
  const Value own = spread(to_, add_up(to_, left), without(scan.axes, scan.decay));

  std::vector<Value> operands{gap(Gap::Kind::total), own};
  operands.insert(operands.end(), carried.begin(), carried.end());
  const int over_chunks =
      to_.add(Scan{.axis = c_, .has_initial = op.has_initial, .has_reset = op.has_reset}, operands);
  scan.entering = {over_chunks, 0};
  keep(whole_, {id, 2}, {over_chunks, 2});
  if (to_.axis(c_).extent == Extent::constant(1) && !op.has_initial) {
    // A single chunk that starts from zero: nothing enters, and what is left is its own.
    scan.entering = {};
    keep(whole_, {id, 2}, {to_.add(Slice{.axis = c_}, {spread(to_, own, {c_})})});
  }
  for (int result : {0, 1}) {
    linear_[{id, result}] = {{.scan = static_cast<int>(scans_.size()), .leaving = result == 1}};
  }
  scans_.push_back(std::move(scan));
}

// The input as a sum of products. A value is taken apart only where none of its factors varies
// along all the state's axes that it has (an outer product, which must not be stored), and a
// factor that varies like the decay alone is taken off a wider one (it can go into the decays).
Products Rewrite::factors_of(Value old, const ChunkedScan& scan) {
  const Node& node = from_.node(old.node);
  const auto as_it_is = [&] { return Products{{.factors = {chunked(old)}}}; };
  if (linear_.count(old) != 0 || (is_stored(node) && homes_[old.node] == Home::whole))
    return as_it_is();
  Products result;
  if (const auto* map = std::get_if<Map>(&node.op)) {
    Expansion how;
    how.operand = [&](Value operand) { return factors_of(operand, scan); };
    how.atom = [&](int i) { return part(node, i); };
    const auto& nodes = map->expression.nodes();
    how.whole = [&](int i) {
      switch (nodes[i].op) {
        case ScalarOp::operand:
        case ScalarOp::neg:
        case ScalarOp::add:
        case ScalarOp::sub:
        case ScalarOp::mul:
        case ScalarOp::div:
        case ScalarOp::select: return false;
        default: return true;
      }
    };
    // A divisor and a condition are taken as they are.
    std::vector<bool> fixed(nodes.size(), false);
    for (const ScalarNode& scalar : nodes) {
      if (scalar.op == ScalarOp::div) fixed[scalar.args[1]] = true;
      if (scalar.op == ScalarOp::select) fixed[scalar.args[0]] = true;
    }
    how.whole = [&, apart = how.whole](int i) { return fixed[i] || apart(i); };
    how.plain = [&](const Products& products) { return !is_outer(products, scan); };
    how.settle = [&](int i, Products& products) {
      settle(products, scan, [&] { return part(node, i); });
    };
    auto products = expand(to_, node, map->expression.root_index(), how);
    KRAIT_ASSERT(products, "an input of a scan that is no sum of products");
    return std::move(*products);
  }
  if (const auto* contract = std::get_if<Contract>(&node.op)) {
    // A projection of one operand is no outer product, whatever its axes.
    const auto varying = std::count_if(node.operands.begin(), node.operands.end(),
                                       [&](Value operand) { return varies(operand); });
    if (!contract->sum.empty() && varying < 2) return as_it_is();
    result = {{}};
    for (Value operand : node.operands) {
      Products next;
      for (const Product& a : result)
        for (const Product& b : factors_of(operand, scan)) next.push_back(*multiply(to_, a, b));
      result = std::move(next);
    }
    for (Product& product : result) sum_over(to_, product, contract->sum, {});
  } else if (is_view(node.op) && !acts_along_time(node)) {
    result = factors_of(node.operands[0], scan);
    if (result.size() == 1 && result[0].factors.size() <= 1) return as_it_is();
    for (Product& product : result) apply_view(to_, node.op, product);
  } else {
    return as_it_is();
  }
  settle(result, scan, [&] { return chunked(old); });
  return result;
}

AxisNames Rewrite::state_axes(const AxisNames& axes, const ChunkedScan& scan) const {
  return without(axes, without(axes, scan.axes));
}

bool Rewrite::is_outer(const Products& products, const ChunkedScan& scan) const {
  const auto axes_of_product = [&](const Product& product) {
    return state_axes(without(axes_of(to_, product.factors), product.sum), scan);
  };
  AxisNames all;
  for (const Product& product : products) {
    const AxisNames axes = axes_of_product(product);
    all.insert(all.end(), axes.begin(), axes.end());
  }
  all = to_.sorted(all);
  bool some_has_all = all.empty();
  for (const Product& product : products) {
    const AxisNames own = axes_of_product(product);
    bool covered = own.empty();
    for (Value factor : product.factors) {
      covered = covered || is_subset(own, to_.type(factor).axes);
      some_has_all = some_has_all || is_subset(all, to_.type(factor).axes);
    }
    if (!covered) return true;
  }
  return !some_has_all;
}

bool Rewrite::is_narrow(Value factor, const ChunkedScan& scan) const {
  return is_subset(state_axes(to_.type(factor).axes, scan), scan.decay);
}

void Rewrite::settle(Products& products, const ChunkedScan& scan,
                     const std::function<Value()>& atom) {
  if (products.size() == 1 && products[0].factors.size() <= 1) return;
  if (is_outer(products, scan)) return;
  if (products.size() == 1 && products[0].sum.empty()) {
    const std::vector<Value>& factors = products[0].factors;
    const auto wide = std::count_if(factors.begin(), factors.end(),
                                    [&](Value factor) { return !is_narrow(factor, scan); });
    if (wide <= 1) return;
  }
  products = {{.factors = {atom()}}};
}

// Of an outer product with weights, contract({v, weight, k}), the weights belong to the factor that
// has their axes: else they would be summed with the other one.
void Rewrite::gather_factors(Product& product, const ChunkedScan& scan) {
  std::vector<Value>& factors = product.factors;
  for (std::size_t i = 0; i < factors.size();) {
    const AxisNames axes = state_axes(to_.type(factors[i]).axes, scan);
    std::size_t home = i;
    for (std::size_t j = 0; j < factors.size() && !is_narrow(factors[i], scan); ++j)
      if (j != i && is_subset(axes, to_.type(factors[j]).axes)) home = j;
    if (home == i) {
      ++i;
      continue;
    }
    factors[home] = multiply(to_, 1, {factors[home], factors[i]});
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;
  }
}

void Rewrite::mask(Product& product, const ChunkedScan& scan) {
  std::vector<Value>& factors = product.factors;
  if (std::any_of(factors.begin(), factors.end(), [&](Value f) { return zero_past_end(f); }))
    return;
  // One zero is enough: in the narrowest factor along q, or in a factor made for it.
  const auto width = [&](Value factor) {
    return std::pair(!is_narrow(factor, scan), to_.type(factor).axes.size());
  };
  auto least = factors.end();
  for (auto factor = factors.begin(); factor != factors.end(); ++factor)
    if (contains(to_.type(*factor).axes, q_) &&
        (least == factors.end() || width(*factor) < width(*least)))
      least = factor;
  if (least != factors.end()) {
    *least = masked(*least);
  } else {
    factors.push_back(masked(to_.constant(1, from_.accumulator())));
  }
}

}  // namespace krait::chunking
