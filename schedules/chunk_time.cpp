// The two forms of a value that varies along the scanned axis.
#include <algorithm>
#include <tuple>

#include "dsl/error.h"
#include "schedules/chunk_rewrite.h"
#include "schedules/rebuild.h"

namespace krait::chunking {

bool Rewrite::varies(Value old) const { return contains(from_.type(old).axes, t_); }

bool Rewrite::acts_along_time(const Node& node) const {
  if (std::holds_alternative<Input>(node.op)) return true;
  // The axes of the index of a ScatterSum are summed.
  if (std::holds_alternative<ScatterSum>(node.op) && varies(node.operands[1])) return true;
  return contains(named_axes(node.op), t_);
}

bool Rewrite::is_matrix_product(const Node& node) const {
  const auto* contract = std::get_if<Contract>(&node.op);
  if (contract == nullptr || contract->sum.empty() || node.operands.size() != 2) return false;
  const bool first = varies(node.operands[0]);
  if (first == varies(node.operands[1])) return false;
  const AxisNames& rows = from_.type(node.operands[first ? 0 : 1]).axes;
  const AxisNames& matrix = from_.type(node.operands[first ? 1 : 0]).axes;
  const AxisNames free = without(matrix, contract->sum);
  return !free.empty() && !meet(free, rows) && is_subset(contract->sum, rows) &&
         is_subset(contract->sum, matrix);
}

bool Rewrite::is_stored(const Node& node) const {
  return acts_along_time(node) || is_matrix_product(node) ||
         std::holds_alternative<Gather>(node.op);
}

Rewrite::Home Rewrite::home_of(const Node& node) const {
  const bool recurrence =
      std::holds_alternative<Scan>(node.op) || std::holds_alternative<Cumsum>(node.op);
  if (acts_along_time(node)) return recurrence ? Home::chunked : Home::whole;
  // A library product has its rows over all of t: no row of it is padding.
  if (is_matrix_product(node)) return Home::whole;
  for (Value operand : node.operands)
    if (varies(operand) && homes_[operand.node] == Home::chunked) return Home::chunked;
  return Home::whole;
}

void Rewrite::keep(std::map<Value, Value>& form, Value old, Value made) {
  form[old] = made;
  const auto label = from_.labels().find(old.node);
  if (label == from_.labels().end() || label->second[old.result].empty()) return;
  if (!std::holds_alternative<Input>(to_.node(made.node).op))
    to_.set_label(made, label->second[old.result]);
}

Value Rewrite::whole(Value old) {
  if (auto found = whole_.find(old); found != whole_.end()) return found->second;
  const Node& node = from_.node(old.node);
  if (varies(old) && homes_[old.node] == Home::chunked) {
    keep(whole_, old, {to_.add(Merge{c_, q_, t_}, {chunked(old)})});
    return whole_[old];
  }
  if (const auto* slice = std::get_if<Slice>(&node.op); slice != nullptr && slice->axis == t_) {
    keep(whole_, old, positions(node.operands[0], *slice));
    return whole_[old];
  }
  std::vector<Value> operands;
  for (Value operand : node.operands) operands.push_back(whole(operand));
  if (const auto* map = std::get_if<Map>(&node.op)) {
    keep(whole_, old, to_.map(map->expression, operands));
    return whole_[old];
  }
  const int made = to_.add(node.op, operands);
  for (int i = 0; i < static_cast<int>(node.results.size()); ++i)
    keep(whole_, {old.node, i}, {made, i});
  return whole_[old];
}

Value Rewrite::chunked(Value old) {
  if (!varies(old)) return whole(old);
  if (auto found = chunked_.find(old); found != chunked_.end()) return found->second;
  const Node& node = from_.node(old.node);
  if (auto found = linear_.find(old); found != linear_.end()) {
    // A Map may vary along more axes than it reads.
    keep(chunked_, old, spread(to_, value_of(found->second), over_axes(from_.type(old).axes)));
    return chunked_[old];
  }
  if (is_stored(node) && homes_[old.node] == Home::whole) {
    keep(chunked_, old, {to_.add(Split{t_, c_, q_}, {whole(old)})});
    return chunked_[old];
  }
  if (const auto* map = std::get_if<Map>(&node.op)) {
    const Value made = part(node, map->expression.root_index());
    keep(chunked_, old, spread(to_, made, over_axes(from_.type(old).axes)));
    return chunked_[old];
  }
  std::vector<Value> operands;
  for (Value operand : node.operands) operands.push_back(chunked(operand));
  const int made = to_.add(over_chunks(node.op), operands);
  for (int i = 0; i < static_cast<int>(node.results.size()); ++i)
    if (varies({old.node, i})) keep(chunked_, {old.node, i}, {made, i});
  return chunked_[old];
}

AxisNames Rewrite::over_axes(AxisNames axes) const {
  if (!contains(axes, t_)) return axes;
  axes = without(axes, {t_});
  axes.push_back(c_);
  axes.push_back(q_);
  return to_.sorted(axes);
}

Op Rewrite::over_chunks(const Op& op) const {
  if (const auto* constant = std::get_if<Constant>(&op))
    return Constant{constant->value, constant->dtype, over_axes(constant->axes)};
  return op;
}

Value Rewrite::part(const Node& map, int id) {
  const std::vector<ScalarNode>& nodes = std::get<Map>(map.op).expression.nodes();
  std::vector<bool> needed(nodes.size(), false);
  needed[id] = true;
  for (int i = id; i >= 0; --i)
    if (needed[i])
      for (int arg : nodes[i].args)
        if (arg >= 0) needed[arg] = true;
  Formula formula(to_);
  std::vector<int> made(nodes.size(), -1);
  for (int i = 0; i <= id; ++i) {
    if (!needed[i]) continue;
    ScalarNode node = nodes[i];
    if (node.op == ScalarOp::operand) {
      made[i] = formula.read(chunked(map.operands[node.operand]));
    } else if (node.op == ScalarOp::index && node.axis == t_) {
      made[i] = position(formula);
    } else {
      for (int& arg : node.args)
        if (arg >= 0) arg = made[arg];
      made[i] = formula.scalar().add(node);
    }
  }
  return formula.finish(made[id]);
}

// ------------------------------------------------------------------------------------ positions

Value Rewrite::positions(Value old, const Slice& slice) {
  if (!varies(old)) return whole(old);
  const auto key = std::tuple(old, slice.start, slice.from_end, slice.result);
  auto found = positions_.find(key);
  if (found == positions_.end()) found = positions_.emplace(key, new_positions(old, slice)).first;
  return found->second;
}

Value Rewrite::new_positions(Value old, const Slice& slice) {
  const Node& node = from_.node(old.node);
  const auto of_whole = [&] { return Value{to_.add(slice, {whole(old)})}; };
  const bool few = slice.result.empty() || to_.axis(slice.result).extent.is_constant();
  if (!few || linear_.count(old) != 0 || is_matrix_product(node) ||
      (homes_[old.node] == Home::chunked && whole_.count(old) != 0))
    return of_whole();
  if (const auto* constant = std::get_if<Constant>(&node.op)) {
    AxisNames axes = without(constant->axes, {t_});
    if (!slice.result.empty()) axes.push_back(slice.result);
    return to_.constant(constant->value, constant->dtype, axes);
  }
  const auto* cumsum = std::get_if<Cumsum>(&node.op);
  if (cumsum != nullptr && cumsum->axis == t_) {
    // The last running value is a result of its own.
    const bool is_last = slice.from_end && slice.start == 1 && !cumsum->reverse &&
                         !cumsum->exclusive && old.result == 0;
    if (!is_last) return of_whole();
    const Value last = whole({old.node, 1});
    return slice.result.empty() ? last : spread(to_, last, {slice.result});
  }
  const auto* map = std::get_if<Map>(&node.op);
  bool apart = !is_stored(node) && !node.operands.empty() && node.results.size() == 1 &&
               !(map != nullptr && contains(map->expression.index_axes(), t_));
  for (Value operand : node.operands)
    apart = apart && !contains(from_.type(operand).axes, slice.result);
  if (!apart) return of_whole();
  std::vector<Value> operands;
  for (Value operand : node.operands) operands.push_back(positions(operand, slice));
  if (map != nullptr) return to_.map(map->expression, operands);
  return {to_.add(node.op, operands)};
}

// ---------------------------------------------------------------------------------------- masks

int Rewrite::position(Formula& formula) const {
  Scalar& s = formula.scalar();
  return formula(ScalarOp::add,
                 formula(ScalarOp::mul, s.index(c_), s.constant(static_cast<double>(size_))),
                 s.index(q_));
}

int Rewrite::inside(Formula& formula) const {
  return formula(ScalarOp::less, position(formula), formula.scalar().extent(from_.axis(t_).extent));
}

bool Rewrite::zero_past_end(Value value) const {
  const Node& node = to_.node(value.node);
  if (const auto* split = std::get_if<Split>(&node.op); split != nullptr && split->inner == q_)
    return true;
  if (is_view(node.op)) return zero_past_end(node.operands[0]);
  const auto* map = std::get_if<Map>(&node.op);
  if (map == nullptr) return false;
  // A product is zero where one of its factors is.
  const auto& nodes = map->expression.nodes();
  const auto zero = [&](const auto& self, int id) -> bool {
    const ScalarNode& scalar = nodes[id];
    if (scalar.op == ScalarOp::operand) return zero_past_end(node.operands[scalar.operand]);
    if (scalar.op == ScalarOp::neg) return self(self, scalar.args[0]);
    if (scalar.op != ScalarOp::mul) return false;
    return self(self, scalar.args[0]) || self(self, scalar.args[1]);
  };
  return zero(zero, map->expression.root_index());
}

Value Rewrite::masked(Value value) {
  if (zero_past_end(value)) return value;
  Formula formula(to_);
  const int zero = formula.constant(0), x = formula.read(value);
  // Read even where the value is a literal: the result varies along c and q.
  return spread(to_, formula.finish(formula(ScalarOp::select, inside(formula), x, zero)),
                to_.sorted({c_, q_}));
}

Value Rewrite::flags(Value reset) {
  Formula formula(to_);
  const int starts = formula(ScalarOp::logical_not,
                             formula(ScalarOp::equal, formula.read(reset), formula.constant(0)));
  return formula.finish(formula(ScalarOp::logical_and, inside(formula), starts));
}

}  // namespace krait::chunking
