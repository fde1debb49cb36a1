#include "dsl/evaluate_array.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait::evaluation {

std::int64_t Space::size(const std::string& axis) const {
  auto found = known_.find(axis);
  if (found != known_.end()) return found->second;
  const Extent& extent = graph_.axis(axis).extent;
  const std::int64_t size = extent.value(sizes_);
  KRAIT_REQUIRE(size >= 0, "axis ", axis, " of extent ", extent.text(), " has size ", size,
                " with these inputs; allowed: 0 and up");
  known_.emplace(axis, size);
  return size;
}

Dims Space::shape(const AxisNames& axes) const {
  Dims sizes;
  for (const auto& axis : axes) sizes.push_back(size(axis));
  return sizes;
}

std::int64_t Array::count() const {
  std::int64_t total = 1;
  for (auto size : shape) total *= size;
  return total;
}

std::int64_t Array::stride(const std::string& axis) const {
  std::int64_t stride = 1;
  for (std::size_t d = axes.size(); d-- > 0;) {
    if (axes[d] == axis) return stride;
    stride *= shape[d];
  }
  return 0;
}

Dims Array::strides(const AxisNames& over) const {
  Dims strides;
  for (const auto& axis : over) strides.push_back(stride(axis));
  return strides;
}

Array make_array(const Space& space, const AxisNames& axes) {
  Array array{axes, space.shape(axes), nullptr};
  array.data = std::make_shared_for_overwrite<double[]>(static_cast<std::size_t>(array.count()));
  return array;
}

Array filled(const Space& space, const AxisNames& axes, double value) {
  Array array = make_array(space, axes);
  std::fill_n(array.begin(), array.count(), value);
  return array;
}

Array scalar_array(double value) { return {{}, {}, std::make_shared<double[]>(1, value)}; }

void copy_block(const Dims& shape, double* target, const Dims& target_strides, const double* source,
                const Dims& source_strides) {
  for_each_row<2>(shape, {target_strides, source_strides},
                  [&](const auto& at, std::int64_t length, const auto& step) {
                    double* to = target + at[0];
                    const double* from = source + at[1];
                    if (step[0] == 1 && step[1] == 1) {
                      std::copy_n(from, length, to);
                    } else {
                      for (std::int64_t i = 0; i < length; ++i) to[i * step[0]] = from[i * step[1]];
                    }
                  });
}

Array arranged(const Space& space, const Array& x, const AxisNames& axes) {
  if (x.axes == axes) return x;
  KRAIT_ASSERT(without(x.axes, axes).empty(), "an axis would be lost");
  Array result = make_array(space, axes);
  copy_block(result.shape, result.begin(), result.strides(axes), x.begin(), x.strides(axes));
  return result;
}

}  // namespace krait::evaluation
