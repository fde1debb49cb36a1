#include "schedules/checkpoint.h"

#include <algorithm>
#include <functional>
#include <map>

#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "schedules/analysis.h"
#include "schedules/chunk.h"

namespace krait {
namespace {

/// The graph in which each checkpoint is an input for all who read it, and an output.
Graph cut_at(const Graph& graph, const std::vector<Checkpoint>& cuts) {
  Graph to;
  Rewriter rewriter(graph, to);
  rewriter.copy_axes();
  std::map<Value, Value> computed;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int number = static_cast<int>(i);
    rewriter.copy(number);
    for (const Checkpoint& cut : cuts) {
      if (cut.value.node != number) continue;
      computed[cut.value] = rewriter.at(cut.value);
      Input input;
      input.name = cut.name;
      input.order = storage_order(graph, graph.type(cut.value).axes);
      input.dtype = graph.type(cut.value).dtype;
      rewriter.set(cut.value, to.input(input));
    }
  }
  rewriter.copy_interface();
  for (const Checkpoint& cut : cuts)
    to.add_output(cut.name, computed.at(cut.value),
                  storage_order(graph, graph.type(cut.value).axes));
  return to;
}

/// Feeds the gradient of each checkpoint as an input to the cotangent of it as an output.
Graph joined(const Graph& gradients, const std::vector<Checkpoint>& cuts,
             const std::vector<std::string>& wanted) {
  std::map<std::string, Value> outputs;
  for (const Output& output : gradients.outputs()) outputs[output.name] = output.value;
  std::map<std::string, Value> feeds;
  for (const Checkpoint& cut : cuts)
    if (auto found = outputs.find("grad." + cut.name); found != outputs.end())
      feeds["cot." + cut.name] = found->second;
  Graph to;
  Rewriter rewriter(gradients, to);
  rewriter.copy_axes();
  std::function<void(Value)> copy = [&](Value value) {
    if (rewriter.has(value)) return;
    const Node& node = gradients.node(value.node);
    if (const auto* input = std::get_if<Input>(&node.op))
      if (auto feed = feeds.find(input->name); feed != feeds.end()) {
        copy(feed->second);
        rewriter.set(value, rewriter.at(feed->second));
        return;
      }
    for (Value operand : node.operands) copy(operand);
    rewriter.copy(value.node);
  };
  for (const Output& output : gradients.outputs()) {
    const bool asked = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
      return output.name == "grad." + name;
    });
    if (!asked) continue;
    copy(output.value);
    to.add_output(output.name, rewriter.at(output.value), output.order);
  }
  return prune(std::move(to));
}

}  // namespace

std::vector<Checkpoint> checkpoints(const Graph& graph) {
  const Analysis analysis(graph);
  std::vector<Checkpoint> found;
  std::vector<bool> has_state(graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.node(static_cast<int>(i));
    const bool reads_state = std::any_of(node.operands.begin(), node.operands.end(),
                                         [&](Value v) { return has_state[v.node]; });
    const bool reads_product = std::any_of(node.operands.begin(), node.operands.end(),
                                           [&](Value v) { return analysis.product[v.node]; });
    bool keep = analysis.product[i];
    if (std::holds_alternative<Scan>(node.op)) {
      has_state[i] = true;
    } else if (reads_state) {
      // States are virtual until something sums over one of their axes.
      const bool sums = !analysis.summed(static_cast<int>(i)).empty();
      has_state[i] = !sums;
      keep |= sums;
    } else if (std::holds_alternative<Map>(node.op) && reads_product) {
      keep |= analysis.users[i].size() > 1 && node.operands.size() > 1 &&
              std::none_of(node.operands.begin(), node.operands.end(),
                           [&](Value v) { return graph.type(v).axes != node.results[0].axes; });
    }
    if (keep) found.push_back({"saved." + std::to_string(found.size()), {static_cast<int>(i), 0}});
  }
  return found;
}

Graph with_checkpoints(const Graph& graph, const std::vector<Checkpoint>& kept) {
  Graph result = graph;
  for (const Checkpoint& checkpoint : kept)
    result.add_output(checkpoint.name, checkpoint.value,
                      storage_order(graph, graph.type(checkpoint.value).axes));
  return result;
}

Graph backward_graph(const Graph& graph, const std::vector<Checkpoint>& cuts,
                     std::int64_t chunk_size, const std::vector<std::string>& cotangents,
                     const std::vector<std::string>& wanted) {
  std::vector<std::string> all_cotangents = cotangents;
  std::vector<std::string> all_wanted = wanted;
  for (const Checkpoint& cut : cuts) {
    all_cotangents.push_back(cut.name);
    all_wanted.push_back(cut.name);
  }
  const Graph chunked = chunk(cut_at(graph, cuts), chunk_size);
  return joined(differentiate(chunked, all_cotangents, all_wanted), cuts, wanted);
}

}  // namespace krait
