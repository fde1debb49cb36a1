// Rules of the ops that work on one tile: maps, products, reductions, views.
#include "codegen/build_ops.h"

#include <algorithm>
#include <limits>

#include "codegen/tile/range.h"
#include "dsl/error.h"
#include "schedules/view.h"

namespace krait {
namespace {

/// The expression with literals in place of operands that are Constants; the others are numbered
/// anew, in order, and their accesses listed.
Scalar bind(Values& values, const Scalar& expression, const std::vector<Value>& operands,
            std::vector<Access>& accesses) {
  Scalar bound;
  std::vector<int> nodes;
  for (Value value : operands) {
    if (auto literal = values.literal(value)) {
      nodes.push_back(bound.constant(*literal));
    } else {
      nodes.push_back(bound.operand(static_cast<int>(accesses.size())));
      accesses.push_back(values.operand(value));
    }
  }
  bound.finish(bound.inline_expression(expression, nodes));
  return bound;
}

std::vector<std::pair<std::string, Index>> positions_of(Values& values, const Scalar& expression) {
  std::vector<std::pair<std::string, Index>> positions;
  for (const auto& axis : expression.index_axes())
    positions.push_back({axis, Index::variable(values.builder().var(axis))});
  return positions;
}

/// Run-time sizes in an expression are arguments of the launch.
void declare_sizes(Values& values, const Scalar& expression) {
  for (const ScalarNode& node : expression.nodes())
    if (node.op == ScalarOp::extent && !node.extent.is_constant())
      values.builder().program().argument(
          {TileProgram::Argument::Kind::size, node.extent.symbol, -1, -1});
}

/// Where a sum over loops is set to zero: inside of the loops that the result varies in.
Place accumulator_place(Values& values, const AxisNames& axes) {
  return {values.builder().level_of(axes), false};
}

AxisNames loop_axes(Values& values, const AxisNames& axes) {
  AxisNames loops;
  for (const auto& axis : axes)
    if (values.builder().loop_of(axis) >= 0) loops.push_back(axis);
  return loops;
}

/// Sum or max of an expression: over tile axes in a statement, over loops by accumulating.
void build_sum(Values& values, int number, const AxisNames& summed, ReduceTile::Kind kind,
               const Scalar& expression, const std::vector<Value>& operands) {
  Builder& builder = values.builder();
  const Value value{number, 0};
  const AxisNames& axes = values.graph().node(number).results[0].axes;
  Place place = values.place_of_node(number);
  ReduceTile statement;
  statement.kind = kind;
  statement.results = {bind(values, expression, operands, statement.operands)};
  statement.positions = positions_of(values, statement.results[0]);
  declare_sizes(values, statement.results[0]);
  statement.compute = values.graph().node(number).results[0].dtype;
  statement.domain = builder.vars(builder.tile_axes(axes));
  statement.reduced = builder.vars(builder.tile_axes(summed));
  statement.accumulate = !loop_axes(values, summed).empty();
  const Place ready = statement.accumulate ? Place{builder.level_of(axes), true} : place;
  statement.destinations = {values.result(value, ready)};
  if (statement.accumulate) {
    const double start =
        kind == ReduceTile::Kind::max ? -std::numeric_limits<double>::infinity() : 0;
    builder.add(accumulator_place(values, axes),
                Fill{statement.domain, statement.destinations[0], start});
  }
  builder.add(place, std::move(statement));
}

}  // namespace

void build_map(Values& values, int number, const Map& op) {
  Builder& builder = values.builder();
  const Node& node = values.graph().node(number);
  const Place place = values.place_of_node(number);
  MapTile statement;
  statement.results = {bind(values, op.expression, node.operands, statement.operands)};
  statement.positions = positions_of(values, statement.results[0]);
  declare_sizes(values, statement.results[0]);
  statement.domain = builder.vars(builder.tile_axes(node.results[0].axes));
  statement.compute = values.graph().accumulator();
  statement.destinations = {values.result({number, 0}, place)};
  builder.add(place, std::move(statement));
}

namespace {

struct ProductAxes {
  AxisNames batch, rows, columns, sum;
};

ProductAxes product_axes(const Builder& builder, int number) {
  const Graph& graph = builder.graph();
  const Node& node = graph.node(number);
  const AxisNames& left = graph.type(node.operands[0]).axes;
  const AxisNames& right = graph.type(node.operands[1]).axes;
  ProductAxes axes;
  for (const auto& axis : builder.tile_axes(node.results[0].axes)) {
    const bool in_left = contains(left, axis);
    const bool in_right = contains(right, axis);
    (in_left && in_right ? axes.batch : in_left ? axes.rows : axes.columns).push_back(axis);
  }
  axes.sum = builder.tile_axes(std::get<Contract>(node.op).sum);
  return axes;
}

}  // namespace

bool has_product_shape(const Builder& builder, int number) {
  const Graph& graph = builder.graph();
  const Node& node = graph.node(number);
  if (!std::holds_alternative<Contract>(node.op) || node.operands.size() != 2) return false;
  const DType dtype = node.results[0].dtype;
  if (!is_float(dtype)) return false;
  const ProductAxes axes = product_axes(builder, number);
  for (Value operand : node.operands) {
    if (graph.type(operand).dtype != dtype) return false;
    for (const auto& axis : axes.sum)
      if (!contains(graph.type(operand).axes, axis)) return false;
  }
  return !axes.rows.empty() && !axes.columns.empty() && !axes.sum.empty();
}

std::optional<Mma> product_statement(Values& values, int number) {
  Builder& builder = values.builder();
  if (!has_product_shape(builder, number)) return std::nullopt;
  const ProductAxes axes = product_axes(builder, number);
  const Node& node = values.graph().node(number);
  Mma statement;
  statement.batch = builder.vars(axes.batch);
  statement.rows = builder.vars(axes.rows);
  statement.columns = builder.vars(axes.columns);
  statement.sum = builder.vars(axes.sum);
  statement.left = builder.access(values.on_chip(node.operands[0]));
  statement.right = builder.access(values.on_chip(node.operands[1]));
  return statement;
}

void build_contract(Values& values, int number, const Contract& op) {
  if (values.is_folded(number)) return;
  Builder& builder = values.builder();
  const Node& node = values.graph().node(number);
  const AxisNames& axes = node.results[0].axes;
  if (auto product = product_statement(values, number)) {
    const Place place = values.place_of_node(number);
    product->accumulate = !loop_axes(values, op.sum).empty();
    const Place ready = product->accumulate ? Place{builder.level_of(axes), true} : place;
    const int buffer = builder.tile(values.graph().label({number, 0}), node.results[0].dtype, axes);
    values.define({number, 0}, buffer, ready);
    product->destination = builder.access(buffer);
    if (product->accumulate)
      builder.add(accumulator_place(values, axes),
                  Fill{builder.vars(builder.tile_axes(axes)), builder.access(buffer), 0});
    builder.add(place, std::move(*product));
    return;
  }
  Scalar expression;
  int result = expression.operand(0);
  for (std::size_t i = 1; i < node.operands.size(); ++i)
    result = expression.apply(ScalarOp::mul, result, expression.operand(static_cast<int>(i)));
  expression.finish(result);
  build_sum(values, number, op.sum, ReduceTile::Kind::sum, expression, node.operands);
}

void build_reduce(Values& values, int number, const Reduce& op) {
  Scalar expression;
  expression.finish(expression.operand(0));
  build_sum(values, number, op.axes,
            op.kind == Reduce::Kind::max ? ReduceTile::Kind::max : ReduceTile::Kind::sum,
            expression, values.graph().node(number).operands);
}

void build_view(Values& values, int number) {
  Builder& builder = values.builder();
  const Graph& graph = values.graph();
  const Node& node = graph.node(number);
  const Place place = values.place_of_node(number);
  const Value value{number, 0};
  auto moves_along = [&](const std::string& axis) {
    // There is one position only, so that a slice takes the one that the kernel stands at.
    if (std::holds_alternative<Slice>(node.op) && graph.axis(axis).extent == Extent::constant(1))
      return false;
    const auto* shift = std::get_if<Shift>(&node.op);
    return shift != nullptr ? shift->axis == axis : !contains(node.results[0].axes, axis);
  };
  for (Value operand : node.operands) {
    const AxisNames& before = graph.type(operand).axes;
    for (const auto& axis : before)
      KRAIT_ASSERT(!builder.is_mapped(axis) || !moves_along(axis), "kernel ", builder.kernel().name,
                   ": view ", number, " rearranges the cut axis ", axis);
    for (const auto& axis : node.results[0].axes)
      KRAIT_ASSERT(!builder.is_mapped(axis) || contains(before, axis), "kernel ",
                   builder.kernel().name, ": view ", number, " makes the cut axis ", axis);
  }
  // As the dims of a buffer stand, which need not be the order of the axes.
  auto whole_view = [&](int tile) {
    View view;
    for (const Dim& dim : builder.program().buffers[tile].dims)
      view.dims.push_back({0, 0, dim.extent, {0, {{dim.axis, 1}}, {}}});
    return view;
  };
  if (std::holds_alternative<Rename>(node.op) || std::holds_alternative<Slice>(node.op)) {
    const int source = values.on_chip(node.operands[0]);
    auto views = forward_view(graph, number, {{whole_view(source)}});
    KRAIT_ASSERT(views && views->size() == 1, "view ", number, " is not affine on chip");
    values.define(
        value, builder.shown(graph.label(value), source, (*views)[0], node.results[0].axes), place);
    return;
  }
  const int buffer = builder.tile(graph.label(value), node.results[0].dtype, node.results[0].axes);
  values.define(value, buffer, place);
  // The access to a tile through a view of it: an index per dim, bounds guarded by the view.
  auto through = [&](int tile, const View& view) {
    Access access{tile, {}, {}};
    for (const View::Dim& dim : view.dims) access.index.push_back(builder.index(dim.index));
    for (std::size_t d = 0; d < view.dims.size(); ++d)
      if (leaves(builder.program(), access, static_cast<int>(d)).any())
        access.guarded.push_back(static_cast<int>(d));
    return access;
  };
  const bool scatter =
      std::holds_alternative<Merge>(node.op) || std::holds_alternative<Concat>(node.op);
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const AxisNames axes = builder.tile_axes(graph.type(node.operands[i]).axes);
    const int source = values.on_chip(node.operands[i]);
    if (scatter) {
      auto view = backward_view(graph, number, static_cast<int>(i), whole_view(buffer));
      KRAIT_ASSERT(view, "view ", number, " cannot be written by parts");
      builder.add(place, Copy{builder.vars(axes), through(buffer, *view), builder.access(source), 0,
                              false});
      continue;
    }
    std::vector<std::vector<View>> operands(node.operands.size());
    operands[i] = {whole_view(source)};
    auto views = forward_view(graph, number, operands);
    KRAIT_ASSERT(views && views->size() == 1, "view ", number, " is not affine on chip");
    builder.add(place,
                Copy{builder.vars(builder.tile_axes(node.results[0].axes)), builder.access(buffer),
                     through(source, (*views)[0]), (*views)[0].fill, i > 0});
  }
}

void build_node(Values& values, int number) {
  const Op& op = values.graph().node(number).op;
  if (const auto* map = std::get_if<Map>(&op)) return build_map(values, number, *map);
  if (const auto* contract = std::get_if<Contract>(&op))
    return build_contract(values, number, *contract);
  if (const auto* reduce = std::get_if<Reduce>(&op)) return build_reduce(values, number, *reduce);
  if (const auto* cumsum = std::get_if<Cumsum>(&op)) return build_cumsum(values, number, *cumsum);
  if (const auto* sum = std::get_if<PairSum>(&op)) return build_pair_sum(values, number, *sum);
  if (const auto* scan = std::get_if<Scan>(&op)) return build_scan(values, number, *scan);
  if (is_view(op)) return build_view(values, number);
  throw UsageError(text("a block with a ", name(op), " cannot run on this device yet"));
}

}  // namespace krait
