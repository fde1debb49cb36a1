#include "dsl/graph.h"

#include <algorithm>
#include <type_traits>

#include "dsl/error.h"

namespace krait {

std::string_view name(const Op& op) {
  static constexpr std::string_view names[] = {
      "Input", "Constant", "Map",     "Contract", "Reduce", "Cumsum",
      "Scan",  "Gap",      "PairSum", "Shift",    "Gather", "ScatterSum",
      "Split", "Merge",    "Slice",   "Concat",   "Rename"};
  static_assert(std::size(names) == std::variant_size_v<Op>);
  return names[op.index()];
}

// -------------------------------------------------------------------------------------------- axes

const Axis& Graph::axis(const std::string& name) const {
  for (const auto& axis : axes_)
    if (axis.name == name) return axis;
  std::string known;
  for (const auto& axis : axes_) known += (known.empty() ? "" : ", ") + axis.name;
  throw UsageError("axis", '"' + name + '"', known.empty() ? "none is declared" : known);
}

bool Graph::has_axis(const std::string& name) const {
  return std::any_of(axes_.begin(), axes_.end(), [&](const Axis& a) { return a.name == name; });
}

void Graph::declare(const Axis& axis) {
  KRAIT_REQUIRE(!axis.name.empty(), "the name of an axis is empty; allowed: any other text");
  if (!has_axis(axis.name)) {
    axes_.push_back(axis);
    return;
  }
  const Extent& known = this->axis(axis.name).extent;
  if (!(known == axis.extent))
    throw UsageError("size of axis " + axis.name, axis.extent.text(),
                     known.text() + ", as it was declared before");
}

AxisNames Graph::sorted(AxisNames names) const {
  std::vector<char> named(axes_.size(), 0);
  for (const auto& name : names)
    named[static_cast<std::size_t>(&axis(name) - axes_.data())] = 1;  // throws for an unknown one
  AxisNames result;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (named[i] != 0) result.push_back(axes_[i].name);
  return result;
}

std::string Graph::fresh_axis_name(const std::string& base) const {
  std::string name = base;
  for (int number = 1; has_axis(name); ++number) name = base + std::to_string(number);
  return name;
}

// ------------------------------------------------------------------------------------------- nodes

namespace {

/// Sets of axes in the order of the graph, so that equal ops compare equal.
void normalise(const Graph& graph, Op& op) {
  auto sort = [&](AxisNames& axes, const char* field) {
    for (const auto& axis : axes)
      if (!graph.has_axis(axis)) throw UsageError(field, '"' + axis + '"', "a declared axis");
    axes = graph.sorted(std::move(axes));
  };
  if (auto* contract = std::get_if<Contract>(&op)) sort(contract->sum, "Contract.sum");
  if (auto* reduce = std::get_if<Reduce>(&op)) sort(reduce->axes, "Reduce.axes");
  if (auto* constant = std::get_if<Constant>(&op)) sort(constant->axes, "Constant.axes");
}

/// Equal for equal nodes.
std::size_t hash_of(const Op& op, const std::vector<Value>& operands) {
  std::size_t hash = op.index();
  const auto put = [&](std::size_t number) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  for (const Value& value : operands)
    put(static_cast<std::size_t>(value.node) * 4 + static_cast<std::size_t>(value.result));
  if (const auto* map = std::get_if<Map>(&op))
    for (const auto& node : map->expression.nodes())
      put(static_cast<std::size_t>(node.op) << 40 ^ static_cast<std::size_t>(node.args[0]) << 20 ^
          static_cast<std::size_t>(node.args[1]));
  if (const auto* input = std::get_if<Input>(&op)) put(std::hash<std::string>()(input->name));
  return hash;
}

bool is_input(const Op& op, const std::string& name) {
  const auto* input = std::get_if<Input>(&op);
  return input != nullptr && input->name == name;
}

}  // namespace

int Graph::add(Op op, std::vector<Value> operands) {
  return add(std::move(op), std::move(operands), nullptr);
}

int Graph::add(Op op, std::vector<Value> operands, const std::vector<Type>* types) {
  for (const Value& value : operands) {
    KRAIT_REQUIRE(value.node >= 0 && value.node < static_cast<int>(nodes_.size()), name(op),
                  " reads node ", value.node, "; allowed: one of the graph's ", nodes_.size());
    const auto results = nodes_[value.node].results.size();
    KRAIT_REQUIRE(value.result >= 0 && value.result < static_cast<int>(results), name(op),
                  " reads result ", value.result, " of node ", value.node, "; allowed: one of its ",
                  results);
  }
  if (types == nullptr) normalise(*this, op);
  std::vector<int>& equal = known_[hash_of(op, operands)];
  const auto* input = std::get_if<Input>(&op);
  for (int id : equal) {
    if (input != nullptr && is_input(nodes_[id].op, input->name))
      throw UsageError("name of an input", '"' + input->name + '"',
                       "names that the graph does not have yet");
    if (nodes_[id].operands == operands && nodes_[id].op == op) return id;
  }
  std::vector<Type> results = types != nullptr ? *types : infer(*this, op, operands);
  nodes_.push_back({std::move(op), std::move(operands), std::move(results)});
  const int id = static_cast<int>(nodes_.size()) - 1;
  equal.push_back(id);
  return id;
}

Value Graph::constant(double value, DType dtype, AxisNames axes) {
  return {add(Constant{value, dtype, std::move(axes)}, {})};
}

Value Graph::map(Scalar expression, std::vector<Value> operands) {
  KRAIT_REQUIRE(expression.operand_count() <= static_cast<int>(operands.size()),
                "Map.expression reads ", expression.operand_count(), " operands; allowed: at most ",
                operands.size());
  const Type type = infer(*this, Map{expression}, operands)[0];
  const auto type_of = [&](const Scalar& other, const std::vector<Value>& read) {
    return read == operands && other == expression ? type : infer(*this, Map{other}, read)[0];
  };
  // One place for each value; literals into the expression.
  Scalar folded;
  std::vector<Value> distinct;
  std::vector<int> places;
  for (const Value& value : operands) {
    const auto* literal = std::get_if<Constant>(&nodes_[value.node].op);
    if (literal != nullptr && literal->axes.empty()) {
      places.push_back(folded.constant(literal->value));
      continue;
    }
    auto found = std::find(distinct.begin(), distinct.end(), value);
    places.push_back(folded.operand(static_cast<int>(found - distinct.begin())));
    if (found == distinct.end()) distinct.push_back(value);
  }
  folded.finish(folded.inline_expression(expression, places));
  if (folded.root().op == ScalarOp::constant)
    return constant(folded.root().value, type.dtype, type.axes);
  if (type_of(folded, distinct).dtype != type.dtype)
    return {add(Map{std::move(expression)}, std::move(operands))};

  // Only what is read, in the order of reading, if that leaves the type as it is.
  Scalar read;
  std::vector<Value> kept;
  std::vector<int> renumbered(distinct.size(), -1);
  for (const auto& node : folded.nodes())
    if (node.op == ScalarOp::operand) {
      renumbered[node.operand] = read.operand(static_cast<int>(kept.size()));
      kept.push_back(distinct[node.operand]);
    }
  if (kept.size() == 1 && folded.root().op == ScalarOp::operand && this->type(kept[0]) == type)
    return kept[0];
  read.finish(read.inline_expression(folded, renumbered));
  if (type_of(read, kept) == type) {
    const std::vector<Type> types{type};
    return {add(Map{std::move(read)}, kept, &types)};
  }
  return {add(Map{std::move(folded)}, distinct)};
}

Value Graph::map(ScalarOp op, Value a, Value b, Value c) {
  Scalar expression;
  std::vector<Value> operands;
  int args[3] = {-1, -1, -1};
  for (Value value : {a, b, c}) {
    if (!value.valid()) continue;
    args[operands.size()] = expression.operand(static_cast<int>(operands.size()));
    operands.push_back(value);
  }
  KRAIT_REQUIRE(static_cast<int>(operands.size()) == arity(op), "number of operands of ", name(op),
                " is ", operands.size(), "; allowed: ", arity(op));
  expression.finish(expression.apply(op, args[0], args[1], args[2]));
  return map(std::move(expression), std::move(operands));
}

Value Graph::contract(AxisNames sum, std::vector<Value> operands) {
  return {add(Contract{std::move(sum)}, std::move(operands))};
}

Value Graph::reduce(Reduce::Kind kind, AxisNames axes, Value x) {
  return {add(Reduce{kind, std::move(axes)}, {x})};
}

// --------------------------------------------------------------------------------------- interface

void Graph::add_output(std::string name, Value value, AxisNames order) {
  KRAIT_REQUIRE(!name.empty(), "the name of an output is empty; allowed: any other text");
  for (const auto& output : outputs_)
    if (output.name == name)
      throw UsageError("name of an output", '"' + name + '"',
                       "names that no other output of the graph has");
  KRAIT_REQUIRE(value.node >= 0 && value.node < static_cast<int>(nodes_.size()), "output ", name,
                " reads node ", value.node, "; allowed: one of the graph's ", nodes_.size());
  const AxisNames& axes = type(value).axes;
  auto list = [](const AxisNames& names) {
    std::string joined;
    for (const auto& axis : names) joined += (joined.empty() ? "" : " ") + axis;
    return "(" + joined + ")";
  };
  if (order.size() != axes.size() || sorted(order) != axes)
    throw UsageError("axes of output " + name, list(order), list(axes) + " in any order");
  outputs_.push_back({std::move(name), value, std::move(order)});
}

std::vector<Value> Graph::inputs() const {
  std::vector<Value> result;
  for (int id = 0; id < static_cast<int>(nodes_.size()); ++id)
    if (std::holds_alternative<Input>(nodes_[id].op)) result.push_back({id});
  return result;
}

const Input& Graph::input_of(Value value) const {
  const auto* input = std::get_if<Input>(&nodes_.at(value.node).op);
  KRAIT_ASSERT(input != nullptr, "node ", value.node, " is no input");
  return *input;
}

std::optional<Value> Graph::find_input(const std::string& name) const {
  const auto found = known_.find(hash_of(Input{name, {}}, {}));
  if (found == known_.end()) return {};
  for (int id : found->second)
    if (is_input(nodes_[id].op, name)) return Value{id};
  return {};
}

void Graph::set_label(Value value, std::string label) {
  auto& of_node = labels_[value.node];
  of_node.resize(nodes_.at(value.node).results.size());
  of_node[value.result] = std::move(label);
}

std::string Graph::label(Value value) const {
  auto found = labels_.find(value.node);
  if (found != labels_.end() && !found->second[value.result].empty())
    return found->second[value.result];
  if (const auto* input = std::get_if<Input>(&nodes_[value.node].op)) return input->name;
  std::string number = "%" + std::to_string(value.node);
  if (nodes_[value.node].results.size() > 1) number += "." + std::to_string(value.result);
  return number;
}

std::vector<std::vector<int>> Graph::users() const {
  std::vector<std::vector<int>> users(nodes_.size());
  for (int id = 0; id < static_cast<int>(nodes_.size()); ++id)
    for (const Value& operand : nodes_[id].operands)
      if (users[operand.node].empty() || users[operand.node].back() != id)
        users[operand.node].push_back(id);
  return users;
}

}  // namespace krait
