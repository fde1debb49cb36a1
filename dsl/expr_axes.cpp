// The part of the language that knows axes: reductions, recurrences, axis algebra.
#include <optional>

#include "dsl/error.h"
#include "dsl/expr.h"

namespace krait {
namespace {

AxisNames declare(Graph& graph, const std::vector<Axis>& axes) {
  AxisNames names;
  for (const auto& axis : axes) {
    graph.declare(axis);
    names.push_back(axis.name);
  }
  return names;
}

Scope& scope_of(const std::vector<Expr>& operands, const char* where) {
  KRAIT_REQUIRE(!operands.empty(), "number of operands of ", where, " is 0; allowed: 1 and up");
  for (const Expr& operand : operands)
    KRAIT_REQUIRE(&operand.scope() == &operands[0].scope(), "operands of ", where,
                  " are of two Scopes; allowed: values of one Scope");
  return operands[0].scope();
}

Expr added(Op op, const std::vector<Expr>& operands, const char* where) {
  Scope& scope = scope_of(operands, where);
  std::vector<Value> values;
  for (const Expr& operand : operands) values.push_back(operand.value());
  return {scope, Value{scope.graph().add(std::move(op), std::move(values))}};
}

/// A product of values and a number.
struct Product {
  std::vector<Value> factors;
  double scale = 1;
};

// Beyond, a power of a power would become a product of thousands.
constexpr std::size_t kMostFactors = 8;

/// Takes node `id` of the Map at `value` apart; false where it is more than a product.
bool take_apart(const Graph& graph, const Node& node, int id, Product& product);

bool take_apart(const Graph& graph, Value value, Product& product) {
  const Node& node = graph.node(value.node);
  if (const auto* map = std::get_if<Map>(&node.op)) {
    Product inner = product;
    // A Map that only a product can show may vary along more axes than its factors.
    std::size_t before = inner.factors.size();
    if (take_apart(graph, node, map->expression.root_index(), inner)) {
      AxisNames axes;
      for (auto i = before; i < inner.factors.size(); ++i) {
        const auto& more = graph.type(inner.factors[i]).axes;
        axes.insert(axes.end(), more.begin(), more.end());
      }
      if (graph.sorted(axes) == graph.type(value).axes) {
        product = std::move(inner);
        return true;
      }
    }
  }
  product.factors.push_back(value);
  return product.factors.size() <= kMostFactors;
}

bool take_apart(const Graph& graph, const Node& node, int id, Product& product) {
  const Scalar& expression = std::get<Map>(node.op).expression;
  const ScalarNode& scalar = expression.nodes()[id];
  switch (scalar.op) {
    case ScalarOp::constant: product.scale *= scalar.value; return true;
    case ScalarOp::operand: return take_apart(graph, node.operands[scalar.operand], product);
    case ScalarOp::neg:
      product.scale = -product.scale;
      return take_apart(graph, node, scalar.args[0], product);
    case ScalarOp::mul:
      return take_apart(graph, node, scalar.args[0], product) &&
             take_apart(graph, node, scalar.args[1], product);
    default: return false;
  }
}

std::int64_t constant_size(const Axis& axis, const char* where) {
  KRAIT_REQUIRE(axis.extent.is_constant(), "size of axis ", axis.name, " of ", where, " is ",
                axis.extent.text(), "; allowed: constant sizes");
  return axis.extent.offset;
}

}  // namespace

// -------------------------------------------------------------------------------------- reductions

Expr sum(const Expr& a, const std::vector<Axis>& axes) {
  Scope& scope = a.scope();
  Graph& graph = scope.graph();
  const AxisNames names = declare(graph, axes);
  if (names.empty()) return a;
  Product product;
  if (take_apart(graph, a.value(), product) && product.factors.size() > 1) {
    Expr contracted(scope, graph.contract(names, product.factors));
    return contracted * product.scale;
  }
  return {scope, graph.reduce(Reduce::Kind::sum, names, a.value())};
}

Expr sum(const Expr& a, const Axis& axis) { return sum(a, std::vector<Axis>{axis}); }

Expr mean(const Expr& a, const std::vector<Axis>& axes) {
  const Expr total = sum(a, axes);
  Scalar s;
  int count = s.constant(1);
  for (const auto& axis : axes) count = s.apply(ScalarOp::mul, count, s.extent(axis.extent));
  s.finish(s.apply(ScalarOp::div, s.operand(0), count));
  Scope& scope = a.scope();
  return {scope, scope.graph().map(std::move(s), {total.value()})};
}

Expr maximum(const Expr& a, const std::vector<Axis>& axes) {
  Graph& graph = a.scope().graph();
  return {a.scope(), graph.reduce(Reduce::Kind::max, declare(graph, axes), a.value())};
}

Expr contract(const std::vector<Expr>& operands, const std::vector<Axis>& axes) {
  Graph& graph = scope_of(operands, "contract").graph();
  return added(Contract{declare(graph, axes)}, operands, "contract");
}

// ---------------------------------------------------------------------------------- along one axis

Running cumsum(const Axis& axis, const Expr& a, const RunningOptions& options) {
  Scope& scope = a.scope();
  scope.graph().declare(axis);
  std::vector<Expr> operands{a};
  if (options.initial.defined()) operands.push_back(options.initial);
  if (options.reset.defined()) operands.push_back(options.reset);
  const Cumsum op{axis.name,    options.reverse,           options.exclusive,
                  options.wrap, options.initial.defined(), options.reset.defined()};
  const int node = added(op, operands, "cumsum").value().node;
  return {{scope, {node, 0}}, {scope, {node, 1}}};
}

ScanResult scan(const Axis& axis, const Expr& log_decay, const Expr& input,
                const ScanOptions& options) {
  Scope& scope = input.scope();
  scope.graph().declare(axis);
  std::vector<Expr> operands{log_decay, input};
  if (options.initial.defined()) operands.push_back(options.initial);
  if (options.reset.defined()) operands.push_back(options.reset);
  const Scan op{axis.name, false, options.initial.defined(), options.reset.defined()};
  const int node = added(op, operands, "scan").value().node;
  return {{scope, {node, 0}}, {scope, {node, 1}}, {scope, {node, 2}}};
}

Expr shift(const Expr& a, const Axis& axis, std::int64_t steps, double fill) {
  a.scope().graph().declare(axis);
  return added(Shift{axis.name, steps, fill, false, ""}, {a}, "shift");
}

Expr shift(const Expr& a, const Axis& axis, std::int64_t steps, const Expr& state,
           const Axis& state_axis) {
  declare(a.scope().graph(), {axis, state_axis});
  return added(Shift{axis.name, steps, 0, true, state_axis.name}, {a, state}, "shift");
}

// ------------------------------------------------------------------------------------ axis algebra

Expr gather(const Expr& table, const Axis& axis, const Expr& index) {
  table.scope().graph().declare(axis);
  return added(Gather{axis.name}, {table, index}, "gather");
}

Expr split(const Expr& a, const Axis& axis, const Axis& outer, const Axis& inner) {
  declare(a.scope().graph(), {axis, outer, inner});
  return added(Split{axis.name, outer.name, inner.name}, {a}, "split");
}

Expr merge(const Expr& a, const Axis& outer, const Axis& inner, const Axis& axis) {
  declare(a.scope().graph(), {outer, inner, axis});
  return added(Merge{outer.name, inner.name, axis.name}, {a}, "merge");
}

Expr slice(const Expr& a, const Axis& axis, std::int64_t start, const Axis& result) {
  declare(a.scope().graph(), {axis, result});
  return added(Slice{axis.name, start, false, result.name}, {a}, "slice");
}

Expr tail(const Expr& a, const Axis& axis, const Axis& result) {
  declare(a.scope().graph(), {axis, result});
  return added(Slice{axis.name, constant_size(result, "tail"), true, result.name}, {a}, "tail");
}

Expr at(const Expr& a, const Axis& axis, std::int64_t position) {
  a.scope().graph().declare(axis);
  const bool from_end = position < 0;
  return added(Slice{axis.name, from_end ? -position : position, from_end, ""}, {a}, "at");
}

Expr concat(const std::vector<Expr>& operands, const std::vector<Axis>& axes, const Axis& result) {
  Graph& graph = scope_of(operands, "concat").graph();
  const AxisNames names = declare(graph, axes);
  graph.declare(result);
  return added(Concat{names, result.name}, operands, "concat");
}

Expr rename(const Expr& a, const Axis& from, const Axis& to) {
  declare(a.scope().graph(), {from, to});
  return added(Rename{from.name, to.name}, {a}, "rename");
}

Expr broadcast(const Expr& a, const std::vector<Axis>& axes) {
  Graph& graph = a.scope().graph();
  const AxisNames missing = without(declare(graph, axes), a.axes());
  if (missing.empty()) return a;
  // An operand that the expression does not read lends its axes; i32, so that the dtype stays.
  Scalar s;
  s.finish(s.operand(0));
  return {a.scope(), graph.map(std::move(s), {a.value(), graph.constant(0, DType::i32, missing)})};
}

}  // namespace krait
