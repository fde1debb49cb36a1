// Adjoints of what runs along an axis: Cumsum, Scan, Gap, Shift.
#include "dsl/adjoint.h"
#include "dsl/error.h"

namespace krait {
namespace {

Value add(AdjointBuilder& b, Op op, std::vector<Value> operands) {
  return {b.to().add(std::move(op), std::move(operands)), 0};
}

/// `value` where `reset` is zero, else 0; `value` itself where there is no reset.
Value unless(AdjointBuilder& b, Value reset, Value value) {
  if (!reset.valid() || !value.valid()) return value;
  Scalar e;
  int open = e.apply(ScalarOp::equal, e.operand(0), e.constant(0));
  e.finish(e.apply(ScalarOp::select, open, e.operand(1), e.constant(0)));
  return b.map(e, {reset, value});
}

/// exp(log_decay) where `reset` is zero, else 0.
Value decay(AdjointBuilder& b, Value log_decay, Value reset) {
  Scalar e;
  int factor = e.apply(ScalarOp::exp, e.operand(0));
  if (reset.valid()) {
    int open = e.apply(ScalarOp::equal, e.operand(1), e.constant(0));
    factor = e.apply(ScalarOp::select, open, factor, e.constant(0));
  }
  e.finish(factor);
  return b.map(e, {log_decay, reset});
}

/// `value` at position 0 of `axis`, 0 behind.
Value at_start(AdjointBuilder& b, const std::string& axis, Value value) {
  if (!value.valid()) return value;
  Scalar e;
  int first = e.apply(ScalarOp::equal, e.index(axis), e.constant(0));
  e.finish(e.apply(ScalarOp::select, first, e.operand(0), e.constant(0)));
  return b.map(e, {value});
}

Value shifted(AdjointBuilder& b, const std::string& axis, std::int64_t steps, Value value) {
  if (!value.valid()) return value;
  return add(b, Shift{axis, steps, 0, false, ""}, {b.broadcast(value, {axis})});
}

}  // namespace

// y[t] = (reset[t] ? 0 : y[t-1]) + x[t]. What arrives at y[t] runs on to y[t-1] where nothing
// separates them: the running sum the other way, in which the cotangent of the last y comes in
// first. Of an exclusive sum the values stand one step away from the y that they show.
void adjoint(AdjointBuilder& b, const Cumsum& op, const AdjointOf& at) {
  if (op.late || !op.parts.empty())
    throw UsageError(
        "a Cumsum that is late or in parts has no derivative; allowed: differentiate "
        "before it is made");
  Value x = at.operand(0);
  Value initial = op.has_initial ? at.operand(1) : Value{};
  AxisNames full = b.axes(at.result(0));
  if (!contains(full, op.axis)) full.push_back(op.axis);
  AxisNames full_last = without(full, {op.axis});
  DType dtype = b.from().type(at.result(0)).dtype;
  Value values = at.g[0], last = at.g[1];

  if (!op.has_reset && !values.valid()) {
    b.contribute(x, b.broadcast(last, {op.axis}), full);
    if (initial.valid()) b.contribute(initial, last, full_last);
    return;
  }
  Cumsum back{op.axis, !op.reverse, false, false, false, op.has_reset};
  Value reset = op.has_reset ? b.forward(at.node.operands.back()) : Value{};
  Value arriving = values;
  if (op.exclusive && op.has_reset) {
    arriving = shifted(b, op.axis, op.reverse ? 1 : -1, values);
  } else {
    back.exclusive = op.exclusive;
  }
  std::vector<Value> operands(1);
  // Forwards, a reset at position 0 would keep out an initial value; no reset stands before the
  // end, so there the cotangent of the last y joins the first element instead.
  if (back.reverse || !op.has_reset) {
    back.has_initial = last.valid();
    if (last.valid()) operands.push_back(b.broadcast(last, full_last));
  } else {
    arriving = b.sum({arriving, at_start(b, op.axis, last)});
  }
  operands[0] = b.broadcast_or_zeros(arriving, dtype, full);
  if (reset.valid()) operands.push_back(reset);
  Value running = add(b, back, operands);
  b.contribute(x, running, full);
  if (!initial.valid() || !b.active(initial)) return;
  Value total{running.node, 1};
  if (op.has_reset) {
    if (!op.reverse) total = unless(b, b.position(reset, op.axis, 0, false), total);
    if (op.exclusive)
      total = b.sum({total, b.position(values, op.axis, op.reverse ? 1 : 0, op.reverse)});
  }
  b.contribute(initial, total, full_last);
}

// With w[t] = reset[t] ? 0 : exp(log_decay[t]), a Scan is S[t] = w[t] S[t-1] + u[t]. What arrives
// at S[t] and runs back is R[t] = g[t] + w[t+1] R[t+1]: a reverse Scan. du = R, and the slope of
// log_decay[t] is R[t] w[t] S[t-1]. The entering value at t shows S[t-1].
//
// A reverse Scan is R[t] = u[t] + w[t+1] R[t+1], entering value E[t] = w[t+1] R[t+1], last w[0]
// R[0]. At R[t] arrive g, and by w[t] what arrives at R[t-1] and at E[t-1] (or at the last):
// Q[t] = g[t] + w[t] (Q[t-1] + gE[t-1]). du = Q, and the slope of log_decay[t] is
// w[t] R[t] (Q[t-1] + gE[t-1]).
void adjoint(AdjointBuilder& b, const Scan& op, const AdjointOf& at) {
  if (op.late || !op.parts.empty())
    throw UsageError(
        "a Scan that is late or in parts has no derivative; allowed: differentiate "
        "before it is made");
  Value log_decay = at.operand(0), u = at.operand(1);
  Value initial = op.has_initial ? at.operand(2) : Value{};
  Value reset = op.has_reset ? b.forward(at.node.operands.back()) : Value{};
  const AxisNames& full = b.axes(at.result(1));
  AxisNames full_last = without(full, {op.axis});
  Value entering = at.g[0], leaving = at.g[1], last = at.g[2];
  Value decays = b.forward(log_decay);
  Value weight = op.reverse || b.active(log_decay) ? decay(b, decays, reset) : Value{};

  Value moved = shifted(b, op.axis, op.reverse ? 1 : -1, entering);
  Value arriving = moved;
  if (op.reverse && moved.valid()) arriving = b.multiply({moved, weight});
  arriving = b.sum({leaving, arriving});
  std::vector<Value> operands{
      decays, b.broadcast_or_zeros(arriving, b.from().type(at.result(1)).dtype, full)};
  if (last.valid()) operands.push_back(b.broadcast(last, full_last));
  if (reset.valid()) operands.push_back(reset);
  Value running = add(b, Scan{op.axis, !op.reverse, last.valid(), op.has_reset}, operands);
  Value through{running.node, 1};

  b.contribute(u, through, full);
  if (b.active(log_decay)) {
    std::vector<Value> factors{through, b.forward(at.result(0)), weight};
    if (op.reverse) factors = {b.sum({running, moved}), b.forward(at.result(1)), weight};
    b.contribute(log_decay, b.sum_product(factors, without(full, b.axes(log_decay))), {});
  }
  if (initial.valid()) {
    Value shown =
        b.active(initial) ? b.position(entering, op.axis, op.reverse ? 1 : 0, op.reverse) : Value{};
    b.contribute(initial, b.sum({{running.node, 2}, shown}), full_last);
  }
}

// a[j] stands in every pair (q, k) that spans it, k < j <= q. Sums only, so that nothing cancels.
void adjoint(AdjointBuilder&, const PairSum&, const AdjointOf&) {
  throw UsageError("a PairSum has no derivative; allowed: differentiate before Gaps are lowered");
}

void adjoint(AdjointBuilder& b, const Gap& op, const AdjointOf& at) {
  Value a = at.operand(0);
  if (!b.active(a)) return;
  Value g = at.g[0];
  switch (op.kind) {
    case Gap::Kind::total: b.contribute(a, g, {}); break;
    case Gap::Kind::from_start:
    case Gap::Kind::to_end: {
      bool back = op.kind == Gap::Kind::from_start;
      Cumsum running{op.axis, back, !back, false, false, false};
      b.contribute(a, add(b, running, {b.broadcast(g, {op.axis})}), {});
      break;
    }
    case Gap::Kind::between: {
      // Position q of the reverse sum along `axis` holds, for each k, the pairs that end at q or
      // later; those that also start before q span it.
      Value ends = add(b, Cumsum{op.axis, true, false, false, false, false},
                       {b.broadcast(g, {op.axis, op.other})});
      Scalar e;
      int spans = e.apply(ScalarOp::less, e.index(op.other), e.index(op.axis));
      e.finish(e.apply(ScalarOp::select, spans, e.operand(0), e.constant(0)));
      Value sum = b.to().reduce(Reduce::Kind::sum, {op.other}, b.map(e, {ends}));
      b.contribute(a, sum, {});
      break;
    }
  }
}

void adjoint(AdjointBuilder& b, const Shift& op, const AdjointOf& at) {
  Value x = at.operand(0);
  const AxisNames& full = b.axes(at.result(0));
  Value g = b.broadcast(at.g[0], {op.axis});
  if (b.active(x)) b.contribute(x, op.steps == 0 ? g : shifted(b, op.axis, -op.steps, g), full);
  if (!op.has_state || !b.active(at.operand(1))) return;

  // Position i < steps read state K - steps + i. The window may be shorter than that.
  Value state = at.operand(1);
  std::int64_t unread = b.from().axis(op.state_axis).extent.offset - op.steps;
  AxisNames over = without(full, {op.axis});
  over.push_back(op.state_axis);
  Extent extent = b.from().axis(op.axis).extent;
  extent.offset += op.steps * extent.divisor;
  std::string zeros_axis;
  Value zeros = b.zeros_like(g, op.axis, Extent::constant(op.steps), zeros_axis);
  std::string longer = b.to().fresh_axis_name(op.axis + "_longer");
  b.to().declare(Axis(longer, extent));
  Value head = add(b, Concat{{op.axis, zeros_axis}, longer}, {g, zeros});
  if (unread == 0) {
    b.contribute(state, add(b, Slice{longer, 0, false, op.state_axis}, {head}), over);
    return;
  }
  head = add(b, Slice{longer, 0, false, zeros_axis}, {head});
  std::string unread_axis;
  Value before = b.zeros_like(head, zeros_axis, Extent::constant(unread), unread_axis);
  b.contribute(state, add(b, Concat{{unread_axis, zeros_axis}, op.state_axis}, {before, head}),
               over);
}

}  // namespace krait
