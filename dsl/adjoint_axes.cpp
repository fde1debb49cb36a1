// Adjoints of axis algebra: Gather, ScatterSum, Split, Merge, Slice, Concat, Rename.
#include <optional>

#include "dsl/adjoint.h"

namespace krait {
namespace {

Value add(AdjointBuilder& b, Op op, std::vector<Value> operands) {
  return {b.to().add(std::move(op), std::move(operands)), 0};
}

/// The value where the node `condition` of `e` holds, else 0; operand 0 is the value.
Value where(AdjointBuilder& b, Scalar e, int condition, std::vector<Value> operands) {
  e.finish(e.apply(ScalarOp::select, condition, e.operand(0), e.constant(0)));
  return b.map(e, operands);
}

/// a - b, where that is an Extent for every size of the symbols.
std::optional<Extent> difference(const std::optional<Extent>& a, const Extent& b) {
  if (!a) return {};
  if (b.is_constant()) return Extent{a->symbol, a->offset - b.offset * a->divisor, a->divisor};
  bool alike = a->symbol == b.symbol && a->divisor == b.divisor;
  if (!alike || (a->offset - b.offset) % a->divisor != 0) return {};
  return Extent::constant((a->offset - b.offset) / a->divisor);
}

}  // namespace

void adjoint(AdjointBuilder& b, const Gather& op, const AdjointOf& at) {
  Value table = at.operand(0);
  if (!b.active(table)) return;
  Value g = b.broadcast(at.g[0], b.axes(at.operand(1)));
  b.contribute(table, add(b, ScatterSum{op.axis}, {g, b.forward(at.operand(1))}), {});
}

void adjoint(AdjointBuilder& b, const ScatterSum& op, const AdjointOf& at) {
  Value x = at.operand(0);
  if (!b.active(x)) return;
  Value g = b.broadcast(at.g[0], {op.axis});
  b.contribute(x, add(b, Gather{op.axis}, {g, b.forward(at.operand(1))}), {});
}

void adjoint(AdjointBuilder& b, const Split& op, const AdjointOf& at) {
  AxisNames pair{op.outer, op.inner};
  Value g = at.g[0];
  if (without(pair, b.new_axes(g)).size() < 2)
    g = add(b, Merge{op.outer, op.inner, op.axis}, {b.broadcast(g, pair)});
  b.contribute(at.operand(0), g, {});
}

void adjoint(AdjointBuilder& b, const Merge& op, const AdjointOf& at) {
  Value g = b.broadcast(at.g[0], {op.axis});
  b.contribute(at.operand(0), add(b, Split{op.axis, op.outer, op.inner}, {g}), {});
}

void adjoint(AdjointBuilder& b, const Slice& op, const AdjointOf& at) {
  Value x = at.operand(0);
  const Extent& extent = b.from().axis(op.axis).extent;
  auto start_in = [&](Scalar& e) {
    int start = e.constant(static_cast<double>(op.start));
    return op.from_end ? e.apply(ScalarOp::sub, e.extent(extent), start) : start;
  };
  Scalar e;
  if (op.result.empty()) {
    int here = e.apply(ScalarOp::equal, e.index(op.axis), start_in(e));
    b.contribute(x, where(b, e, here, {at.g[0]}), {});
    return;
  }
  const Extent& taken = b.from().axis(op.result).extent;
  Value g = b.broadcast(at.g[0], {op.result});
  Extent start = Extent::constant(op.start);
  auto before = op.from_end ? difference(extent, start) : std::optional(start);
  auto after = difference(op.from_end ? std::optional(start) : difference(extent, start), taken);
  if (!before || !after) {
    // What lies around the part has no Extent, as when both sizes are symbols: by position.
    int place = e.apply(ScalarOp::add, e.index(op.result), start_in(e));
    int here = e.apply(ScalarOp::equal, e.index(op.axis), place);
    b.contribute(x, b.reduce(where(b, e, here, {g}), {op.result}), {});
    return;
  }
  Concat concat{{}, op.axis};
  std::vector<Value> parts;
  auto zeros = [&](const Extent& size) {
    if (size == Extent::constant(0)) return;
    std::string name;
    parts.push_back(b.zeros_like(g, op.result, size, name));
    concat.axes.push_back(name);
  };
  zeros(*before);
  parts.push_back(g);
  concat.axes.push_back(op.result);
  zeros(*after);
  bool whole = parts.size() == 1;
  if (whole && op.result != op.axis) g = add(b, Rename{op.result, op.axis}, {g});
  b.contribute(x, whole ? g : add(b, concat, parts), {});
}

void adjoint(AdjointBuilder& b, const Concat& op, const AdjointOf& at) {
  Value g = at.g[0];
  bool varies = contains(b.new_axes(g), op.result);
  auto size = [&](std::size_t i) { return b.from().axis(op.axes[i]).extent; };
  for (std::size_t i = 0; i < op.axes.size(); ++i) {
    Value x = at.node.operands[i];
    if (!b.active(x)) continue;
    AxisNames over = without(b.axes(at.result(0)), {op.result});
    over.push_back(op.axes[i]);
    Value part = g;
    if (varies && op.axes.size() == 1) {
      if (op.axes[i] != op.result) part = add(b, Rename{op.result, op.axes[i]}, {g});
    } else if (varies) {
      // At most one operand is symbolic: count from the side where it is not.
      std::int64_t start = 0, rest = 0;
      bool from_end = false;
      for (std::size_t j = 0; j < i; ++j) {
        from_end = from_end || !size(j).is_constant();
        start += size(j).offset;
      }
      for (std::size_t j = i; j < op.axes.size(); ++j) rest += size(j).offset;
      part = add(b, Slice{op.result, from_end ? rest : start, from_end, op.axes[i]}, {g});
    }
    b.contribute(x, part, over);
  }
}

void adjoint(AdjointBuilder& b, const Rename& op, const AdjointOf& at) {
  Value g = at.g[0];
  if (contains(b.new_axes(g), op.to)) g = add(b, Rename{op.to, op.from}, {g});
  b.contribute(at.operand(0), g, {});
}

}  // namespace krait
