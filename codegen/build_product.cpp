// A product as a kernel of its own, for machines without a library: every axis is cut into blocks,
// the blocks of free axes are the grid, those of summed axes loops; a block of each operand is
// copied on chip, zeros past the ends, and multiplied there.
#include <algorithm>

#include "codegen/build_ops.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// A step has as many rows as there are sequences: few.
constexpr std::int64_t step_rows = 8;

struct Block {
  int outer = -1, inner = -1;  // variables: position = outer * width + inner
  std::int64_t width = 1;
};

}  // namespace

BuiltKernel build_product(const Plan& plan, const PlannedKernel& kernel, std::int64_t block_size) {
  const Graph& graph = plan.graph;
  const int number = kernel.nodes.at(0);
  const Node& node = graph.node(number);
  const AxisNames& summed = std::get<Contract>(node.op).sum;
  const AxisNames& left = graph.type(node.operands[0]).axes;
  const AxisNames& right = graph.type(node.operands[1]).axes;
  Builder builder(plan, kernel);
  TileProgram& program = builder.program();

  std::map<std::string, Block> blocks;
  std::vector<int> loops;
  auto cut = [&](const AxisNames& axes, bool loop, std::int64_t room) {
    // Only the widest axis of a group is cut into wide blocks: the block of the group stays small.
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const Extent extent = graph.axis(*axis).extent;
      Block block;
      block.width = extent.is_constant() ? std::min(extent.offset, room) : room;
      room = std::max<std::int64_t>(1, room / block.width);
      block.outer = program.add_var(
          {*axis + "_block", loop ? VarKind::loop : VarKind::grid, extent.ceil_div(block.width)});
      block.inner = program.add_var({*axis, VarKind::tile, Extent::constant(block.width)});
      (loop ? loops : program.grid).push_back(block.outer);
      blocks[*axis] = block;
    }
  };
  AxisNames rows;
  AxisNames columns;
  for (const auto& axis : node.results[0].axes)
    (contains(left, axis) ? rows : columns).push_back(axis);
  const bool few = plan.pass == Pass::step;
  auto is_dynamic = [&](const std::string& axis) { return !graph.axis(axis).extent.is_constant(); };
  const bool dynamic_columns = std::any_of(columns.begin(), columns.end(), is_dynamic);
  cut(rows, false, few && !dynamic_columns ? step_rows : block_size);
  cut(columns, false, few && dynamic_columns ? step_rows : block_size);
  cut(summed, true, block_size);

  auto variables = [&](const AxisNames& axes) {
    std::vector<int> vars;
    for (const auto& axis : axes) vars.push_back(blocks.at(axis).inner);
    return vars;
  };
  auto tile = [&](const std::string& name, const AxisNames& axes) {
    std::vector<Axis> dims;
    for (const auto& axis : axes) dims.push_back(Axis(axis, blocks.at(axis).width));
    const int buffer = program.add_buffer(on_chip(name, node.results[0].dtype, dims));
    Access access{buffer, {}, {}};
    for (int var : variables(axes)) access.index.push_back(Index::variable(var));
    return access;
  };
  auto memory = [&](const View& view, bool written) {
    Access access = builder.shape_of(view, written);
    for (std::size_t d = 0; d < view.dims.size(); ++d) {
      Index index = Index::of(view.dims[d].index.constant);
      for (const auto& [axis, factor] : view.dims[d].index.terms) {
        const Block& block = blocks.at(axis);
        index = index + Index::variable(block.outer, factor * block.width) +
                Index::variable(block.inner, factor);
      }
      for (const auto& [extent, factor] : view.dims[d].index.sizes)
        index = index + Index::variable(builder.size_var(extent), factor);
      access.index.push_back(index);
    }
    return access;
  };

  Mma product;
  product.rows = variables(rows);
  product.columns = variables(columns);
  product.sum = variables(summed);
  product.accumulate = true;
  product.destination = tile("sum", node.results[0].axes);
  product.left = tile("left", left);
  product.right = tile("right", right);
  std::vector<Statement> body;
  for (int side : {0, 1})
    for (const View& view : kernel.loads.at(node.operands[side]))
      body.push_back(Copy{variables(side == 0 ? left : right),
                          side == 0 ? product.left : product.right, memory(view, false), view.fill,
                          view.keep});
  const Access sum = product.destination;
  body.push_back(std::move(product));
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    For statement;
    statement.var = *loop;
    statement.body = std::move(body);
    body.clear();
    body.push_back(std::move(statement));
  }
  const std::vector<int> domain = variables(node.results[0].axes);
  body.insert(body.begin(), Fill{domain, sum, 0});
  for (const auto& [value, view] : kernel.stores)
    body.push_back(Copy{domain, memory(view, true), sum, 0, false});
  builder.body({0, false}) = std::move(body);
  return builder.finish();
}

}  // namespace krait
