#include "codegen/passes/block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dsl/error.h"

namespace krait {
namespace {

/// Elements from one value of `var` to the next; on chip, so that strides are constants.
std::int64_t stride_of(const TileProgram& program, const Access& access, int var) {
  const Buffer& buffer = program.buffers[access.buffer];
  std::int64_t stride = 0;
  for (std::size_t d = 0; d < access.index.size(); ++d)
    stride += access.index[d].factor_of(var) * buffer.dims[d].stride.constant;
  return stride;
}

}  // namespace

MmaBlocking choose_blocking(std::int64_t rows, std::int64_t columns, std::int64_t sum, int lanes,
                            const VectorTarget& target) {
  const std::int64_t vectors = (columns + lanes - 1) / lanes;
  // Cycles of one block for one step of the sum, plus its share of starting and storing.
  auto block = [&](std::int64_t r, std::int64_t v) {
    if (r == 0 || v == 0) return 0.0;
    const double work =
        std::max({0.5 * static_cast<double>(r * v), 0.5 * static_cast<double>(r + v), 4.0});
    return work * static_cast<double>(sum) + 2.0 * static_cast<double>(r * v) + 6;
  };
  MmaBlocking best;
  double least = std::numeric_limits<double>::infinity();
  for (int v = 1; v <= 4 && v <= vectors; ++v) {
    for (int r = 1; r <= 14 && r <= rows; ++r) {
      if (r * v + v + 1 > target.vector_registers) continue;
      const std::int64_t whole_rows = rows / r, whole_vectors = vectors / v;
      const double cost = static_cast<double>(whole_vectors) *
                              (static_cast<double>(whole_rows) * block(r, v) + block(rows % r, v)) +
                          static_cast<double>(whole_rows) * block(r, vectors % v) +
                          block(rows % r, vectors % v);
      // A hair more for every further variant of the block, which costs compile time.
      const double variants = (rows % r != 0 ? 1.005 : 1.0) * (vectors % v != 0 ? 1.005 : 1.0);
      if (cost * variants < least) least = cost * variants, best = {r, v};
    }
  }
  return best;
}

MmaAxis choose_axis(const TileProgram& program, const Mma& mma, const VectorTarget& target,
                    bool may_pack) {
  const int lanes =
      target.lanes(size_in_bytes(accumulator(program.buffers[mma.destination.buffer].dtype)));
  double results = 1, sum = 1;
  auto size = [&](int var) { return static_cast<double>(program.vars[var].extent.offset); };
  for (const auto* list : {&mma.batch, &mma.rows, &mma.columns})
    for (int var : *list) results *= size(var);
  for (int var : mma.sum) sum *= size(var);

  MmaAxis best;
  best.cost = std::numeric_limits<double>::infinity();
  for (bool in_rows : {false, true}) {
    const Access& operand = in_rows ? mma.left : mma.right;
    double elements = 1;
    for (const auto* list : {&mma.batch, &mma.rows, &mma.columns, &mma.sum})
      for (int var : *list)
        if (stride_of(program, operand, var) != 0) elements *= size(var);
    for (int var : in_rows ? mma.rows : mma.columns) {
      const double extent = size(var);
      if (extent == 1) continue;
      MmaAxis axis{var, in_rows, stride_of(program, operand, var) == 1, 0};
      if (!axis.packed && !may_pack) continue;
      const double rounds = std::ceil(extent / lanes) / extent;  // vectors for each element
      axis.cost = results * sum * rounds * 0.6;
      if (!axis.packed) axis.cost += elements * std::min(1.0, 6.0 / lanes + rounds);
      const bool contiguous = stride_of(program, mma.destination, var) == 1;
      axis.cost += results * (contiguous ? 2 * rounds : 3.0);
      if (axis.cost < best.cost) best = axis;
    }
  }
  return best;
}

}  // namespace krait
