#include "schedules/chunk_products.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait::chunking {

int Formula::read(Value value) {
  operands_.push_back(value);
  return scalar_.operand(static_cast<int>(operands_.size()) - 1);
}

Value Formula::finish(int result) {
  scalar_.finish(result);
  return graph_.map(std::move(scalar_), std::move(operands_));
}

AxisNames axes_of(const Graph& graph, const std::vector<Value>& values) {
  AxisNames axes;
  for (Value value : values) {
    const AxisNames& more = graph.type(value).axes;
    axes.insert(axes.end(), more.begin(), more.end());
  }
  return graph.sorted(axes);
}

bool is_subset(const AxisNames& axes, const AxisNames& of) { return without(axes, of).empty(); }

bool meet(const AxisNames& a, const AxisNames& b) { return without(a, b).size() < a.size(); }

// ------------------------------------------------------------------------------- single values

Value multiply(Graph& graph, double scale, const std::vector<Value>& factors) {
  if (scale == 1 && factors.size() == 1) return factors[0];
  Formula product(graph);
  int result = product.constant(scale);
  for (Value factor : factors) result = product(ScalarOp::mul, result, product.read(factor));
  return product.finish(result);
}

Value add_up(Graph& graph, const std::vector<Value>& terms) {
  if (terms.size() == 1) return terms[0];
  Formula sum(graph);
  int result = sum.constant(0);
  for (Value term : terms) result = sum(ScalarOp::add, result, sum.read(term));
  return sum.finish(result);
}

Value spread(Graph& graph, Value value, const AxisNames& axes) {
  const Type& type = graph.type(value);
  const AxisNames missing = without(axes, type.axes);
  if (missing.empty()) return value;
  return graph.contract({}, {value, graph.constant(1, type.dtype, missing)});
}

// --------------------------------------------------------------------------------------- views

namespace {

/// The axes that a view takes away and those that it gives.
struct Change {
  AxisNames from, to;
};

Change change_of(const Op& view) {
  if (const auto* rename = std::get_if<Rename>(&view)) return {{rename->from}, {rename->to}};
  if (const auto* split = std::get_if<Split>(&view))
    return {{split->axis}, {split->outer, split->inner}};
  if (const auto* merge = std::get_if<Merge>(&view))
    return {{merge->outer, merge->inner}, {merge->axis}};
  const auto& slice = std::get<Slice>(view);
  if (slice.result.empty()) return {{slice.axis}, {}};
  return {{slice.axis}, {slice.result}};
}

}  // namespace

bool is_view(const Op& op) {
  return std::holds_alternative<Rename>(op) || std::holds_alternative<Split>(op) ||
         std::holds_alternative<Merge>(op) || std::holds_alternative<Slice>(op);
}

Value apply_view(Graph& graph, const Op& view, Value value) {
  const Change change = change_of(view);
  if (!meet(graph.type(value).axes, change.from)) return value;
  return {graph.add(view, {spread(graph, value, change.from)})};
}

AxisNames apply_view(const Graph& graph, const Op& view, AxisNames axes) {
  const Change change = change_of(view);
  if (!meet(axes, change.from)) return axes;
  axes = without(axes, change.from);
  axes.insert(axes.end(), change.to.begin(), change.to.end());
  return graph.sorted(axes);
}

void apply_view(Graph& graph, const Op& view, Product& product) {
  // A summed axis of the product is another one than the axis that the view makes or takes.
  const Change change = change_of(view);
  rename_sums(graph, product, change.from);
  rename_sums(graph, product, change.to);
  for (Value& factor : product.factors) factor = apply_view(graph, view, factor);
  if (product.scan >= 0) product.views.push_back(view);
}

// ------------------------------------------------------------------------------------ products

void rename_sums(Graph& graph, Product& product, const AxisNames& taken) {
  for (std::string& axis : product.sum) {
    if (!contains(taken, axis)) continue;
    const Rename rename{axis, graph.fresh_axis_name(axis)};
    graph.declare(Axis(rename.to, graph.axis(axis).extent));
    for (Value& factor : product.factors) factor = apply_view(graph, rename, factor);
    if (product.scan >= 0) product.views.push_back(rename);
    axis = rename.to;
  }
}

