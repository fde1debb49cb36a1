// Contract and Reduce. A Contract goes pair by pair, the smallest intermediate first; a pair with
// an axis to sum is a batch of matrix products over packed copies.
#include <algorithm>
#include <limits>

#include "dsl/error.h"
#include "dsl/evaluate_ops.h"

namespace krait::evaluation {
namespace {

double product(const Space& space, const AxisNames& axes) {
  double count = 1;
  for (const auto& axis : axes) count *= static_cast<double>(space.size(axis));
  return count;
}

AxisNames joined(AxisNames a, const AxisNames& b) {
  for (const auto& axis : b)
    if (!contains(a, axis)) a.push_back(axis);
  return a;
}

AxisNames common(const AxisNames& a, const AxisNames& b) { return without(a, without(a, b)); }

double dot(const double* a, const double* b, std::int64_t count) {
  double sums[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  double total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

// out[columns] += a[terms] * b[terms][columns].
void add_products(double* out, const double* a, const double* b, std::int64_t terms,
                  std::int64_t columns) {
  std::int64_t k = 0;
  for (; k + 4 <= terms; k += 4) {
    const double *b0 = b + k * columns, *b1 = b0 + columns, *b2 = b1 + columns, *b3 = b2 + columns;
    for (std::int64_t j = 0; j < columns; ++j)
      out[j] += (a[k] * b0[j] + a[k + 1] * b1[j]) + (a[k + 2] * b2[j] + a[k + 3] * b3[j]);
  }
  for (; k < terms; ++k)
    for (std::int64_t j = 0; j < columns; ++j) out[j] += a[k] * b[k * columns + j];
}

// The product of a and b summed over `sum`, all of which both have.
Array contract_pair(const Space& space, Array a, Array b, const AxisNames& sum) {
  if (sum.empty()) {
    AxisNames axes = space.graph().sorted(joined(a.axes, b.axes));
    return apply(space, ScalarOp::mul, axes, std::move(a), b, scalar_array(0));
  }
  const AxisNames batch = without(common(a.axes, b.axes), sum);
  AxisNames rows = without(a.axes, b.axes), columns = without(b.axes, a.axes);
  // The innermost loop runs over columns, so they should be many.
  if (product(space, rows) > product(space, columns)) {
    std::swap(a, b);
    std::swap(rows, columns);
  }
  const auto size = [&](const AxisNames& axes) {
    return static_cast<std::int64_t>(product(space, axes));
  };
  const std::int64_t batches = size(batch), m = size(rows), k = size(sum), n = size(columns);
  a = arranged(space, a, joined(joined(batch, rows), sum));
  b = arranged(space, b, joined(joined(batch, sum), columns));
  Array out = filled(space, joined(joined(batch, rows), columns), 0);
  for (std::int64_t i = 0; i < batches; ++i) {
    const double* right = b.begin() + i * k * n;
    for (std::int64_t r = 0; r < m; ++r) {
      const double* left = a.begin() + (i * m + r) * k;
      double* to = out.begin() + (i * m + r) * n;
      if (n == 1)
        *to = dot(left, right, k);
      else
        add_products(to, left, right, k, n);
    }
  }
  return out;
}

}  // namespace

Array summed(const Space& space, const Array& x, const AxisNames& axes) {
  if (axes.empty()) return x;
  Array out = filled(space, without(x.axes, axes), 0);
  for_each_row<2>(x.shape, {out.strides(x.axes), x.strides(x.axes)},
                  [&](const auto& at, std::int64_t length, const auto& step) {
                    double* to = out.begin() + at[0];
                    const double* from = x.begin() + at[1];
                    for (std::int64_t i = 0; i < length; ++i) to[i * step[0]] += from[i * step[1]];
                  });
  return out;
}

Array run(const Contract& op, Call& call) {
  const Space& space = call.space;
  std::vector<Array> parts = std::move(call.operands);
  // How many of the parts have the axis, not counting parts `i` and `j`.
  const auto holders = [&](const std::string& axis, std::size_t i, std::size_t j) {
    int count = 0;
    for (std::size_t p = 0; p < parts.size(); ++p)
      if (p != i && p != j && contains(parts[p].axes, axis)) ++count;
    return count;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    AxisNames alone;
    for (const auto& axis : common(parts[i].axes, op.sum))
      if (holders(axis, i, i) == 0) alone.push_back(axis);
    parts[i] = summed(space, parts[i], alone);
  }
  while (parts.size() > 1) {
    std::size_t first = 0, second = 1;
    AxisNames sum;
    double least_size = std::numeric_limits<double>::infinity(), least_work = least_size;
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t j = i + 1; j < parts.size(); ++j) {
        AxisNames gone;
        for (const auto& axis : common(common(parts[i].axes, parts[j].axes), op.sum))
          if (holders(axis, i, j) == 0) gone.push_back(axis);
        const AxisNames all = joined(parts[i].axes, parts[j].axes);
        const double size = product(space, without(all, gone)), work = product(space, all);
        if (size > least_size || (size == least_size && work >= least_work)) continue;
        first = i, second = j, sum = gone;
        least_size = size, least_work = work;
      }
    Array a = std::move(parts[first]), b = std::move(parts[second]);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(second));
    parts[first] = contract_pair(space, std::move(a), std::move(b), sum);
  }
  return arranged(space, parts[0], call.axes());
}

Array run(const Reduce& op, Call& call) {
  const Array& x = call.operands[0];
  if (op.kind == Reduce::Kind::sum) return summed(call.space, x, op.axes);
  Array out = filled(call.space, call.axes(), -std::numeric_limits<double>::infinity());
  for_each_row<2>(x.shape, {out.strides(x.axes), x.strides(x.axes)},
                  [&](const auto& at, std::int64_t length, const auto& step) {
                    for (std::int64_t i = 0; i < length; ++i) {
                      double& to = out.data[at[0] + i * step[0]];
                      to = apply_scalar(ScalarOp::max, to, x.data[at[1] + i * step[1]], 0);
                    }
                  });
  return out;
}

}  // namespace krait::evaluation
