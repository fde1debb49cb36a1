#include "schedules/rebuild.h"

namespace krait {

Graph rebuilt(const Graph& graph,
              const std::function<bool(int node, Graph& to, Rewriter& rewriter)>& rewrite) {
  Graph to;
  Rewriter rewriter(graph, to);
  rewriter.copy_axes();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    if (!rewrite(static_cast<int>(i), to, rewriter)) rewriter.copy(static_cast<int>(i));
  rewriter.copy_interface();
  return prune(to);
}

std::vector<Value> moved(const Rewriter& rewriter, const std::vector<Value>& values) {
  std::vector<Value> result;
  for (Value value : values) result.push_back(rewriter.at(value));
  return result;
}

}  // namespace krait
