// Rules of the ops that run along an axis. Along a tile axis they are one statement. Along a loop
// the running value stays in a buffer from one iteration to the next:
//
//   forwards   S <- decay S + u         entering: S before, leaving: S after, last: S after the
//   loop backwards  leaving: S + u           S <- decay (S + u), entering: S before
//
// A sum of products that feeds the state alone is accumulated straight into it.
#include "codegen/build_ops.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// A state that a loop carries: its buffer, the places inside and outside of the loop.
struct Carried {
  int buffer = -1;
  std::vector<int> domain;
  Place inside, outside, after;
};

Carried carry(Values& values, int number, const std::string& axis, int last_result) {
  Builder& builder = values.builder();
  Type type = values.graph().node(number).results[last_result];
  // In parts or not, what runs on from a state that was kept is one state.
  if (values.kept() != nullptr)
    type.axes = without(values.graph().node(number).results[0].axes, {axis});
  const int loop = builder.loop_of(axis);
  Carried carried;
  carried.inside = {loop + 1, false};
  carried.outside = {loop, false};
  carried.after = {loop, true};
  carried.domain = builder.vars(builder.tile_axes(type.axes));
  carried.buffer =
      builder.tile("state_" + values.graph().label({number, last_result}), type.dtype, type.axes);
  return carried;
}

/// The state before the first iteration.
void start(Values& values, const Carried& state, std::optional<Value> initial, bool wrap) {
  Builder& builder = values.builder();
  const Access to = builder.access(state.buffer);
  if (!initial) {
    builder.add(state.outside, Fill{state.domain, to, 0});
    return;
  }
  MapTile copy;
  copy.domain = state.domain;
  copy.compute = values.graph().accumulator();
  copy.operands = {builder.access(values.on_chip(*initial))};
  copy.destinations = {to};
  Scalar expression;
  const int value = expression.operand(0);
  expression.finish(wrap ? expression.apply(ScalarOp::wrap, value) : value);
  copy.results = {expression};
  builder.add(state.outside, std::move(copy));
}

/// One elementwise statement over `domain`.
void add_map(Values& values, Place place, const std::vector<int>& domain, const Scalar& expression,
             std::vector<Access> operands, const Access& destination) {
  MapTile map;
  map.domain = domain;
  map.compute = values.graph().accumulator();
  map.results = {expression};
  map.operands = std::move(operands);
  map.destinations = {destination};
  values.builder().add(place, std::move(map));
}

bool wanted(Values& values, Value value) {
  return values.readers(value) > 0 || values.is_stored(value);
}

/// exp(log decay), 0 where a document starts, in a buffer of its own: few elements, many readers.
int decay_of(Values& values, const Node& node, const Scan& op, Place place) {
  Builder& builder = values.builder();
  const Value log_decay = node.operands[0];
  AxisNames axes = values.graph().type(log_decay).axes;
  std::vector<Access> operands{builder.access(values.on_chip(log_decay))};
  Scalar expression;
  int result = expression.apply(ScalarOp::exp_nonpositive, expression.operand(0));
  if (op.has_reset) {
    const Value reset = node.operands.back();
    for (const auto& axis : values.graph().type(reset).axes) axes.push_back(axis);
    operands.push_back(builder.access(values.on_chip(reset)));
    result = expression.apply(
        ScalarOp::select,
        expression.apply(ScalarOp::equal, expression.operand(1), expression.constant(0)), result,
        expression.constant(0));
  }
  expression.finish(result);
  axes = values.graph().sorted(axes);
  const int buffer = builder.tile("decay", node.results[0].dtype, axes);
  add_map(values, place, builder.vars(builder.tile_axes(axes)), expression, std::move(operands),
          builder.access(buffer));
  return buffer;
}

Scalar scaled_sum() {  // operand 0 * operand 1 + operand 2
  Scalar e;
  e.finish(
      e.apply(ScalarOp::add, e.apply(ScalarOp::mul, e.operand(0), e.operand(1)), e.operand(2)));
  return e;
}

Scalar binary(ScalarOp op) {
  Scalar e;
  e.finish(e.apply(op, e.operand(0), e.operand(1)));
  return e;
}

Scalar identity() {
  Scalar e;
  e.finish(e.operand(0));
  return e;
}

