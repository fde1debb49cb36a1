#include "schedules/chunk.h"

#include <iterator>
#include <set>

#include "dsl/error.h"
#include "schedules/chunk_rewrite.h"

namespace krait {
namespace chunking {

Rewrite::Rewrite(const Graph& graph, const std::string& time, std::int64_t chunk)
    : from_(graph), size_(chunk), t_(time) {
  to_.set_accumulator(graph.accumulator());
  c_ = graph.fresh_axis_name("c");
  q_ = graph.fresh_axis_name("q");
  k_ = graph.fresh_axis_name("k");
  for (const Axis& axis : graph.axes()) {
    to_.declare(axis);
    if (axis.name != t_) continue;
    to_.declare(Axis(c_, axis.extent.ceil_div(size_)));
    to_.declare(Axis(q_, size_));
    to_.declare(Axis(k_, size_));
  }
}

Graph Rewrite::run() {
  for (Value input : from_.inputs()) keep(whole_, input, to_.input(from_.input_of(input)));
  // In order, so that what a node asks for is near: the recursion of whole() and chunked() stays
  // shallow.
  for (int id = 0; id < static_cast<int>(from_.nodes().size()); ++id) {
    const Node& node = from_.node(id);
    homes_.push_back(home_of(node));
    const auto* scan = std::get_if<Scan>(&node.op);
    const auto* cumsum = std::get_if<Cumsum>(&node.op);
    if (scan != nullptr && scan->axis == t_) {
      chunk_scan(id);
    } else if (cumsum != nullptr && cumsum->axis == t_) {
      chunk_cumsum(id);
    } else if (is_matrix_product(node)) {
      extend_linear(id);
      if (linear_.count({id}) == 0) whole({id});
    } else {
      extend_linear(id);
    }
  }
  for (const Output& output : from_.outputs())
    to_.add_output(output.name, whole(output.value), output.order);
  for (const StatePair& state : from_.states()) to_.add_state(state.in, state.out);
  return std::move(to_);
}

namespace {

/// The axis of the scans of a graph, or of its running sums where it has no scan; empty where it
/// has neither.
std::string scanned_axis(const Graph& graph) {
  std::set<std::string> scans, sums;
  for (const Node& node : graph.nodes()) {
    if (const auto* scan = std::get_if<Scan>(&node.op)) scans.insert(scan->axis);
    if (const auto* cumsum = std::get_if<Cumsum>(&node.op)) sums.insert(cumsum->axis);
  }
  const auto& axes = scans.empty() ? sums : scans;
  if (axes.size() > 1)
    throw NotChunkable{"it scans along several axes: " + *axes.begin() + ", " +
                       *std::next(axes.begin())};
  return axes.empty() ? "" : *axes.begin();
}

Graph rewritten(const Graph& graph, std::int64_t chunk) {
  const Graph live = prune(graph);
  const std::string time = scanned_axis(live);
  if (time.empty()) return live;
  return Rewrite(live, time, chunk).run();
}

}  // namespace
}  // namespace chunking

std::optional<std::string> why_not_chunkable(const Graph& graph) {
  try {
    chunking::rewritten(graph, 2);
    return {};
  } catch (const chunking::NotChunkable& hindrance) {
    return hindrance.reason;
  }
}

Graph chunk(const Graph& graph, std::int64_t chunk) {
  if (chunk < 1) throw UsageError("chunk", text(chunk), "1 and up");
  try {
    Graph result = prune(chunking::rewritten(graph, chunk));
    verify(result);
    return result;
  } catch (const chunking::NotChunkable& hindrance) {
    throw UsageError("the graph cannot be chunked: " + hindrance.reason +
                     "; allowed: a recurrent plan");
  }
}

}  // namespace krait
