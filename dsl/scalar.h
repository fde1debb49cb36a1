// Scalar expressions: what a Map computes for one element.
//
// A Scalar is a list of nodes in which each node reads earlier ones; the last node is the result.
// Equal nodes are one node. All arithmetic is real; a comparison gives a boolean; index, extent and
// i32 operands are integers and are compared as integers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/axis.h"

namespace krait {

enum class ScalarOp : std::uint8_t {
  // Leaves: `value`, the operand with number `operand`, the position along `axis`, the size
  // `extent`.
  constant,
  operand,
  index,
  extent,
  // Unary.
  neg,
  abs,
  exp,
  exp_nonpositive,  // exp(min(x, 0)) whose slope is its value everywhere: guards rounding of a gap
  log,
  log1p,
  expm1,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  softplus,     // log(1 + e^x); x itself above 20
  sin_turns,    // sin(2 pi x)
  cos_turns,    // cos(2 pi x)
  floor,        // slope 0
  wrap,         // x - floor(x + 1/2), in [-1/2, 1/2); slope 1
  nonpositive,  // x, declared to be <= 0: evaluate rejects data that breaks it; slope 1
  logical_not,
  // Binary.
  add,
  sub,
  mul,
  div,
  min,
  max,
  less,
  less_equal,
  equal,
  logical_and,
  logical_or,
  // select(condition, a, b).
  select,
};

std::string_view name(ScalarOp op);
/// Number of arguments: 0 to 3.
int arity(ScalarOp op);

enum class ScalarKind : std::uint8_t { real, integer, boolean };

struct ScalarNode {
  ScalarOp op = ScalarOp::constant;
  double value = 0;                     // constant
  int operand = 0;                      // operand
  std::string axis{};                   // index
  Extent extent{};                      // extent
  std::array<int, 3> args{-1, -1, -1};  // numbers of earlier nodes
  bool operator==(const ScalarNode&) const = default;
};

/// A closed interval of the extended reals; the widest by default.
struct Interval {
  double low, high;
  Interval();
  Interval(double lo, double hi) : low(lo), high(hi) {}
  bool nonpositive() const { return high <= 0; }
  bool nonnegative() const { return low >= 0; }
};

class Scalar {
 public:
  const std::vector<ScalarNode>& nodes() const;
  const ScalarNode& root() const { return nodes().back(); }
  int root_index() const { return static_cast<int>(nodes().size()) - 1; }
  bool operator==(const Scalar& other) const {
    return nodes_ == other.nodes_ || nodes() == other.nodes();
  }

  /// Appends a node, or finds the equal one; folds what is constant and x+0, x*1, x*0, -(-x), and
  /// so on. Returns its number. The result of the expression must be finished with `finish`.
  int add(ScalarNode node);
  int constant(double value);
  int operand(int number);
  int index(std::string axis);
  int extent(Extent extent);
  int apply(ScalarOp op, int a, int b = -1, int c = -1);
  /// Copies `other` into this expression; `operands[i]` is the node that takes the place of its
  /// operand i. Returns the node of its result.
  int inline_expression(const Scalar& other, const std::vector<int>& operands);
  /// Drops every node that `result` does not need and makes `result` the last.
  void finish(int result);

  /// Number of operands: one more than the largest that is read.
  int operand_count() const;
  /// Axes whose index is read.
  AxisNames index_axes() const;
  /// Kind of every node; `operand_is_integer[i]` tells of operand i.
  std::vector<ScalarKind> kinds(const std::vector<bool>& operand_is_integer) const;
  /// What the result can be, given what the operands can be.
  Interval interval(const std::vector<Interval>& operands) const;
  /// "exp(a * b)" with the given names for the operands.
  std::string text(const std::vector<std::string>& operand_names) const;

 private:
  /// Those of this expression alone, to be changed.
  std::vector<ScalarNode>& own();

  std::shared_ptr<std::vector<ScalarNode>>
      nodes_;  // shared by copies until one changes; null: none
};

/// One operator in float64 (select: a, b, c in order). Booleans are 0 and 1. Used by `evaluate`.
double apply_scalar(ScalarOp op, double a, double b, double c);

/// The derivative of `expression` with respect to operand `number`, as an expression over the same
/// operands. Conditions, index, extent and floor have slope 0; ties of max and min go to the first.
/// A result that is the constant 0 means there is no dependence.
Scalar derivative(const Scalar& expression, int number);

}  // namespace krait
