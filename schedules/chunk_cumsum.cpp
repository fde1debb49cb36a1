// A Cumsum along t becomes one inside each chunk, one over chunks, and their sum.
#include "dsl/error.h"
#include "schedules/chunk_rewrite.h"

namespace krait::chunking {
namespace {

/// a where `count` equals `other`, else 0.
Value where_equal(Graph& graph, Value count, Value other, Value a) {
  Formula f(graph);
  const int zero = f.constant(0), value = f.read(a), left = f.read(count);
  const int right = other.valid() ? f.read(other) : zero;
  return f.finish(f(ScalarOp::select, f(ScalarOp::equal, left, right), value, zero));
}

Value add_wrapped(Graph& graph, bool wrap, Value a, Value b) {
  Formula f(graph);
  const int sum = f(ScalarOp::add, f.read(a), f.read(b));
  return f.finish(wrap ? f(ScalarOp::wrap, sum) : sum);
}

}  // namespace

void Rewrite::chunk_cumsum(int id) {
  const Node& node = from_.node(id);
  const Cumsum& op = std::get<Cumsum>(node.op);
  const Value x = masked(chunked(node.operands[0]));
  Value initial, reset;
  if (op.has_initial) initial = whole(node.operands[1]);
  if (op.has_reset) reset = flags(chunked(node.operands[op.has_initial ? 2 : 1]));
  const Value made = op.reverse ? chunk_cumsum_reverse(id, x, initial, reset)
                                : chunk_cumsum_forward(id, x, initial, reset);
  keep(chunked_, {id, 0}, made);
}

// With y' the running sum inside a chunk, n(q) the resets in it up to q, and Y the value at the end
// of the chunk before:
//
//   y[c, q] = y'[c, q] + (Y[c] where n(q) = 0)
//   Y[c+1]  = y'[c, Q-1] + (Y[c] where no reset is in c)
//
// An exclusive sum reads the value before q, and n before q.
Value Rewrite::chunk_cumsum_forward(int id, Value x, Value initial, Value reset) {
  Cumsum op = std::get<Cumsum>(from_.node(id).op);
  op.axis = q_;
  op.has_initial = false;
  std::vector<Value> operands{x};
  if (op.has_reset) operands.push_back(reset);
  const int local = to_.add(op, operands);

  Cumsum across{.axis = c_, .exclusive = true, .wrap = op.wrap};
  across.has_initial = initial.valid();
  across.has_reset = op.has_reset;
  operands = {{local, 1}};
  if (initial.valid()) operands.push_back(initial);
  int count = -1;
  if (op.has_reset) {
    count = to_.add(Cumsum{.axis = q_, .exclusive = op.exclusive}, {reset});
    operands.push_back({count, 1});
  }
  const int carry = to_.add(across, operands);
  keep(whole_, {id, 1}, {carry, 1});
  Value entering{carry, 0};
  if (op.has_reset) entering = where_equal(to_, {count, 0}, {}, entering);
  return add_wrapped(to_, op.wrap, {local, 0}, entering);
}

// The mirror image. A reset at t separates t-1 from t, so the value that chunk c hands to the chunk
// before it is
//
//   Y[c] = (0 where the first position of c is a reset, else y'[c, 0])
//          + (Y[c+1] where no reset is in c)
//   y[c, q] = y'[c, q] + (Y[c+1] where no reset is after q in c),   Y past the last chunk: initial
//
// Y is a reverse Cumsum over chunks whose reset at c+1 is any reset in c; the last chunk, which has
// no such neighbour, drops the initial value by itself.
Value Rewrite::chunk_cumsum_reverse(int id, Value x, Value initial, Value reset) {
  const Cumsum op = std::get<Cumsum>(from_.node(id).op);
  Cumsum inner{.axis = q_, .reverse = true, .wrap = op.wrap, .has_reset = op.has_reset};
  std::vector<Value> operands{x};
  if (op.has_reset) operands.push_back(reset);
  const Value local{to_.add(inner, operands)};

  Value handed{to_.add(Slice{.axis = q_}, {local})};
  Cumsum across{.axis = c_, .reverse = true, .exclusive = true, .wrap = op.wrap};
  across.has_reset = op.has_reset;
  Value count, any, start = initial;
  if (op.has_reset) {
    const int counted = to_.add(Cumsum{.axis = q_}, {reset});
    count = {counted, 0};
    any = {counted, 1};
    handed = where_equal(to_, {to_.add(Slice{.axis = q_}, {reset})}, {}, handed);
    if (initial.valid()) {
      const Value of_last{to_.add(Slice{.axis = c_, .start = 1, .from_end = true}, {any})};
      start = where_equal(to_, of_last, {}, initial);
    }
  }
  across.has_initial = initial.valid();
  operands = {handed};
  if (initial.valid()) operands.push_back(start);
  if (op.has_reset) operands.push_back({to_.add(Shift{.axis = c_, .steps = 1}, {any})});
  Value entering{to_.add(across, operands)};
  if (op.has_reset) {
    if (initial.valid()) {
      // Into the last chunk the initial value goes undropped: its resets are seen below.
      Formula f(to_);
      const int last = f(ScalarOp::equal, f.scalar().index(c_),
                         f(ScalarOp::sub, f.scalar().extent(to_.axis(c_).extent), f.constant(1)));
      const int value = f.read(initial);
      entering = f.finish(
          f(ScalarOp::select, last, op.wrap ? f(ScalarOp::wrap, value) : value, f.read(entering)));
    }
    entering = where_equal(to_, count, any, entering);
  }
  const Value inclusive = add_wrapped(to_, op.wrap, local, entering);

  Value first{to_.add(Slice{.axis = c_}, {inclusive})};
  keep(whole_, {id, 1}, {to_.add(Slice{.axis = q_}, {first})});
  if (!op.exclusive) return inclusive;
  // Before x[t] is added: the value at t+1, which is the initial one past the end.
  const Value at_t{to_.add(Merge{c_, q_, t_}, {inclusive})};
  Value next{to_.add(Shift{.axis = t_, .steps = -1}, {at_t})};
  if (initial.valid()) {
    Formula f(to_);
    const int end = f(ScalarOp::equal, f.scalar().index(t_),
                      f(ScalarOp::sub, f.scalar().extent(to_.axis(t_).extent), f.constant(1)));
    const int value = f.read(initial);
    next = f.finish(
        f(ScalarOp::select, end, op.wrap ? f(ScalarOp::wrap, value) : value, f.read(next)));
  }
  return {to_.add(Split{t_, c_, q_}, {next})};
}

}  // namespace krait::chunking
