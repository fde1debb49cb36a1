#include "schedules/normalise.h"

#include <algorithm>
#include <functional>

#include "schedules/rebuild.h"

namespace krait {

Graph fuse_maps(const Graph& graph) {
  const auto users = graph.users();
  std::vector<bool> is_output(graph.nodes().size());
  for (const Output& output : graph.outputs()) is_output[output.value.node] = true;
  auto fused = [&](int node, const Node& reader) {
    return std::holds_alternative<Map>(graph.node(node).op) && users[node].size() == 1 &&
           !is_output[node] && graph.node(node).results[0].axes == reader.results[0].axes &&
           is_float(graph.node(node).results[0].dtype) == is_float(reader.results[0].dtype);
  };
  return rebuilt(graph, [&](int number, Graph& to, Rewriter& rewriter) {
    const Node& node = graph.node(number);
    if (!std::holds_alternative<Map>(node.op)) return false;
    // Readers come later: what goes into one of them still is copied, and pruned in the end.
    Scalar expression;
    std::vector<Value> operands;
    std::function<int(int)> expand = [&](int id) {
      const Node& map = graph.node(id);
      std::vector<int> arguments;
      for (Value operand : map.operands) {
        if (fused(operand.node, map)) {
          arguments.push_back(expand(operand.node));
          continue;
        }
        const Value value = rewriter.at(operand);
        auto found = std::find(operands.begin(), operands.end(), value);
        if (found == operands.end()) found = operands.insert(operands.end(), value);
        arguments.push_back(expression.operand(static_cast<int>(found - operands.begin())));
      }
      return expression.inline_expression(std::get<Map>(map.op).expression, arguments);
    };
    const int result = expand(number);
    expression.finish(result);
    rewriter.set({number, 0}, to.map(expression, operands));
    if (auto labels = graph.labels().find(number); labels != graph.labels().end())
      to.set_label(rewriter.at({number, 0}), labels->second[0]);
    return true;
  });
}

Graph normalise(const Graph& graph) {
  return fuse_maps(join_parts(pick_indicated(
      fuse_maps(pair_contracts(slice_early(take_shifted_late(lower_gaps(graph))))))));
}

}  // namespace krait
