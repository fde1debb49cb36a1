// Dense arrays over named axes and the one strided loop that `evaluate` is made of. Internal to it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsl/graph.h"

namespace krait::evaluation {

using Dims = std::vector<std::int64_t>;

/// Sizes of the axes of one graph for one set of inputs.
class Space {
 public:
  Space(const Graph& graph, Sizes sizes) : graph_(graph), sizes_(std::move(sizes)) {}
  const Graph& graph() const { return graph_; }
  std::int64_t size(const std::string& axis) const;
  std::int64_t value(const Extent& extent) const { return extent.value(sizes_); }
  Dims shape(const AxisNames& axes) const;

 private:
  const Graph& graph_;
  Sizes sizes_;
  mutable std::unordered_map<std::string, std::int64_t> known_;
};

/// Row-major over `axes`. Copies share the data; an array is written only while it is made.
struct Array {
  AxisNames axes;
  Dims shape;
  std::shared_ptr<double[]> data;

  std::int64_t count() const;
  /// Elements from one position to the next along `axis`; 0 where the array does not vary with it,
  /// which is all there is to broadcasting.
  std::int64_t stride(const std::string& axis) const;
  Dims strides(const AxisNames& over) const;
  double* begin() const { return data.get(); }
};

/// Not initialised.
Array make_array(const Space& space, const AxisNames& axes);
Array filled(const Space& space, const AxisNames& axes, double value);
/// Of no axes: the same everywhere.
Array scalar_array(double value);

/// Visits every position of `shape`, a row of the innermost dimension at a time, for N arrays with
/// the given strides: body(offsets, length, steps), where offsets are those of the first element of
/// the row and steps lead from one element to the next. Dimensions that all arrays pass through
/// evenly are joined, so that rows are long.
template <std::size_t N, typename Body>
void for_each_row(const Dims& shape, const std::array<Dims, N>& strides, Body body) {
  Dims sizes;
  std::vector<std::array<std::int64_t, N>> steps;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return;
    if (shape[d] == 1) continue;
    std::array<std::int64_t, N> step;
    bool joins = !sizes.empty();
    for (std::size_t i = 0; i < N; ++i) {
      step[i] = strides[i][d];
      joins = joins && steps.back()[i] == step[i] * shape[d];
    }
    if (joins) {
      sizes.back() *= shape[d];
      steps.back() = step;
    } else {
      sizes.push_back(shape[d]);
      steps.push_back(step);
    }
  }
  std::array<std::int64_t, N> offsets{};
  if (sizes.empty()) {
    body(offsets, std::int64_t{1}, std::array<std::int64_t, N>{});
    return;
  }
  const int last = static_cast<int>(sizes.size()) - 1;
  Dims at(sizes.size(), 0);
  for (;;) {
    body(offsets, sizes[last], steps[last]);
    int d = last - 1;
    for (; d >= 0; --d) {
      for (std::size_t i = 0; i < N; ++i) offsets[i] += steps[d][i];
      if (++at[d] < sizes[d]) break;
      for (std::size_t i = 0; i < N; ++i) offsets[i] -= steps[d][i] * sizes[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

/// Copies a block of `shape` from `source` to `target`, each from an offset with strides.
void copy_block(const Dims& shape, double* target, const Dims& target_strides, const double* source,
                const Dims& source_strides);

/// `x` with its axes in the order of `axes`, broadcast along those that it lacks; `x` itself where
/// that is its order already.
Array arranged(const Space& space, const Array& x, const AxisNames& axes);

}  // namespace krait::evaluation
