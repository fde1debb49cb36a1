// What the rules of `differentiate` are made of. Internal to dsl.
//
// A cotangent of a value may lack axes that the value has: it is then the same at every position
// along them, so that the adjoint of a sum or of a broadcast costs nothing. A rule that needs an
// axis asks for it with `broadcast`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/graph.h"

namespace krait {

/// The gradient graph while it is built, and what has arrived at the values of the forward graph.
class AdjointBuilder {
 public:
  AdjointBuilder(const Graph& from, const std::vector<std::string>& wanted);

  const Graph& from() const { return from_; }
  Graph& to() { return to_; }
  const AxisNames& axes(Value old) const { return from_.type(old).axes; }
  const AxisNames& new_axes(Value value) const { return to_.type(value).axes; }

  /// Whether the gradient of a value of the forward graph leads to a wanted input.
  bool active(Value old) const;
  /// The forward value inside the gradient graph, copied with all that it needs.
  Value forward(Value old);
  /// Adds to the cotangent of a forward value, after a sum over the axes of `over` that the value
  /// lacks. Nothing happens where the value is not active or `cotangent` not valid.
  void contribute(Value old, Value cotangent, const AxisNames& over);
  /// The sum of what was contributed, in that order; not valid where nothing was.
  Value total(Value old);

  /// A Map without the operands that the expression does not read; the operand itself where the
  /// expression is nothing else. Operands are values of the gradient graph.
  Value map(const Scalar& expression, const std::vector<Value>& operands);
  /// scale times the product of the factors and the extents.
  Value multiply(const std::vector<Value>& factors, double scale = 1,
                 const std::vector<Extent>& extents = {});
  /// The sum of valid terms; not valid where there is none.
  Value sum(const std::vector<Value>& terms);
  /// Sum over `sum` of scale times the product of the factors. Factors that do not vary along a
  /// summed axis are multiplied afterwards, and no intermediate has more axes than a factor.
  /// An axis of `sum` that no factor has multiplies by its extent.
  Value sum_product(std::vector<Value> factors, const AxisNames& sum, double scale = 1);
  Value reduce(Value value, const AxisNames& sum) { return sum_product({value}, sum); }
  /// The value, with equal elements along those of `axes` that it lacks.
  Value broadcast(Value value, const AxisNames& axes);
  /// broadcast, or zeros of this dtype and all these axes where the value is not valid.
  Value broadcast_or_zeros(Value value, DType dtype, const AxisNames& axes);
  /// The value at one position of an axis; not valid stays so.
  Value position(Value value, const std::string& axis, std::int64_t start, bool from_end);
  /// Zeros shaped like `like` with a new axis of this extent in place of `axis`; its name comes
  /// back in `name`.
  Value zeros_like(Value like, const std::string& axis, const Extent& extent, std::string& name);

 private:
  const Graph& from_;
  Graph to_;
  Rewriter rewriter_;
  std::vector<bool> active_;
  std::map<Value, std::vector<Value>> contributions_;
  std::map<std::string, std::string> zero_axes_;  // extent to the axis made for it

  Value contract_step(const std::vector<Value>& factors, const AxisNames& sum);
  bool eliminate(std::vector<Value>& factors, AxisNames& sum);
  bool absorb(std::vector<Value>& factors, const AxisNames& sum);
};

/// A node of the forward graph and the cotangents of its results (not valid: none).
struct AdjointOf {
  int id;
  const Node& node;
  std::vector<Value> g;

  Value result(int number) const { return {id, number}; }
  Value operand(int number) const { return node.operands[number]; }
};

// One rule an op: contributes to the operands of the node.
void adjoint(AdjointBuilder& b, const Map& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Contract& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Reduce& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Cumsum& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Scan& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Gap& op, const AdjointOf& at);
[[noreturn]] void adjoint(AdjointBuilder& b, const PairSum& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Shift& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Gather& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const ScatterSum& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Split& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Merge& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Slice& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Concat& op, const AdjointOf& at);
void adjoint(AdjointBuilder& b, const Rename& op, const AdjointOf& at);
inline void adjoint(AdjointBuilder&, const Input&, const AdjointOf&) {}
inline void adjoint(AdjointBuilder&, const Constant&, const AdjointOf&) {}

}  // namespace krait