std::optional<Product> multiply(Graph& graph, Product a, Product b) {
  if (a.scan >= 0 && b.scan >= 0) return {};
  if (b.scan >= 0) std::swap(a, b);
  // A trajectory keeps the names of its axes; what it is multiplied with gives way.
  rename_sums(graph, a, axes_of(graph, b.factors));
  AxisNames taken = axes_of(graph, a.factors);
  taken.insert(taken.end(), a.sum.begin(), a.sum.end());
  rename_sums(graph, b, taken);
  a.scale *= b.scale;
  a.factors.insert(a.factors.end(), b.factors.begin(), b.factors.end());
  a.sum.insert(a.sum.end(), b.sum.begin(), b.sum.end());
  return a;
}

void sum_over(Graph& graph, Product& product, const AxisNames& axes, AxisNames trajectory) {
  for (const Op& view : product.views) trajectory = apply_view(graph, view, trajectory);
  rename_sums(graph, product, axes);
  const AxisNames carried = axes_of(graph, product.factors);
  for (const std::string& axis : axes) {
    if (contains(carried, axis) || contains(trajectory, axis)) {
      product.sum.push_back(axis);
      continue;
    }
    const Extent& extent = graph.axis(axis).extent;
    if (extent.is_constant()) {
      product.scale *= static_cast<double>(extent.offset);
    } else {
      Formula size(graph);
      product.factors.push_back(
          size.finish(size(ScalarOp::mul, size.constant(1.0), size.scalar().extent(extent))));
    }
  }
}

// ----------------------------------------------------------------------------- expressions apart

namespace {

std::optional<Products> expand_product(Graph& graph, const Products& left, const Products& right) {
  Products result;
  for (const Product& a : left)
    for (const Product& b : right) {
      auto product = multiply(graph, a, b);
      if (!product) return {};
      result.push_back(std::move(*product));
    }
  return result;
}

}  // namespace

std::optional<Products> expand(Graph& graph, const Node& map, int id, const Expansion& how) {
  const ScalarNode& node = std::get<Map>(map.op).expression.nodes()[id];
  const auto part = [&](int i) { return expand(graph, map, node.args[i], how); };
  const auto made = [&](Formula& formula, int result) {
    return Products{{.factors = {formula.finish(result)}}};
  };
  std::optional<Products> result;
  if (node.op == ScalarOp::constant) return Products{{.scale = node.value}};
  if (how.whole(id)) return Products{{.factors = {how.atom(id)}}};
  switch (node.op) {
    case ScalarOp::operand: result = how.operand(map.operands[node.operand]); break;
    case ScalarOp::neg:
      result = part(0);
      if (result)
        for (Product& product : *result) product.scale = -product.scale;
      break;
    case ScalarOp::add:
    case ScalarOp::sub: {
      result = part(0);
      auto more = part(1);
      if (!result || !more) return {};
      for (Product& product : *more) {
        if (node.op == ScalarOp::sub) product.scale = -product.scale;
        result->push_back(std::move(product));
      }
      break;
    }
    case ScalarOp::mul: {
      auto left = part(0), right = part(1);
      if (!left || !right) return {};
      result = expand_product(graph, *left, *right);
      break;
    }
    case ScalarOp::div: {
      // Linear in the numerator alone.
      if (!how.whole(node.args[1])) return {};
      auto left = part(0);
      if (!left) return {};
      Formula inverse(graph);
      const int one = inverse.constant(1);
      result = expand_product(
          graph, *left,
          made(inverse, inverse(ScalarOp::div, one, inverse.read(how.atom(node.args[1])))));
      break;
    }
    case ScalarOp::select: {
      // select(m, a, b) = [m] a + [not m] b.
      if (!how.whole(node.args[0])) return {};
      const std::optional<Products> branches[] = {part(1), part(2)};
      if (!branches[0] || !branches[1]) return {};
      if (how.plain(*branches[0]) && how.plain(*branches[1])) {
        result = Products{{.factors = {how.atom(id)}}};
        break;
      }
      result.emplace();
      for (int branch : {0, 1}) {
        Formula mask(graph);
        const int condition = mask.read(how.atom(node.args[0]));
        const int yes = mask.constant(branch == 0 ? 1 : 0), no = mask.constant(branch);
        const Products on = made(mask, mask(ScalarOp::select, condition, yes, no));
        const auto masked = expand_product(graph, *branches[branch], on);
        for (const Product& product : *masked)
          if (product.scale != 0) result->push_back(product);
      }
      break;
    }
    default: return {};
  }
  if (result) how.settle(id, *result);
  return result;
}

}  // namespace krait::chunking
