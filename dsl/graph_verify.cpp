#include <algorithm>

#include "dsl/error.h"
#include "dsl/graph.h"

namespace krait {
namespace {

std::string described(const Graph& graph, int id) {
  return text("node ", graph.label({id}), " (number ", id, ", ", name(graph.node(id).op), ")");
}

void verify_node(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  for (const Value& operand : node.operands) {
    KRAIT_ASSERT(operand.node >= 0 && operand.node < id, described(graph, id), " reads node ",
                 operand.node, ", which does not come before it");
    KRAIT_ASSERT(operand.result >= 0 &&
                     operand.result < static_cast<int>(graph.node(operand.node).results.size()),
                 described(graph, id), " reads result ", operand.result, " of node ", operand.node);
  }
  std::vector<Type> results;
  try {
    results = infer(graph, node.op, node.operands);
  } catch (const UsageError& error) {
    throw InternalError(described(graph, id) + " breaks a rule: " + error.what());
  }
  KRAIT_ASSERT(results == node.results, described(graph, id),
               " bears other types than its op gives");
}

const Output* find_output(const Graph& graph, const std::string& name) {
  for (const auto& output : graph.outputs())
    if (output.name == name) return &output;
  return nullptr;
}

}  // namespace

void verify(const Graph& graph) {
  std::vector<std::string> names;
  auto take = [&](const std::string& kind, const std::string& name) {
    const std::string full = kind + " " + name;
    KRAIT_ASSERT(std::find(names.begin(), names.end(), full) == names.end(), full, " stands twice");
    names.push_back(full);
  };
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    verify_node(graph, id);
    if (const auto* input = std::get_if<Input>(&graph.node(id).op)) take("input", input->name);
  }
  for (const auto& output : graph.outputs()) {
    take("output", output.name);
    const Value value = output.value;
    KRAIT_ASSERT(value.node >= 0 && value.node < static_cast<int>(graph.nodes().size()) &&
                     value.result >= 0 &&
                     value.result < static_cast<int>(graph.node(value.node).results.size()),
                 "output ", output.name, " reads result ", value.result, " of node ", value.node);
    const AxisNames& axes = graph.type(value).axes;
    KRAIT_ASSERT(output.order.size() == axes.size() && graph.sorted(output.order) == axes,
                 "output ", output.name, " of ", described(graph, value.node),
                 " is not stored along its axes");
  }
  for (const auto& state : graph.states()) {
    take("state", state.in);
    take("state left as", state.out);
    const auto in = graph.find_input(state.in);
    KRAIT_ASSERT(in, "state ", state.in, " is no input");
    const Output* out = find_output(graph, state.out);
    KRAIT_ASSERT(out != nullptr, "state ", state.in, " leaves ", state.out, ", which is no output");
    KRAIT_ASSERT(graph.input_of(*in).order == out->order, "state ", state.in,
                 " leaves a value of another shape as ", state.out, " from ",
                 described(graph, out->value.node));
    KRAIT_ASSERT(graph.type(*in).dtype == graph.type(out->value).dtype, "state ", state.in,
                 " leaves a value of another dtype as ", state.out, " from ",
                 described(graph, out->value.node));
  }
}

}  // namespace krait
