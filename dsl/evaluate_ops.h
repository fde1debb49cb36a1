// One function per op (or family of ops) of `evaluate`. Internal to it.
//
// Operands come in the order of the node, results go out in the order of the node, with the axes
// of the node's result types.
#pragma once

#include <vector>

#include "dsl/evaluate_array.h"

namespace krait::evaluation {

/// What an op is evaluated with.
struct Call {
  const Space& space;
  const Node& node;
  int id;                       // of the node
  std::vector<Array> operands;  // owned, so that the last reader may reuse the data
  std::vector<bool> wanted;     // results that something reads; others may be left without data

  const AxisNames& axes(int result = 0) const { return node.results[result].axes; }
  /// How the graph prints operand `number`.
  std::string operand_label(int number) const { return space.graph().label(node.operands[number]); }
};

Array run(const Map& op, Call& call);
Array run(const Contract& op, Call& call);
Array run(const Reduce& op, Call& call);
std::vector<Array> run(const Cumsum& op, Call& call);
std::vector<Array> run(const Scan& op, Call& call);
Array run(const Gap& op, Call& call);
std::vector<Array> run(const PairSum& op, Call& call);
Array run(const Shift& op, Call& call);
Array run(const Gather& op, Call& call);
Array run(const ScatterSum& op, Call& call);
Array run(const Split& op, Call& call);
Array run(const Merge& op, Call& call);
Array run(const Slice& op, Call& call);
Array run(const Concat& op, Call& call);
Array run(const Rename& op, Call& call);

/// Operator `op` over whole arrays, broadcast to `axes`; arguments beyond its arity are ignored.
/// Writes over the data of `a` where nothing else holds it and its axes fit.
Array apply(const Space& space, ScalarOp op, const AxisNames& axes, Array a, const Array& b,
            const Array& c);
/// Sum of `x` over `axes`; the order of the other axes stays.
Array summed(const Space& space, const Array& x, const AxisNames& axes);

}  // namespace krait::evaluation
