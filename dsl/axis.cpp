#include "dsl/axis.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait {
namespace {
std::int64_t ceil_of(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
}  // namespace

std::int64_t Extent::value(const Sizes& sizes) const {
  if (is_constant()) return offset;
  auto found = sizes.find(symbol);
  KRAIT_REQUIRE(found != sizes.end(), "the size of axis ", symbol, " is not given");
  return ceil_of(found->second + offset, divisor);
}

Extent Extent::plus(std::int64_t count) const {
  KRAIT_ASSERT(divisor == 1, "cannot lengthen ", text());
  return {symbol, offset + count, 1};
}

Extent Extent::ceil_div(std::int64_t count) const {
  if (is_constant()) return constant(ceil_of(offset, count));
  return {symbol, offset, divisor * count};
}

std::string Extent::text() const {
  if (is_constant()) return std::to_string(offset);
  std::string inner = symbol;
  if (offset != 0) inner += (offset > 0 ? "+" : "") + std::to_string(offset);
  return divisor == 1 ? inner : "ceil(" + inner + "/" + std::to_string(divisor) + ")";
}

Axis::Axis(std::string axis, std::int64_t size)
    : name(std::move(axis)), extent(Extent::constant(size)) {
  if (size < 1) throw UsageError("size of axis " + name, std::to_string(size), "1 and up");
}

bool contains(const AxisNames& axes, const std::string& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

AxisNames without(const AxisNames& axes, const AxisNames& other) {
  AxisNames kept;
  for (const auto& axis : axes)
    if (!contains(other, axis)) kept.push_back(axis);
  return kept;
}

}  // namespace krait
