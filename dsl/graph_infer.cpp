// The types of what an op gives, and the checks of what it is given. Axes that an op names but
// does not find, or finds where they must not be, are the caller's errors.
#include <cmath>
#include <string>

#include "dsl/error.h"
#include "dsl/graph.h"

namespace krait {
namespace {

std::string listed(const AxisNames& axes) {
  std::string joined;
  for (const auto& axis : axes) joined += (joined.empty() ? "" : " ") + axis;
  return "(" + joined + ")";
}

std::string quoted(const std::string& name) { return '"' + name + '"'; }

/// Whether every size of `small` is at most that of `large`; nothing where sizes decide.
std::optional<bool> fits(const Extent& small, const Extent& large) {
  if (small.symbol != large.symbol || small.divisor != large.divisor) return {};
  return small.offset <= large.offset;
}

class Inference {
 public:
  Inference(const Graph& graph, const Op& op, const std::vector<Value>& operands)
      : graph_(graph), name_(krait::name(op)) {
    for (const Value& value : operands) operands_.push_back(graph.type(value));
  }

  std::vector<Type> operator()(const Input& op) {
    count(0);
    if (op.name.empty()) fail("name", "empty", "any other text");
    for (const auto& axis : op.order) declared("order", axis);
    AxisNames axes = graph_.sorted(op.order);
    if (axes.size() != op.order.size())
      fail("order", listed(op.order) + " of " + op.name, "each axis once");
    return {{op.dtype, axes}};
  }

  std::vector<Type> operator()(const Constant& op) {
    count(0);
    if (op.dtype == DType::i32 &&
        (op.value != std::floor(op.value) || std::fabs(op.value) > 0x1p31))
      fail("value", text(op.value), "whole numbers that i32 holds");
    for (const auto& axis : op.axes) declared("axes", axis);
    return {{op.dtype, graph_.sorted(op.axes)}};
  }

  std::vector<Type> operator()(const Map& op) {
    const Scalar& expression = op.expression;
    KRAIT_REQUIRE(!expression.nodes().empty(), "Map.expression is empty; allowed: a result");
    if (expression.operand_count() > size())
      fail("expression", text("reading ", expression.operand_count(), " operands"),
           text("at most the ", size(), " given"));
    std::vector<bool> integer;
    AxisNames axes;
    std::optional<DType> widest;
    for (const Type& type : operands_) {
      integer.push_back(!is_float(type.dtype));
      axes.insert(axes.end(), type.axes.begin(), type.axes.end());
      if (is_float(type.dtype)) widest = widest ? wider(*widest, type.dtype) : type.dtype;
    }
    for (const auto& axis : expression.index_axes()) {
      declared("expression", axis);
      axes.push_back(axis);
    }
    const bool real = expression.kinds(integer).back() == ScalarKind::real;
    DType dtype = DType::i32;
    if (real) dtype = widest ? accumulator(*widest) : graph_.accumulator();
    return {{dtype, graph_.sorted(axes)}};
  }

  std::vector<Type> operator()(const Contract& op) {
    if (operands_.empty()) fail("operands", "0", "1 and up");
    DType dtype = operands_[0].dtype;
    AxisNames axes;
    for (const Type& type : operands_) {
      dtype = wider(dtype, type.dtype);
      axes.insert(axes.end(), type.axes.begin(), type.axes.end());
    }
    axes = graph_.sorted(axes);
    for (const auto& axis : op.sum) among("sum", axis, axes);
    return {{accumulator(dtype), without(axes, op.sum)}};
  }

  std::vector<Type> operator()(const Reduce& op) {
    count(1);
    if (op.axes.empty()) fail("axes", "()", "one axis and up");
    for (const auto& axis : op.axes) among("axes", axis, axes(0));
    return {{accumulator(dtype(0)), without(axes(0), op.axes)}};
  }

