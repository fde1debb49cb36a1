#include "schedules/one_step.h"

#include "dsl/error.h"

namespace krait {
namespace {

std::string time_axis(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    std::string axis;
    if (const auto* scan = std::get_if<Scan>(&node.op)) axis = scan->axis;
    if (const auto* cumsum = std::get_if<Cumsum>(&node.op)) axis = cumsum->axis;
    if (const auto* shift = std::get_if<Shift>(&node.op)) axis = shift->axis;
    if (!axis.empty() && !graph.axis(axis).extent.is_constant()) return axis;
  }
  return "";
}

Extent fixed(const Extent& extent, const std::string& symbol) {
  return extent.symbol == symbol ? Extent::constant(extent.value({{symbol, 1}})) : extent;
}

Scalar fixed(const Scalar& expression, const std::string& symbol, const std::string& time) {
  Scalar result;
  std::vector<int> numbers;
  for (ScalarNode node : expression.nodes()) {
    for (int& argument : node.args)
      if (argument >= 0) argument = numbers[argument];
    if (node.op == ScalarOp::extent && node.extent.symbol == symbol)
      numbers.push_back(result.constant(static_cast<double>(node.extent.value({{symbol, 1}}))));
    else if (node.op == ScalarOp::index && node.axis == time)
      // Still varies along the axis, of one position: what reads it keeps its axes.
      numbers.push_back(result.index(time));
    else
      numbers.push_back(result.add(std::move(node)));
  }
  result.finish(numbers.back());
  return result;
}

/// leaving = decay * initial + u, at the only position.
void step_scan(const Graph& graph, int number, const Scan& scan, Graph& to, Rewriter& rewriter) {
  const Node& node = graph.node(number);
  const Value log_decay = rewriter.at(node.operands[0]);
  const Value u = rewriter.at(node.operands[1]);
  const DType dtype = node.results[0].dtype;
  const Value ones = to.constant(1, dtype, {scan.axis});
  if (!scan.has_initial) {
    const Value zeros = to.constant(0, dtype, node.results[0].axes);
    rewriter.set({number, 0}, zeros);
    const Value state = to.map(ScalarOp::add, u, zeros);
    rewriter.set({number, 1}, state);
    rewriter.set({number, 2}, {to.add(Slice{scan.axis, 0, false, ""}, {state}), 0});
    return;
  }
  const Value initial = to.map(ScalarOp::mul, rewriter.at(node.operands[2]), ones);
  Value decay = to.map(ScalarOp::exp, log_decay);
  if (scan.has_reset) {
    Scalar kept;
    kept.finish(kept.apply(ScalarOp::select,
                           kept.apply(ScalarOp::equal, kept.operand(0), kept.constant(0)),
                           kept.operand(1), kept.constant(0)));
    decay = to.map(kept, {rewriter.at(node.operands.back()), decay});
  }
  const Value state = to.map(ScalarOp::add, to.map(ScalarOp::mul, decay, initial), u);
  rewriter.set({number, 0}, initial);
  rewriter.set({number, 1}, state);
  rewriter.set({number, 2}, {to.add(Slice{scan.axis, 0, false, ""}, {state}), 0});
}

/// The running value at the only position: initial, cut by a reset, and x.
void step_cumsum(const Graph& graph, int number, const Cumsum& sum, Graph& to, Rewriter& rewriter) {
  const Node& node = graph.node(number);
  const Type& type = node.results[0];
  const Value ones = to.constant(1, type.dtype, {sum.axis});
  const Value entering = sum.has_initial
                             ? to.map(ScalarOp::mul, rewriter.at(node.operands[1]), ones)
                             : to.constant(0, type.dtype, type.axes);
  Value kept = entering;
  if (sum.has_reset && !sum.reverse) {
    Scalar cut;
    cut.finish(cut.apply(ScalarOp::select,
                         cut.apply(ScalarOp::equal, cut.operand(0), cut.constant(0)),
                         cut.operand(1), cut.constant(0)));
    kept = to.map(cut, {rewriter.at(node.operands.back()), entering});
  }
  Value value = to.map(ScalarOp::add, rewriter.at(node.operands[0]), kept);
  if (sum.wrap) value = to.map(ScalarOp::wrap, value);
  rewriter.set({number, 0}, sum.exclusive ? entering : value);
  rewriter.set({number, 1}, {to.add(Slice{sum.axis, 0, false, ""}, {value}), 0});
}

/// What stands so many positions before or after the only one: of the state, or the fill.
void step_shift(const Graph& graph, int number, const Shift& shift, Graph& to, Rewriter& rewriter) {
  const Node& node = graph.node(number);
  const Type& type = node.results[0];
  const Value value{number, 0};
  if (shift.steps == 0) return rewriter.set(value, rewriter.at(node.operands[0]));
  if (!shift.has_state || shift.steps < 0)
    return rewriter.set(value, to.constant(shift.fill, type.dtype, type.axes));
  const std::int64_t width = graph.axis(shift.state_axis).extent.offset;
  const Slice slice{shift.state_axis, width - shift.steps, false, ""};
  const Value before{to.add(slice, {rewriter.at(node.operands[1])}), 0};
  rewriter.set(value, to.map(ScalarOp::mul, before, to.constant(1, type.dtype, {shift.axis})));
}

}  // namespace

Graph one_step(const Graph& graph) {
  const std::string time = time_axis(graph);
  if (time.empty()) return graph;
  const std::string symbol = graph.axis(time).extent.symbol;
  Graph to;
  to.set_accumulator(graph.accumulator());
  for (const Axis& axis : graph.axes()) to.declare(Axis(axis.name, fixed(axis.extent, symbol)));
  Rewriter rewriter(graph, to);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int number = static_cast<int>(i);
    const Node& node = graph.node(number);
    if (const auto* scan = std::get_if<Scan>(&node.op); scan && scan->axis == time) {
      KRAIT_ASSERT(!scan->reverse, "a step of a reverse scan");
      step_scan(graph, number, *scan, to, rewriter);
    } else if (const auto* sum = std::get_if<Cumsum>(&node.op); sum && sum->axis == time) {
      step_cumsum(graph, number, *sum, to, rewriter);
    } else if (const auto* shift = std::get_if<Shift>(&node.op); shift && shift->axis == time) {
      step_shift(graph, number, *shift, to, rewriter);
    } else if (const auto* map = std::get_if<Map>(&node.op)) {
      std::vector<Value> operands;
      for (Value operand : node.operands) operands.push_back(rewriter.at(operand));
      rewriter.set({number, 0}, to.map(fixed(map->expression, symbol, time), operands));
    } else {
      rewriter.copy(number);
    }
  }
  rewriter.copy_interface();
  return prune(std::move(to));
}

}  // namespace krait
