// A product as a kernel of its own, for machines without a library: every axis is cut into blocks,
// the blocks of free axes are the grid, those of summed axes loops; a block of each operand is
// copied on chip, zeros past the ends, and multiplied there. Sums run in the order in which their
// axes lie in memory, whatever the blocks. Where a part of a summed axis is a grid axis, each part
// gives a partial result.
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

/// The axes as the view walks through memory, those that move furthest first.
AxisNames in_memory_order(AxisNames axes, const View& view) {
  const auto place = [&](const std::string& axis) {
    for (std::size_t d = 0; d < view.dims.size(); ++d)
      for (const auto& [name, factor] : view.dims[d].index.terms)
        if (name == axis && view.dims[d].first >= 0)
          return std::pair(static_cast<std::int64_t>(d), -factor);
    return std::pair(std::int64_t{-1}, std::int64_t{0});
  };
  std::stable_sort(axes.begin(), axes.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return axes;
}

/// Which axes of a product are what, each list in memory order. Columns are those of the operand
/// that has the axis along which results lie side by side.
struct ProductAxes {
  Value left, right;
  AxisNames rows, columns, summed;

  ProductAxes(const Plan& plan, const PlannedKernel& kernel) {
    const Graph& graph = plan.graph;
    const Node& node = graph.node(kernel.nodes.at(0));
    left = node.operands[0], right = node.operands[1];
    const AxisNames result = kernel.stores.empty()
                                 ? node.results[0].axes
                                 : in_memory_order(node.results[0].axes, kernel.stores[0].second);
    if (!result.empty() && contains(graph.type(left).axes, result.back())) std::swap(left, right);
    for (const auto& axis : result)
      (contains(graph.type(left).axes, axis) ? rows : columns).push_back(axis);
    rows = in_memory_order(rows, kernel.loads.at(left)[0]);
    summed = in_memory_order(std::get<Contract>(node.op).sum, kernel.loads.at(left)[0]);
  }
};

class ProductKernel {
 public:
  ProductKernel(const Plan& plan, const PlannedKernel& kernel, const ProductBlocks& blocks)
      : plan_(plan), kernel_(kernel), axes_(plan, kernel), builder_(plan, kernel) {
    program().warps = blocks.warps;
    const bool few = plan.pass == Pass::step;
    const auto room = [&](const AxisNames& axes) {
      const bool dynamic = std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
        return !graph().axis(axis).extent.is_constant();
      });
      return few && dynamic ? step_rows : blocks.free;
    };
    // Blocks of columns follow one another, so that they find the rows' operand in the caches.
    cut(axes_.rows, false, room(axes_.rows));
    cut(axes_.columns, false, room(axes_.columns));
    cut(axes_.summed, true, blocks.sum);
  }

  BuiltKernel run() {
    const AxisNames result = joined(axes_.rows, axes_.columns);
    Mma product;
    product.rows = variables(axes_.rows);
    product.columns = variables(axes_.columns);
    product.sum = variables(axes_.summed);
    product.accumulate = true;
    product.destination = tile("sum", result);
    product.left = operand("left", axes_.left);
    product.right = operand("right", axes_.right);
    const Access sum = product.destination;
    std::vector<Statement> body = copies_;
    body.push_back(std::move(product));
    for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop) {
      loop->body = std::move(body);
      body.clear();
      body.push_back(std::move(*loop));
    }
    const std::vector<int> domain = variables(result);
    body.insert(body.begin(), Fill{domain, sum, 0});
    for (const auto& [value, view] : kernel_.stores)
      body.push_back(Copy{domain, memory(view, true), sum, 0, false});
    for (const Partial& partial : kernel_.partials)
      body.push_back(Copy{domain, partial_memory(partial), sum, 0, false});
    builder_.body({0, false}) = std::move(body);
    return builder_.finish();
  }

 private:
  const Graph& graph() const { return plan_.graph; }
  TileProgram& program() { return builder_.program(); }

  static AxisNames joined(AxisNames a, const AxisNames& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  /// Only the innermost axes are cut into wide blocks: all of them together take up the room.
  void cut(const AxisNames& axes, bool loop, std::int64_t room) {
    for (const auto& axis : axes) blocks_[axis] = {};
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const Extent extent = graph().axis(*axis).extent;
      blocks_[*axis].width = extent.is_constant() ? std::min(extent.offset, room) : room;
      room = std::max<std::int64_t>(1, room / blocks_[*axis].width);
    }
    for (const auto& axis : axes) {
      Block& block = blocks_[axis];
      const Extent count = graph().axis(axis).extent.ceil_div(block.width);
      block.outer =
          program().add_var({axis + "_block", loop ? VarKind::loop : VarKind::grid, count});
      block.inner = program().add_var({axis, VarKind::tile, Extent::constant(block.width)});
      if (loop)
        add_loop(axis, block.outer);
      else
        program().grid.push_back(block.outer);
    }
  }

  void add_loop(const std::string& axis, int var) {
    For loop;
    loop.var = var;
    for (const AxisMapping& mapped : kernel_.mapping)
      if (mapped.axis == axis && mapped.kind == AxisMapping::Kind::blocked) {
        loop.blocks = mapped.blocks;
        loop.block_var =
            program().add_var({mapped.block_axis, VarKind::grid, Extent::constant(mapped.blocks)});
        program().grid.push_back(loop.block_var);
        parts_[axis] = loop.block_var;
      }
    loops_.push_back(std::move(loop));
  }

  std::vector<int> variables(const AxisNames& axes) const {
    std::vector<int> vars;
    for (const auto& axis : axes) vars.push_back(blocks_.at(axis).inner);
    return vars;
  }

  Access tile(const std::string& name, const AxisNames& axes) {
    std::vector<Axis> dims;
    for (const auto& axis : axes) dims.push_back(Axis(axis, blocks_.at(axis).width));
    const DType dtype = graph().node(kernel_.nodes[0]).results[0].dtype;
    Access access{program().add_buffer(on_chip(name, dtype, dims)), {}, {}};
    for (int var : variables(axes)) access.index.push_back(Index::variable(var));
    return access;
  }

  /// A block of it on chip, as it lies in memory, and the copies that bring it there.
  Access operand(const std::string& name, Value value) {
    const std::vector<View>& views = kernel_.loads.at(value);
    const AxisNames axes = in_memory_order(graph().type(value).axes, views[0]);
    const Access made = tile(name, axes);
    for (const View& view : views)
      copies_.push_back(Copy{variables(axes), made, memory(view, false), view.fill, view.keep});
    return made;
  }

  Access memory(const View& view, bool written) {
    Access access = builder_.shape_of(view, written);
    for (const View::Dim& dim : view.dims) {
      Index index = Index::of(dim.index.constant);
      for (const auto& [axis, factor] : dim.index.terms) index = index + position(axis) * factor;
      for (const auto& [extent, factor] : dim.index.sizes)
        index = index + Index::variable(builder_.size_var(extent), factor);
      access.index.push_back(index);
    }
    return access;
  }

  Access partial_memory(const Partial& partial) {
    std::vector<Index> index;
    for (const auto& axis : partial.over) index.push_back(Index::variable(parts_.at(axis)));
    for (const auto& axis : graph().type(partial.value).axes) index.push_back(position(axis));
    return builder_.access(partial.object, index, true);
  }

  Index position(const std::string& axis) const {
    const Block& block = blocks_.at(axis);
    return Index::variable(block.outer, block.width) + Index::variable(block.inner);
  }

  const Plan& plan_;
  const PlannedKernel& kernel_;
  const ProductAxes axes_;
  Builder builder_;
  std::map<std::string, Block> blocks_;
  std::map<std::string, int> parts_;  // variables of parts of summed axes
  std::vector<For> loops_;            // outermost first
  std::vector<Statement> copies_;
};

}  // namespace