  std::vector<Type> operator()(const Cumsum& op) {
    count(1 + op.has_initial + op.has_reset);
    among("axis", op.axis, axes(0));
    if (op.wrap) floating("wrap", 0);
    late(op.late, op.reverse);
    DType result = accumulator(dtype(0));
    const AxisNames last = parts(op.parts, axes(0), op.axis);
    if (!op.parts.empty() && op.reverse && op.has_reset && !op.late)
      fail("parts", quoted(op.parts), "none for a reverse sum with a reset that is not late");
    if (op.has_initial) result = initial(1, result, last);
    if (op.has_reset) reset(1 + op.has_initial, axes(0), op.axis);
    return {{result, axes(0)}, {result, last}};
  }

  std::vector<Type> operator()(const Scan& op) {
    count(2 + op.has_initial + op.has_reset);
    floating("log_decay", 0);
    floating("input", 1);
    AxisNames state = axes(0);
    state.insert(state.end(), axes(1).begin(), axes(1).end());
    state = graph_.sorted(state);
    among("axis", op.axis, state);
    late(op.late, op.reverse);
    DType result = accumulator(wider(dtype(0), dtype(1)));
    const AxisNames last = parts(op.parts, state, op.axis);
    if (op.has_initial) result = initial(2, result, last);
    if (op.has_reset) reset(2 + op.has_initial, state, op.axis);
    return {{result, state}, {result, state}, {result, last}};
  }

  std::vector<Type> operator()(const Gap& op) {
    count(1);
    floating("log_decay", 0);
    among("axis", op.axis, axes(0));
    AxisNames result = axes(0);
    if (op.kind == Gap::Kind::between) {
      fresh("other", op.other, axes(0));
      same_extent("other", op.other, op.axis);
      result.push_back(op.other);
    } else if (!op.other.empty()) {
      fail("other", quoted(op.other), "empty but for the kind between");
    }
    if (op.kind == Gap::Kind::total) result = without(result, {op.axis});
    return {{accumulator(dtype(0)), graph_.sorted(result)}};
  }

  std::vector<Type> operator()(const PairSum& op) {
    count(1);
    floating("operand", 0);
    among("axis", op.axis, axes(0));
    const Type result{accumulator(dtype(0)), axes(0)};
    return {result, result};
  }

  std::vector<Type> operator()(const Shift& op) {
    count(1 + op.has_state);
    among("axis", op.axis, axes(0));
    if (!is_float(dtype(0)) && op.fill != std::floor(op.fill))
      fail("fill", text(op.fill), "whole numbers, as the operand is i32");
    if (!op.has_state) {
      if (!op.state_axis.empty())
        fail("state_axis", quoted(op.state_axis), "empty where there is no state");
      return {{dtype(0), axes(0)}};
    }
    if (op.steps <= 0) fail("steps", text(op.steps), "1 and up where there is a state");
    among("state_axis", op.state_axis, axes(1));
    const Extent& extent = graph_.axis(op.state_axis).extent;
    if (!extent.is_constant() || extent.offset < op.steps)
      fail("state_axis", quoted(op.state_axis) + " of size " + extent.text(),
           text("a constant size of at least the ", op.steps, " steps"));
    AxisNames expected = without(axes(0), {op.axis});
    expected.push_back(op.state_axis);
    subset("state", axes(1), graph_.sorted(expected));
    same_class("state", 1, 0);
    return {{wider(dtype(0), dtype(1)), axes(0)}};
  }

  std::vector<Type> operator()(const Gather& op) {
    count(2);
    among("axis", op.axis, axes(0));
    integer("index", 1);
    AxisNames result = without(axes(0), {op.axis});
    for (const auto& axis : axes(1))
      if (contains(result, axis))
        fail("index", "along " + quoted(axis), "axes that the rows do not have");
    result.insert(result.end(), axes(1).begin(), axes(1).end());
    return {{dtype(0), graph_.sorted(result)}};
  }

  std::vector<Type> operator()(const ScatterSum& op) {
    count(2);
    integer("index", 1);
    for (const auto& axis : axes(1)) among("index", axis, axes(0));
    AxisNames result = without(axes(0), axes(1));
    fresh("axis", op.axis, result);
    result.push_back(op.axis);
    return {{accumulator(dtype(0)), graph_.sorted(result)}};
  }

