// The value of a scalar expression at one point: what the tests of scalars compare with.
#pragma once

#include <cmath>
#include <vector>

#include "dsl/scalar.h"

namespace krait {

/// Of every node; index and extent are `position`.
inline std::vector<double> values_of(const Scalar& scalar, const std::vector<double>& operands,
                                     double position = 0) {
  std::vector<double> values;
  for (const auto& node : scalar.nodes()) {
    auto arg = [&](int i) { return node.args[i] < 0 ? 0 : values[node.args[i]]; };
    switch (node.op) {
      case ScalarOp::constant: values.push_back(node.value); break;
      case ScalarOp::operand: values.push_back(operands.at(node.operand)); break;
      case ScalarOp::index:
      case ScalarOp::extent: values.push_back(position); break;
      default: values.push_back(apply_scalar(node.op, arg(0), arg(1), arg(2)));
    }
  }
  return values;
}

/// Whether real arithmetic gives the expression a value: no division by 0, no root of a negative,
/// no broken promise on the way.
inline bool has_value(const Scalar& scalar, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ScalarNode& node = scalar.nodes()[i];
    if (std::isnan(values[i])) return false;
    if (node.op == ScalarOp::div && values[node.args[1]] == 0) return false;
    if (node.op == ScalarOp::rsqrt && values[node.args[0]] == 0) return false;
    if (node.op == ScalarOp::nonpositive && values[i] > 0) return false;
  }
  return true;
}

inline double value_of(const Scalar& scalar, const std::vector<double>& operands,
                       double position = 0) {
  return values_of(scalar, operands, position).back();
}

inline std::vector<ScalarOp> operators() {
  std::vector<ScalarOp> ops;
  for (int op = static_cast<int>(ScalarOp::neg); op <= static_cast<int>(ScalarOp::select); ++op)
    ops.push_back(static_cast<ScalarOp>(op));
  return ops;
}

}  // namespace krait
