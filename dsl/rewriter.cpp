#include <algorithm>

#include "dsl/error.h"
#include "dsl/graph.h"

namespace krait {

Rewriter::Rewriter(const Graph& from, Graph& to) : from_(from), to_(to) {
  std::size_t count = 0;
  first_.reserve(from.nodes().size());
  for (const Node& node : from.nodes()) {
    first_.push_back(count);
    count += node.results.size();
  }
  values_.resize(count);
}

void Rewriter::copy_axes() {
  same_axes_ = to_.axes().empty();
  for (const auto& axis : from_.axes()) to_.declare(axis);
  to_.set_accumulator(from_.accumulator());
}

Value Rewriter::at(Value from) const {
  const Value found = values_[place(from)];
  KRAIT_ASSERT(found.valid(), "value ", from_.label(from), " of node ", from.node,
               " is not in the new graph");
  return found;
}

void Rewriter::set(Value from, Value to) { values_[place(from)] = to; }

void Rewriter::copy(int id) {
  const Node& node = from_.node(id);
  std::vector<Value> operands;
  operands.reserve(node.operands.size());
  for (const Value& operand : node.operands) operands.push_back(at(operand));
  // Equal operands give equal results.
  bool same = same_axes_;
  for (std::size_t i = 0; i < operands.size() && same; ++i)
    same = to_.type(operands[i]) == from_.type(node.operands[i]);
  const int copied = to_.add(node.op, std::move(operands), same ? &node.results : nullptr);
  auto labels = from_.labels().find(id);
  for (int result = 0; result < static_cast<int>(node.results.size()); ++result) {
    set({id, result}, {copied, result});
    if (labels != from_.labels().end() && !labels->second[result].empty())
      to_.set_label({copied, result}, labels->second[result]);
  }
}

void Rewriter::copy_interface() {
  for (const auto& output : from_.outputs())
    to_.add_output(output.name, at(output.value), output.order);
  for (const auto& state : from_.states()) to_.add_state(state.in, state.out);
}

Graph prune(Graph graph) {
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<bool> needed(count, false);
  for (const auto& output : graph.outputs()) needed[output.value.node] = true;
  for (int id = count - 1; id >= 0; --id) {
    if (std::holds_alternative<Input>(graph.node(id).op)) needed[id] = true;
    if (!needed[id]) continue;
    for (const Value& operand : graph.node(id).operands) needed[operand.node] = true;
  }
  if (std::find(needed.begin(), needed.end(), false) == needed.end()) return graph;
  Graph result;
  Rewriter rewriter(graph, result);
  rewriter.copy_axes();
  for (int id = 0; id < count; ++id)
    if (needed[id]) rewriter.copy(id);
  rewriter.copy_interface();
  return result;
}

}  // namespace krait