/// The node that computes u, if it is a product that only this scan reads and that can be
/// accumulated.
std::optional<Mma> foldable(Values& values, const Node& scan, int number) {
  const Value u = scan.operands[1];
  const Node& node = values.graph().node(u.node);
  const auto* contract = std::get_if<Contract>(&node.op);
  if (contract == nullptr || !values.is_computed(u) || !values.is_folded(u.node)) return {};
  auto product = product_statement(values, u.node);
  KRAIT_ASSERT(product, "node ", number, " folds what is no product");
  product->accumulate = true;
  return product;
}

}  // namespace

void build_pair_sum(Values& values, int number, const PairSum& op) {
  Builder& builder = values.builder();
  const Node& node = values.graph().node(number);
  KRAIT_ASSERT(!builder.is_mapped(op.axis), "a pair sum along the cut axis ", op.axis);
  const Place place = values.place_of_node(number);
  const Type& type = node.results[0];
  ScanTile scan;
  scan.domain = builder.vars(builder.tile_axes(without(type.axes, {op.axis})));
  scan.along = builder.var(op.axis);
  scan.pair = type.dtype == DType::f32;
  scan.source = builder.access(values.on_chip(node.operands[0]));
  const int high = builder.tile("sum", type.dtype, type.axes);
  const int low = builder.tile("sum_low", type.dtype, type.axes);
  scan.destination = builder.access(high);
  if (scan.pair)
    scan.low = builder.access(low);
  else
    builder.add(place, Fill{builder.vars(builder.tile_axes(type.axes)), builder.access(low), 0});
  values.define({number, 0}, high, place);
  values.define({number, 1}, low, place);
  builder.add(place, std::move(scan));
}

void build_cumsum(Values& values, int number, const Cumsum& op) {
  Builder& builder = values.builder();
  const Node& node = values.graph().node(number);
  const Value running{number, 0};
  const Value last{number, 1};
  std::optional<Value> initial;
  std::optional<Value> reset;
  if (op.has_initial) initial = node.operands[1];
  if (op.has_reset) reset = node.operands.back();
  // A late sum sees its resets where they stand.
  const bool looks_ahead = op.reverse && !op.late;
  if (!builder.is_mapped(op.axis)) {
    KRAIT_ASSERT(!op.late || !reset, "a late sum with a reset along ", op.axis, ", no loop");
    const Place place = values.place_of_node(number);
    ScanTile scan;
    scan.domain = builder.vars(builder.tile_axes(node.results[1].axes));
    scan.along = builder.var(op.axis);
    scan.reverse = op.reverse;
    scan.exclusive = op.exclusive;
    scan.wrap = op.wrap;
    scan.source = builder.access(values.on_chip(node.operands[0]));
    if (initial) scan.initial = builder.access(values.on_chip(*initial));
    if (reset) scan.reset = builder.access(values.on_chip(*reset));
    if (wanted(values, running)) {
      const int buffer = builder.tile("running", node.results[0].dtype, node.results[0].axes);
      values.define(running, buffer, place);
      scan.destination = builder.access(buffer);
    }
    if (wanted(values, last)) {
      const int buffer = builder.tile("total", node.results[1].dtype, node.results[1].axes);
      values.define(last, buffer, place);
      scan.last = builder.access(buffer);
    }
    builder.add(place, std::move(scan));
    return;
  }
  KRAIT_ASSERT(builder.loop_of(op.axis) >= 0, "kernel ", builder.kernel().name,
               ": the running sum ", number, " runs along the grid axis ", op.axis);
  const Carried state = carry(values, number, op.axis, 1);
  start(values, state, initial, op.wrap);
  // Backwards a reset cuts between this position and the one before it: it counts in the next turn.
  int cut = -1;
  std::vector<int> cut_domain;
  if (reset && looks_ahead) {
    const AxisNames axes = values.graph().type(*reset).axes;
    cut = builder.tile("cut", DType::i32, axes);
    cut_domain = builder.vars(builder.tile_axes(axes));
    builder.add(state.outside, Fill{cut_domain, builder.access(cut), 0});
  }
  auto update = [&values, &builder, node, reset, state, cut, cut_domain, looks_ahead, op] {
    Scalar sum;
    int before = sum.operand(0);
    std::vector<Access> operands{builder.access(state.buffer),
                                 builder.access(values.on_chip(node.operands[0]))};
    if (reset) {
      operands.push_back(builder.access(looks_ahead ? cut : values.on_chip(*reset)));
      before =
          sum.apply(ScalarOp::select, sum.apply(ScalarOp::equal, sum.operand(2), sum.constant(0)),
                    before, sum.constant(0));
    }
    int result = sum.apply(ScalarOp::add, before, sum.operand(1));
    if (op.wrap) result = sum.apply(ScalarOp::wrap, result);
    sum.finish(result);
    add_map(values, state.inside, state.domain, sum, std::move(operands),
            builder.access(state.buffer));
    if (cut >= 0)
      builder.add(state.inside, Copy{cut_domain, builder.access(cut),
                                     builder.access(values.on_chip(*reset)), 0, false});
  };
  if (op.exclusive)
    values.defer(state.inside, update);
  else
    update();
  values.define(running, state.buffer, state.inside);
  values.define(last, state.buffer, state.after);
}