  std::vector<Type> operator()(const Split& op) {
    count(1);
    among("axis", op.axis, axes(0));
    AxisNames result = without(axes(0), {op.axis});
    split_extents(op.axis, op.outer, op.inner);
    fresh("outer", op.outer, axes(0));
    fresh("inner", op.inner, axes(0));
    if (op.outer == op.inner) fail("inner", quoted(op.inner), "another axis than outer");
    result.push_back(op.outer);
    result.push_back(op.inner);
    return {{dtype(0), graph_.sorted(result)}};
  }

  std::vector<Type> operator()(const Merge& op) {
    count(1);
    among("outer", op.outer, axes(0));
    among("inner", op.inner, axes(0));
    if (op.outer == op.inner) fail("inner", quoted(op.inner), "another axis than outer");
    fresh("axis", op.axis, axes(0));
    split_extents(op.axis, op.outer, op.inner);
    AxisNames result = without(axes(0), {op.outer, op.inner});
    result.push_back(op.axis);
    return {{dtype(0), graph_.sorted(result)}};
  }

  std::vector<Type> operator()(const Slice& op) {
    count(1);
    among("axis", op.axis, axes(0));
    const AxisNames rest = without(axes(0), {op.axis});
    const Extent& whole = graph_.axis(op.axis).extent;
    if (op.start < 0) fail("start", text(op.start), "0 and up");
    Extent part = Extent::constant(1);
    AxisNames result = rest;
    if (!op.result.empty()) {
      fresh("result", op.result, rest);
      part = graph_.axis(op.result).extent;
      result.push_back(op.result);
    }
    if (fits(part, Extent::constant(0)).value_or(false))
      fail("result", part.text(), "sizes of 1 and up");
    // Sizes that only the run knows are checked there.
    const Extent start = Extent::constant(op.start);
    bool inside = true;
    if (op.from_end) {
      inside = fits(start, whole).value_or(true) && fits(part, start).value_or(true);
    } else if (part.divisor == 1) {
      inside = fits(part.plus(op.start), whole).value_or(true);
    }
    if (!inside)
      fail("start", text(op.start, op.from_end ? " from the end" : "", " of ", part.text()),
           "positions inside of " + op.axis + ", whose size is " + whole.text());
    return {{dtype(0), graph_.sorted(result)}};
  }

  std::vector<Type> operator()(const Concat& op) {
    if (operands_.empty()) fail("operands", "0", "1 and up");
    if (static_cast<int>(op.axes.size()) != size())
      fail("axes", listed(op.axes), text("one for each of the ", size(), " operands"));
    AxisNames rest = without(axes(0), {op.axes[0]});
    Extent sum = Extent::constant(0);
    DType result = dtype(0);
    for (int i = 0; i < size(); ++i) {
      among("axes", op.axes[i], axes(i));
      if (without(axes(i), {op.axes[i]}) != rest)
        fail(text("operand ", i), listed(axes(i)), listed(rest) + " and " + op.axes[i]);
      same_class(text("operand ", i), i, 0);
      result = wider(result, dtype(i));
      const Extent& extent = graph_.axis(op.axes[i]).extent;
      if (!extent.is_constant() && !sum.is_constant())
        fail("axes", listed(op.axes), "at most one axis whose size only the run knows");
      const Extent& symbolic = extent.is_constant() ? sum : extent;
      const std::int64_t more = extent.is_constant() ? extent.offset : sum.offset;
      sum = {symbolic.symbol, symbolic.offset + more * symbolic.divisor, symbolic.divisor};
    }
    fresh("result", op.result, rest);
    if (!(graph_.axis(op.result).extent == sum))
      fail("result", quoted(op.result) + " of size " + graph_.axis(op.result).extent.text(),
           "size " + sum.text());
    rest.push_back(op.result);
    return {{result, graph_.sorted(rest)}};
  }

  std::vector<Type> operator()(const Rename& op) {
    count(1);
    among("from", op.from, axes(0));
    fresh("to", op.to, axes(0));
    same_extent("to", op.to, op.from);
    AxisNames result = without(axes(0), {op.from});
    result.push_back(op.to);
    return {{dtype(0), graph_.sorted(result)}};
  }

