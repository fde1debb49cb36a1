#include "runtime/gemm_calls.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "dsl/error.h"
#include "schedules/fuse_bias.h"

namespace krait {
namespace {

/// A multiplication of fewer than this many numbers is not worth a call.
constexpr std::int64_t least_work = 16 * 16 * 16;

/// How one of the three tensors lies along the axes of the product.
struct Side {
  const View* view = nullptr;
  std::int64_t offset = 0;
  std::map<std::string, std::int64_t> strides;  // axes that it has

  std::int64_t stride(const std::string& axis) const {
    auto found = strides.find(axis);
    return found == strides.end() ? 0 : found->second;
  }
};

const Contract& contract_of(const Plan& plan, const PlannedKernel& kernel) {
  return std::get<Contract>(plan.graph.node(kernel.nodes.at(0)).op);
}

/// Whether no position of the axes gives an index outside of the dim, whatever the sizes.
bool stays_inside(const Graph& graph, const View::Dim& dim) {
  if (!dim.index.sizes.empty()) return false;
  std::int64_t most = dim.index.constant;
  std::int64_t least = dim.index.constant;
  for (const auto& [axis, factor] : dim.index.terms) {
    const Extent extent = graph.axis(axis).extent;
    if (!extent.is_constant())
      return dim.index.terms.size() == 1 && factor == 1 && dim.index.constant == 0 &&
             extent == dim.extent;
    (factor > 0 ? most : least) += factor * (extent.offset - 1);
  }
  return least >= 0 && dim.extent.is_constant() && most < dim.extent.offset;
}

Side side_of(const Plan& plan, const View& view, Value value, const Sizes& sizes,
             const ObjectStrides& strides) {
  Side side;
  side.view = &view;
  for (const auto& axis : plan.graph.type(value).axes) side.strides[axis] = 0;
  for (const View::Dim& dim : view.dims) {
    if (dim.first < 0) continue;  // moves nowhere
    const std::int64_t stride = strides[view.object][dim.last];
    side.offset += dim.index.constant * stride;
    for (const auto& [extent, factor] : dim.index.sizes)
      side.offset += extent.value(sizes) * factor * stride;
    for (const auto& [axis, factor] : dim.index.terms) side.strides[axis] += factor * stride;
  }
  return side;
}

/// Positions of one or several axes that lie evenly in both tensors that have them.
struct Run {
  std::int64_t size = 1, first = 0, second = 0;  // strides in the one and in the other tensor
};

/// Joins axes that are one run in both tensors; runs of one position go.
std::vector<Run> runs_of(std::vector<Run> axes) {
  std::sort(axes.begin(), axes.end(), [](const Run& a, const Run& b) { return a.first > b.first; });
  std::vector<Run> runs;
  for (const Run& axis : axes) {
    if (axis.size == 1) continue;
    if (!runs.empty() && runs.back().first == axis.first * axis.size &&
        runs.back().second == axis.second * axis.size)
      runs.back() = {runs.back().size * axis.size, axis.first, axis.second};
    else
      runs.push_back(axis);
  }
  return runs;
}

struct Matrix {
  bool transposed = false;
  std::int64_t row_length = 1;  // from one row in memory to the next
};

/// The longest row of a matrix that the interface of a BLAS can express.
constexpr std::int64_t longest_row = std::numeric_limits<std::int32_t>::max();

/// `rows` by `columns` positions with these strides as a matrix in row-major order, or as the
/// transposed of one.
std::optional<Matrix> matrix_of(std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
                                std::int64_t column_stride) {
  if ((columns == 1 || column_stride == 1) &&
      (rows == 1 || (row_stride >= columns && row_stride <= longest_row)))
    return Matrix{false, rows == 1 ? columns : row_stride};
  if ((rows == 1 || row_stride == 1) &&
      (columns == 1 || (column_stride >= rows && column_stride <= longest_row)))
    return Matrix{true, columns == 1 ? rows : column_stride};
  return std::nullopt;
}

/// Rows and columns of the result and what is summed over, one run each.
std::optional<GemmShape> shape_of(const Run& rows, const Run& columns, const Run& sum,
                                  bool& swapped) {
  const auto a = matrix_of(rows.size, rows.first, sum.size, sum.first);
  const auto b = matrix_of(sum.size, sum.second, columns.size, columns.first);
  const auto c = matrix_of(rows.size, rows.second, columns.size, columns.second);
  if (!a || !b || !c) return std::nullopt;
  GemmShape shape;
  shape.k = sum.size;
  shape.ldc = c->row_length;
  swapped = c->transposed;
  if (!swapped) {
    shape.m = rows.size;
    shape.n = columns.size;
    shape.transpose_a = a->transposed;
    shape.transpose_b = b->transposed;
    shape.lda = a->row_length;
    shape.ldb = b->row_length;
  } else {  // the transposed product: operands change places and are transposed
    shape.m = columns.size;
    shape.n = rows.size;
    shape.transpose_a = !b->transposed;
    shape.transpose_b = !a->transposed;
    shape.lda = b->row_length;
    shape.ldb = a->row_length;
  }
  return shape;
}

/// The run with the number, or a single position.
Run pick(const std::vector<Run>& runs, std::size_t number) {
  return number < runs.size() ? runs[number] : Run{};
}

}  // namespace

GemmCalls gemm_calls(const Plan& plan, const PlannedKernel& kernel, const Sizes& sizes,
                     const ObjectStrides& strides) {
  const Graph& graph = plan.graph;
  const Node& node = graph.node(kernel.nodes.at(0));
  const Value left_value = node.operands[0], right_value = node.operands[1];
  const auto& [result_value, result_view] = kernel.stores.at(0);
  Side left = side_of(plan, kernel.loads.at(left_value).at(0), left_value, sizes, strides);
  Side right = side_of(plan, kernel.loads.at(right_value).at(0), right_value, sizes, strides);
  const Side result = side_of(plan, result_view, result_value, sizes, strides);

  std::vector<Run> row_axes, column_axes, sum_axes;
  GemmCalls calls;
  auto size = [&](const std::string& axis) { return graph.axis(axis).extent.value(sizes); };
  for (const auto& [axis, stride] : result.strides) {
    const bool in_left = left.strides.count(axis) != 0, in_right = right.strides.count(axis) != 0;
    if (in_left && in_right)
      calls.loops.push_back({size(axis), left.stride(axis), right.stride(axis), stride, false});
    else if (in_left)
      row_axes.push_back({size(axis), left.stride(axis), stride});
    else
      column_axes.push_back({size(axis), right.stride(axis), stride});
  }
  for (const auto& axis : contract_of(plan, kernel).sum)
    sum_axes.push_back({size(axis), left.stride(axis), right.stride(axis)});
  const std::vector<Run> rows = runs_of(row_axes), columns = runs_of(column_axes),
                         sums = runs_of(sum_axes);

  // The largest product that is one of matrices; a single position always is.
  std::size_t chosen[3] = {rows.size(), columns.size(), sums.size()};
  std::int64_t most = 0;
  bool swapped = false;
  for (std::size_t r = 0; r <= rows.size(); ++r)
    for (std::size_t c = 0; c <= columns.size(); ++c)
      for (std::size_t s = 0; s <= sums.size(); ++s) {
        bool swap = false;
        const auto shape = shape_of(pick(rows, r), pick(columns, c), pick(sums, s), swap);
        if (!shape || shape->m * shape->n * shape->k <= most) continue;
        most = shape->m * shape->n * shape->k;
        calls.shape = *shape;
        swapped = swap;
        chosen[0] = r;
        chosen[1] = c;
        chosen[2] = s;
      }
  KRAIT_ASSERT(most > 0, kernel.name, " has no matrix");
  // Loops over sums come first, so that what is added to an element of c follows at once.
  std::vector<GemmCalls::Loop> loops;
  for (std::size_t s = 0; s < sums.size(); ++s)
    if (s != chosen[2]) loops.push_back({sums[s].size, sums[s].first, sums[s].second, 0, true});
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (r != chosen[0]) loops.push_back({rows[r].size, rows[r].first, 0, rows[r].second, false});
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (c != chosen[1])
      loops.push_back({columns[c].size, 0, columns[c].first, columns[c].second, false});
  for (const GemmCalls::Loop& loop : calls.loops)
    if (loop.count > 1) loops.push_back(loop);

  calls.loops = std::move(loops);
  calls.dtype = graph.type(result_value).dtype;
  calls.a = left.view->object;
  calls.b = right.view->object;
  calls.c = result.view->object;
  calls.a_offset = left.offset;
  calls.b_offset = right.offset;
  calls.c_offset = result.offset;
  if (swapped) {
    std::swap(calls.a, calls.b);
    std::swap(calls.a_offset, calls.b_offset);
    for (GemmCalls::Loop& loop : calls.loops) std::swap(loop.a, loop.b);
  }
  if (kernel.nodes.size() == 2) {
    const Value vector = bias_of(graph, kernel);
    const Side bias = side_of(plan, kernel.loads.at(vector).at(0), vector, sizes, strides);
    KRAIT_ASSERT(!swapped && calls.shape.n == size(graph.type(vector).axes.at(0)), kernel.name,
                 " has other columns than its bias");
    calls.bias = bias.view->object;
    calls.bias_offset = bias.offset;
  }
  return calls;
}

bool fits_library(const Plan& plan, const PlannedKernel& kernel) {
  const Graph& graph = plan.graph;
  const Node& node = graph.node(kernel.nodes.at(0));
  const DType dtype = node.results[0].dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return false;
  if (node.operands.size() != 2 || node.operands[0] == node.operands[1]) return false;
  if (kernel.stores.size() != 1) return false;
  std::vector<std::pair<Value, const View*>> views = {
      {kernel.stores[0].first, &kernel.stores[0].second}};
  for (Value operand : node.operands) {
    const auto loaded = kernel.loads.find(operand);
    if (loaded == kernel.loads.end() || loaded->second.size() != 1) return false;
    views.push_back({operand, &loaded->second[0]});
  }
  for (const auto& [value, view] : views) {
    if (plan.objects[view->object].dtype != dtype) return false;
    for (const View::Dim& dim : view->dims)
      if (!stays_inside(graph, dim)) return false;
  }
  const AxisNames &left = graph.type(node.operands[0]).axes,
                  &right = graph.type(node.operands[1]).axes;
  for (const auto& axis : contract_of(plan, kernel).sum)
    if (!contains(left, axis) || !contains(right, axis)) return false;
  // With dense tensors of ordinary sizes.
  Sizes sizes;
  for (const Axis& axis : graph.axes())
    if (!axis.extent.is_constant()) sizes[axis.extent.symbol] = 64;
  ObjectStrides strides;
  for (const MemoryObject& object : plan.objects) {
    std::vector<std::int64_t> dense(object.dims.size(), 1);
    for (std::size_t d = object.dims.size(); d-- > 1;)
      dense[d - 1] = dense[d] * object.dims[d].extent.value(sizes);
    strides.push_back(std::move(dense));
  }
  const GemmShape shape = gemm_calls(plan, kernel, sizes, strides).shape;
  return shape.m * shape.n * shape.k >= least_work;
}

}  // namespace krait