ProductBlocks gpu_product_blocks(const Plan& plan, int number, int most_warps) {
  constexpr std::int64_t wide = 128, usual = 64, narrow = 32, sum = 32;
  constexpr std::int64_t enough = 64;     // blocks
  constexpr std::int64_t dynamic = 2048;  // positions of axes whose size is not known yet
  constexpr int wide_warps = 8, usual_warps = 4;
  const PlannedKernel& kernel = plan.kernels.at(static_cast<std::size_t>(number));
  if (kernel.kind != PlannedKernel::Kind::product) return {};
  const bool small = size_in_bytes(plan.graph.type({kernel.nodes[0], 0}).dtype) <= 4;
  // As the host cuts its sums.
  if (plan.schedule.math == MathKind::exact)
    return {small ? narrow : narrow / 2, host_product_blocks.sum,
            std::min(usual_warps, most_warps)};
  if (most_warps < 2) return {narrow, sum, 1};
  const ProductAxes axes(plan, kernel);
  const auto blocks = [&](const AxisNames& names) {
    std::int64_t positions = 1;
    bool open = false;
    for (const auto& axis : names) {
      const Extent& extent = plan.graph.axis(axis).extent;
      open |= !extent.is_constant();
      if (extent.is_constant()) positions *= extent.offset;
    }
    return (positions * (open ? dynamic : 1) + wide - 1) / wide;
  };
  if (small && most_warps >= wide_warps && plan.pass != Pass::step &&
      blocks(axes.rows) * blocks(axes.columns) >= enough)
    return {wide, sum, wide_warps};
  return {usual, sum, std::min(usual_warps, most_warps)};
}

BuiltKernel build_product(const Plan& plan, const PlannedKernel& kernel,
                          const ProductBlocks& blocks) {
  return ProductKernel(plan, kernel, blocks).run();
}

}  // namespace krait