 private:
  int size() const { return static_cast<int>(operands_.size()); }
  const AxisNames& axes(int operand) const { return operands_[operand].axes; }
  DType dtype(int operand) const { return operands_[operand].dtype; }

  [[noreturn]] void fail(const std::string& field, const std::string& value,
                         const std::string& allowed) const {
    throw UsageError(name_ + "." + field, value, allowed);
  }

  void count(int expected) const {
    if (size() != expected) fail("operands", text(size()), text(expected));
  }

  void declared(const std::string& field, const std::string& axis) const {
    if (!graph_.has_axis(axis)) fail(field, quoted(axis), "a declared axis");
  }

  void among(const std::string& field, const std::string& axis, const AxisNames& axes) const {
    if (!contains(axes, axis)) fail(field, quoted(axis), "one of " + listed(axes));
  }

  /// A declared axis that is not among `axes`.
  void fresh(const std::string& field, const std::string& axis, const AxisNames& axes) const {
    declared(field, axis);
    if (contains(axes, axis)) fail(field, quoted(axis), "an axis not in " + listed(axes));
  }

  void subset(const std::string& field, const AxisNames& axes, const AxisNames& of) const {
    for (const auto& axis : axes)
      if (!contains(of, axis)) fail(field, "along " + listed(axes), "some of " + listed(of));
  }

  void same_extent(const std::string& field, const std::string& axis,
                   const std::string& other) const {
    const Extent& wanted = graph_.axis(other).extent;
    const Extent& given = graph_.axis(axis).extent;
    if (!(given == wanted))
      fail(field, quoted(axis) + " of size " + given.text(), "size " + wanted.text());
  }

  void split_extents(const std::string& axis, const std::string& outer,
                     const std::string& inner) const {
    declared("axis", axis);
    declared("outer", outer);
    declared("inner", inner);
    const Extent& width = graph_.axis(inner).extent;
    if (!width.is_constant())
      fail("inner", quoted(inner) + " of size " + width.text(), "a constant size");
    const Extent wanted = graph_.axis(axis).extent.ceil_div(width.offset);
    const Extent& given = graph_.axis(outer).extent;
    if (!(given == wanted))
      fail("outer", quoted(outer) + " of size " + given.text(), "size " + wanted.text());
  }

  void floating(const std::string& field, int operand) const {
    if (!is_float(dtype(operand))) fail(field, "i32", "a float dtype");
  }

  void integer(const std::string& field, int operand) const {
    if (is_float(dtype(operand))) fail(field, std::string(krait::name(dtype(operand))), "i32");
  }

  /// Float with float, i32 with i32.
  void same_class(const std::string& field, int operand, int as) const {
    if (is_float(dtype(operand)) != is_float(dtype(as)))
      fail(field, std::string(krait::name(dtype(operand))),
           is_float(dtype(as)) ? "a float dtype" : "i32");
  }

  void late(bool late, bool reverse) const {
    if (late && !reverse) fail("late", "true", "false where it does not run in reverse");
  }

  /// The axes of what is left in the end: without the axis that runs, with that of its parts.
  AxisNames parts(const std::string& parts, const AxisNames& state, const std::string& axis) const {
    AxisNames last = without(state, {axis});
    if (parts.empty()) return last;
    fresh("parts", parts, state);
    const Extent& extent = graph_.axis(parts).extent;
    if (!extent.is_constant())
      fail("parts", quoted(parts) + " of size " + extent.text(), "a constant size");
    last.push_back(parts);
    return graph_.sorted(last);
  }

  DType initial(int operand, DType result, const AxisNames& last) const {
    subset("initial", axes(operand), last);
    same_class("initial", operand, operand - 1);
    return accumulator(wider(result, dtype(operand)));
  }

  void reset(int operand, const AxisNames& state, const std::string& axis) const {
    integer("reset", operand);
    subset("reset", axes(operand), state);
    among("reset", axis, axes(operand));
  }

  const Graph& graph_;
  std::string name_;
  std::vector<Type> operands_;
};

}  // namespace

std::vector<Type> infer(const Graph& graph, const Op& op, const std::vector<Value>& operands) {
  return std::visit(Inference(graph, op, operands), op);
}

}  // namespace krait
