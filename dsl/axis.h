// Named axes and their extents.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace krait {

/// Sizes of the symbols of a graph, e.g. {"b": 2, "t": 129}.
using Sizes = std::map<std::string, std::int64_t>;

/// ceil((symbol + offset) / divisor), or the constant `offset` where there is no symbol.
/// A symbol is the name of an axis whose size is an argument of the compiled program (batch, time).
struct Extent {
  std::string symbol;
  std::int64_t offset = 0;
  std::int64_t divisor = 1;

  static Extent constant(std::int64_t size) { return {"", size, 1}; }
  static Extent symbolic(std::string name) { return {std::move(name), 0, 1}; }
  bool is_constant() const { return symbol.empty(); }
  /// The size, given the sizes of the symbols. Throws UsageError for a symbol that `sizes` lacks.
  std::int64_t value(const Sizes& sizes) const;
  /// This extent with `count` more elements. Only for divisor 1.
  Extent plus(std::int64_t count) const;
  /// ceil(this / count). Exactly nested: ceil(ceil(x / a) / b) is ceil(x / (a b)).
  Extent ceil_div(std::int64_t count) const;
  /// "64", "t", "t+3", "ceil(t/64)".
  std::string text() const;
  bool operator==(const Extent&) const = default;
};

/// A name for one way in which values vary. Two axes of one graph with one name are one axis.
struct Axis {
  std::string name;
  Extent extent;

  Axis() = default;
  /// An axis whose size is given when the program runs; its symbol bears its name.
  explicit Axis(std::string axis) : name(axis), extent(Extent::symbolic(axis)) {}
  /// An axis of constant size, at least 1; throws UsageError otherwise.
  Axis(std::string axis, std::int64_t size);
  Axis(std::string axis, Extent size) : name(std::move(axis)), extent(std::move(size)) {}
  bool operator==(const Axis&) const = default;
};

/// Names of axes. As the axes of a value: sorted in the order in which the graph met them.
using AxisNames = std::vector<std::string>;

bool contains(const AxisNames& axes, const std::string& axis);
/// The members of `axes` that are not in `other`, order kept.
AxisNames without(const AxisNames& axes, const AxisNames& other);

}  // namespace krait
