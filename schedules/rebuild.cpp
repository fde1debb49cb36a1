#include "schedules/rebuild.h"

namespace krait {
namespace {

struct NamedAxes {
  AxisNames operator()(const Input&) const { return {}; }
  AxisNames operator()(const Constant&) const { return {}; }
  AxisNames operator()(const Map&) const { return {}; }
  AxisNames operator()(const Contract& op) const { return op.sum; }
  AxisNames operator()(const Reduce& op) const { return op.axes; }
  AxisNames operator()(const Cumsum& op) const { return {op.axis}; }
  AxisNames operator()(const Scan& op) const { return {op.axis}; }
  AxisNames operator()(const Gap& op) const { return {op.axis, op.other}; }
  AxisNames operator()(const PairSum& op) const { return {op.axis}; }
  AxisNames operator()(const Shift& op) const { return {op.axis, op.state_axis}; }
  AxisNames operator()(const Gather& op) const { return {op.axis}; }
  AxisNames operator()(const ScatterSum& op) const { return {op.axis}; }
  AxisNames operator()(const Split& op) const { return {op.axis, op.outer, op.inner}; }
  AxisNames operator()(const Merge& op) const { return {op.axis, op.outer, op.inner}; }
  AxisNames operator()(const Slice& op) const { return {op.axis, op.result}; }
  AxisNames operator()(const Rename& op) const { return {op.from, op.to}; }
  AxisNames operator()(const Concat& op) const {
    AxisNames axes = op.axes;
    axes.push_back(op.result);
    return axes;
  }
};

}  // namespace

AxisNames named_axes(const Op& op) { return std::visit(NamedAxes{}, op); }

Graph rebuilt(const Graph& graph,
              const std::function<bool(int node, Graph& to, Rewriter& rewriter)>& rewrite) {
  Graph to;
  Rewriter rewriter(graph, to);
  rewriter.copy_axes();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    if (!rewrite(static_cast<int>(i), to, rewriter)) rewriter.copy(static_cast<int>(i));
  rewriter.copy_interface();
  return prune(std::move(to));
}

std::vector<Value> moved(const Rewriter& rewriter, const std::vector<Value>& values) {
  std::vector<Value> result;
  for (Value value : values) result.push_back(rewriter.at(value));
  return result;
}

}  // namespace krait
