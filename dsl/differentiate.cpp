#include "dsl/differentiate.h"

#include <algorithm>
#include <set>

#include "dsl/adjoint.h"
#include "dsl/error.h"

namespace krait {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string joined;
  for (const auto& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined.empty() ? "none" : joined;
}

void check(const std::string& field, const std::vector<std::string>& names,
           const std::vector<std::string>& allowed) {
  std::set<std::string> met;
  for (const auto& name : names) {
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
      throw UsageError(field, '"' + name + '"', listed(allowed));
    if (!met.insert(name).second) throw UsageError(field, '"' + name + "\" twice", "each once");
  }
}

/// The symbols whose sizes a node's results and expressions name; `given`: only those that the
/// shape of a result determines.
std::set<std::string> symbols(const Graph& graph, const Node& node, bool given) {
  std::set<std::string> found;
  auto name = [&](const Extent& extent) {
    if (!extent.is_constant() && (!given || extent.divisor == 1)) found.insert(extent.symbol);
  };
  for (const Type& type : node.results)
    for (const auto& axis : type.axes) name(graph.axis(axis).extent);
  if (const auto* map = std::get_if<Map>(&node.op))
    for (const ScalarNode& scalar : map->expression.nodes()) name(scalar.extent);
  return found;
}

/// Marks inputs of `forward` that give the sizes of symbols which needed nodes name and no needed
/// input gives. Those of `forward` that the gradient graph lacks are added to it.
void need_sizes(Graph& graph, const Graph& forward, std::vector<bool>& needed) {
  std::set<std::string> open, given;
  for (std::size_t id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    const Node& node = graph.node(static_cast<int>(id));
    open.merge(symbols(graph, node, false));
    if (std::holds_alternative<Input>(node.op)) given.merge(symbols(graph, node, true));
  }
  for (Value old : forward.inputs()) {
    bool gives = false;
    for (const auto& symbol : symbols(forward, forward.node(old.node), true))
      gives = (open.count(symbol) != 0 && given.insert(symbol).second) || gives;
    if (!gives) continue;
    const Input& input = forward.input_of(old);
    auto found = graph.find_input(input.name);
    Value own = found ? *found : graph.input(input);
    needed.resize(graph.nodes().size());
    needed[own.node] = true;
  }
}

/// The graph without the nodes that no output needs: first the inputs of `forward` that are needed,
/// in their order, then every cotangent, then the rest.
Graph in_order(Graph& graph, const Graph& forward, const std::vector<std::string>& cotangents) {
  std::vector<bool> needed(graph.nodes().size());
  for (const Output& output : graph.outputs()) needed[output.value.node] = true;
  for (std::size_t id = needed.size(); id-- > 0;)
    if (needed[id])
      for (Value operand : graph.node(static_cast<int>(id)).operands) needed[operand.node] = true;
  for (const auto& name : cotangents) needed[graph.find_input("cot." + name)->node] = true;
  need_sizes(graph, forward, needed);
  Graph result;
  Rewriter rewriter(graph, result);
  rewriter.copy_axes();
  for (Value old : forward.inputs()) {
    auto input = graph.find_input(forward.input_of(old).name);
    if (input && needed[input->node]) rewriter.copy(input->node);
  }
  for (const auto& name : cotangents) rewriter.copy(graph.find_input("cot." + name)->node);
  for (std::size_t id = 0; id < needed.size(); ++id)
    if (needed[id] && !rewriter.has({static_cast<int>(id), 0})) rewriter.copy(static_cast<int>(id));
  rewriter.copy_interface();
  return result;
}

}  // namespace

std::vector<std::string> floating_inputs(const Graph& graph) {
  std::vector<std::string> names;
  for (Value value : graph.inputs())
    if (is_float(graph.type(value).dtype)) names.push_back(graph.input_of(value).name);
  return names;
}

std::vector<std::string> floating_outputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const Output& output : graph.outputs())
    if (is_float(graph.type(output.value).dtype)) names.push_back(output.name);
  return names;
}

Graph differentiate(const Graph& graph, const std::vector<std::string>& cotangents,
                    const std::vector<std::string>& wanted) {
  check("cotangent", cotangents, floating_outputs(graph));
  check("wanted gradient", wanted, floating_inputs(graph));
  if (wanted.empty())
    throw UsageError("wanted gradients", "none", "some of " + listed(floating_inputs(graph)));

  AdjointBuilder b(graph, wanted);
  for (const auto& name : cotangents) {
    for (const Output& output : graph.outputs()) {
      if (output.name != name) continue;
      DType dtype = accumulator(graph.type(output.value).dtype);
      b.contribute(output.value, b.to().input({"cot." + name, output.order, dtype, Role::data}),
                   {});
    }
  }
  for (int id = static_cast<int>(graph.nodes().size()) - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    AdjointOf at{id, node, {}};
    bool any = false;
    for (int result = 0; result < static_cast<int>(node.results.size()); ++result) {
      at.g.push_back(b.total({id, result}));
      any = any || at.g.back().valid();
    }
    if (any) std::visit([&](const auto& op) { adjoint(b, op, at); }, node.op);
  }
  for (const auto& name : wanted) {
    Value input = *graph.find_input(name);
    const Type& type = graph.type(input);
    Value gradient = b.broadcast_or_zeros(b.total(input), type.dtype, type.axes);
    b.to().add_output("grad." + name, gradient, graph.input_of(input).order);
  }
  Graph result = in_order(b.to(), graph, cotangents);
  verify(result);
  return result;
}

Graph differentiate(const Graph& graph) {
  return differentiate(graph, floating_outputs(graph), floating_inputs(graph));
}

}  // namespace krait
