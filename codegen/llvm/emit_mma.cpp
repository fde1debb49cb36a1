// Mma: blocks of rows x vectors of columns whose results stay in registers while the sum runs, in
// ascending order of the summed variables. Where the pass that packs chose a row variable for the
// vectors, left and right change roles. Without any contiguous variable it runs lane by lane.
#include <algorithm>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/passes/block.h"

namespace krait {

struct KernelEmitter::Product {
  KernelEmitter& e;
  ir::Builder& b;
  Operand destination, scalars, vectors;  // `scalars` gives one element a row, splat over lanes
  Nest rows, columns, sum;
  int row = -1, column = -1;  // the blocked variables; row -1: none
  int width = 1;
  bool accumulate = false;
  std::string element;

  /// Rows `row` on, `r` of them; columns `column` on, `v` vectors of which the last has `valid`
  /// lanes (0: all).
  void block(int r, int v, int valid) {
    const Val first_row = row >= 0 ? e.values_.at(row) : Val{};
    const Val first_column = column >= 0 ? e.values_.at(column) : Val{};
    auto lanes = [&](int j) { return Lanes{width, column, j == v - 1 ? valid : 0}; };
    auto at_row = [&](int i) {
      if (row >= 0) e.values_[row] = b.add(first_row, ir::i64(i));
    };
    auto at_column = [&](int j) {
      if (column >= 0)
        e.values_[column] = b.add(first_column, ir::i64(static_cast<std::int64_t>(j) * width));
    };
    std::vector<Val> initial(static_cast<std::size_t>(r) * v,
                             ir::zero(ir::vector_type(element, width)));
    auto totals = e.carried_loops(sum, sum.vars, initial, [&](std::vector<Val> sums) {
      std::vector<Val> right;
      for (int j = 0; j < v; ++j) {
        at_column(j);
        right.push_back(e.convert(e.load(vectors, lanes(j)), element, width));
      }
      at_column(0);
      for (int i = 0; i < r; ++i) {
        at_row(i);
        Val left = b.splat(e.convert(e.load(scalars, Lanes{}), element, 1), width);
        for (int j = 0; j < v; ++j) {
          Val& total = sums[static_cast<std::size_t>(i) * v + j];
          total = b.intrinsic("fma", {left, right[j], total});
        }
      }
      at_row(0);
      return sums;
    });
    for (int i = 0; i < r; ++i) {
      at_row(i);
      for (int j = 0; j < v; ++j) {
        at_column(j);
        Val total = totals[static_cast<std::size_t>(i) * v + j];
        if (accumulate) {
          Val old = e.convert(e.load(destination, lanes(j)), element, width);
          total = b.binary("fadd", old, total);
        }
        e.store(destination, lanes(j), total);
      }
    }
    if (row >= 0) e.values_[row] = first_row;
    if (column >= 0) e.values_[column] = first_column;
  }

  /// Blocks of `size` along `var` and one for the rest; f(position, how many).
  template <typename Function>
  void blocks(int var, std::int64_t extent, std::int64_t size, const Function& f) {
    if (var < 0) {
      f(1);
      return;
    }
    const std::int64_t whole = extent / size * size;
    if (whole == size) {
      e.with(var, ir::i64(0), [&] { f(size); });
    } else if (whole > 0) {
      auto loop = b.begin_loop(ir::i64(0), ir::i64(whole), size);
      e.with(var, loop.index, [&] { f(size); });
      b.end_loop(loop);
    }
    if (whole < extent) e.with(var, ir::i64(whole), [&] { f(extent - whole); });
  }

  void run() {
    std::int64_t terms = 1;
    for (int var : sum.vars) terms *= sum.extent(var);
    const std::int64_t row_count = row >= 0 ? rows.extent(row) : 1;
    const std::int64_t column_count = column >= 0 ? columns.extent(column) : 1;
    const MmaBlocking blocking = choose_blocking(row_count, column_count, terms, width, e.target_);
    blocks(column, column_count, static_cast<std::int64_t>(blocking.vectors) * width,
           [&](std::int64_t some_columns) {
             const int v = static_cast<int>((some_columns + width - 1) / width);
             const int valid = static_cast<int>(some_columns % width);
             blocks(row, row_count, blocking.rows,
                    [&](std::int64_t some_rows) { block(static_cast<int>(some_rows), v, valid); });
           });
  }
};

void KernelEmitter::emit(const Mma& s) {
  std::vector<int> own;
  for (const auto* list : {&s.batch, &s.rows, &s.columns, &s.sum})
    own.insert(own.end(), list->begin(), list->end());
  const MmaAxis axis = choose_axis(program_, s, target_, false);
  const DType dtype = accumulator(program_.buffers[s.destination.buffer].dtype);
  Product product{*this,
                  b_,
                  operand(s.destination, own),
                  operand(axis.in_rows ? s.right : s.left, own),
                  operand(axis.in_rows ? s.left : s.right, own),
                  nest(axis.in_rows ? s.columns : s.rows),
                  nest(axis.in_rows ? s.rows : s.columns),
                  nest(s.sum),
                  -1,
                  axis.var,
                  axis.var >= 0 ? target_.lanes(size_in_bytes(dtype)) : 1,
                  s.accumulate,
                  register_element(dtype)};
  Nest batch = nest(s.batch);
  merge(batch, {&product.destination, &product.scalars, &product.vectors}, {});
  merge(product.rows, {&product.destination, &product.scalars}, {});
  merge(product.columns, {&product.destination, &product.vectors}, {});
  merge(product.sum, {&product.scalars, &product.vectors}, {}, true);

  auto largest = [](const Nest& nest) {
    int best = -1;
    for (int var : nest.vars)
      if (best < 0 || nest.extent(var) > nest.extent(best)) best = var;
    return best;
  };
  // A merge leaves the contiguous variable in place, as the innermost of its group.
  if (product.column < 0) product.column = largest(product.columns);
  product.row = largest(product.rows);
  std::vector<int> outer = outer_order(batch, -1, product.destination);
  Nest all = batch;
  for (const auto& [nest, blocked] :
       {std::pair{&product.columns, product.column}, std::pair{&product.rows, product.row}}) {
    all.extents.insert(nest->extents.begin(), nest->extents.end());
    for (int var : nest->vars)
      if (var != blocked) outer.push_back(var);
  }
  loops(all, outer, [&] { product.run(); });
}

}  // namespace krait