void build_scan(Values& values, int number, const Scan& op) {
  Builder& builder = values.builder();
  const Node& node = values.graph().node(number);
  // A late scan is the forward recurrence; the loop itself runs backwards.
  const bool decays_last = op.reverse && !op.late;
  KRAIT_ASSERT(builder.loop_of(op.axis) >= 0, "a scan along ", op.axis, ", which is no loop");
  const Value entering{number, 0};
  const Value leaving{number, 1};
  const Carried state = carry(values, number, op.axis, 2);
  std::optional<Value> initial;
  if (op.has_initial) initial = node.operands[2];
  if (values.kept() == nullptr)
    start(values, state, initial, false);
  else
    for (const View& view : *values.kept())
      builder.add(state.outside, Copy{state.domain, builder.access(state.buffer),
                                      builder.access(view, false), view.fill, view.keep});
  const int decay = decay_of(values, node, op, state.inside);
  const Access whole = builder.access(state.buffer);
  const bool keeps_entering = wanted(values, entering);
  values.define({number, 2}, state.buffer, state.after);
  if (keeps_entering) values.define(entering, state.buffer, state.inside);

  if (!wanted(values, leaving)) {
    auto update = [&values, &builder, node, number, state, decay, decays_last, whole] {
      if (auto product = foldable(values, node, number)) {
        product->destination = whole;
        const std::vector<Access> operands{builder.access(decay), whole};
        if (decays_last) builder.add(state.inside, *product);
        add_map(values, state.inside, state.domain, binary(ScalarOp::mul), operands, whole);
        if (!decays_last) builder.add(state.inside, *product);
        return;
      }
      const Access u = builder.access(values.on_chip(node.operands[1]));
      if (!decays_last) {
        add_map(values, state.inside, state.domain, scaled_sum(), {builder.access(decay), whole, u},
                whole);
        return;
      }
      Scalar e;
      e.finish(
          e.apply(ScalarOp::mul, e.operand(0), e.apply(ScalarOp::add, e.operand(1), e.operand(2))));
      add_map(values, state.inside, state.domain, e, {builder.access(decay), whole, u}, whole);
    };
    values.defer(state.inside, update);
    return;
  }
  // Somebody reads the leaving value: it gets a buffer of its own where the entering one is read
  // too.
  const Access u = builder.access(values.on_chip(node.operands[1]));
  const bool own = keeps_entering || decays_last;
  const int after =
      own ? builder.tile("leaving", node.results[1].dtype, node.results[1].axes) : state.buffer;
  values.define(leaving, after, state.inside);
  if (decays_last)
    add_map(values, state.inside, state.domain, binary(ScalarOp::add), {whole, u},
            builder.access(after));
  else
    add_map(values, state.inside, state.domain, scaled_sum(), {builder.access(decay), whole, u},
            builder.access(after));
  if (!own) return;
  values.defer(state.inside, [&values, &builder, state, decay, after, decays_last, whole] {
    if (decays_last)
      add_map(values, state.inside, state.domain, binary(ScalarOp::mul),
              {builder.access(decay), builder.access(after)}, whole);
    else
      add_map(values, state.inside, state.domain, identity(), {builder.access(after)}, whole);
  });
}

}  // namespace krait
