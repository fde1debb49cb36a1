#include "schedules/padding.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "schedules/view.h"

namespace krait {
namespace {

/// factor * position, for two axes, and a constant.
struct Linear {
  double chunk = 0, position = 0, constant = 0;
};

std::optional<Linear> linear(const Scalar& expression, int id, const std::string& chunks,
                             const std::string& position) {
  const ScalarNode& node = expression.nodes()[static_cast<std::size_t>(id)];
  const auto argument = [&](int i) {
    return linear(expression, node.args[static_cast<std::size_t>(i)], chunks, position);
  };
  if (node.op == ScalarOp::constant) return Linear{0, 0, node.value};
  if (node.op == ScalarOp::index && node.axis == chunks) return Linear{1, 0, 0};
  if (node.op == ScalarOp::index && node.axis == position) return Linear{0, 1, 0};
  if (node.op != ScalarOp::add && node.op != ScalarOp::mul) return std::nullopt;
  std::optional<Linear> a = argument(0), b = argument(1);
  if (!a || !b) return std::nullopt;
  if (node.op == ScalarOp::add)
    return Linear{a->chunk + b->chunk, a->position + b->position, a->constant + b->constant};
  if (a->chunk == 0 && a->position == 0) std::swap(a, b);
  if (b->chunk != 0 || b->position != 0) return std::nullopt;
  return Linear{a->chunk * b->constant, a->position * b->constant, a->constant * b->constant};
}

/// The expression with other nodes in place of some: `replace` gives the constant, if any.
Scalar with_constants(const Scalar& expression,
                      const std::function<std::optional<double>(int)>& replace) {
  Scalar result;
  std::vector<int> moved;
  for (std::size_t i = 0; i < expression.nodes().size(); ++i) {
    const ScalarNode& node = expression.nodes()[i];
    if (auto constant = replace(static_cast<int>(i))) {
      moved.push_back(result.constant(*constant));
      continue;
    }
    ScalarNode copy = node;
    for (int& argument : copy.args)
      if (argument >= 0) argument = moved[static_cast<std::size_t>(argument)];
    moved.push_back(result.add(copy));
  }
  result.finish(moved.back());
  return result;
}

bool contains_value(const std::vector<Value>& values, Value value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool reads(const Scalar& expression, std::size_t operand) {
  return std::any_of(
      expression.nodes().begin(), expression.nodes().end(), [&](const ScalarNode& node) {
        return node.op == ScalarOp::operand && node.operand == static_cast<int>(operand);
      });
}

}  // namespace

Padding::Padding(const Analysis& analysis) : graph_(analysis.graph) {
  for (const auto& [outer, split] : analysis.split_axes) ends_[split.inner] = {outer, split.axis};
  for (const Node& node : graph_.nodes())
    if (const auto* rename = std::get_if<Rename>(&node.op); rename && ends_.count(rename->from))
      ends_.emplace(rename->to, ends_.at(rename->from));
  const int count = static_cast<int>(graph_.nodes().size());
  for (int i = 0; i < count; ++i)
    for (std::size_t r = 0; r < graph_.node(i).results.size(); ++r)
      for (const auto& [position, end] : ends_)
        if (const Value value{i, static_cast<int>(r)};
            has_end(value, position) && gives_zero(i, position))
          zero_[value].insert(position);
  for (const Output& output : graph_.outputs())
    for (const auto& [position, end] : ends_) ask(output.value, position, Need::exact);
  for (int i = count; i-- > 0;) ask_operands(i);
}

bool Padding::may_be_zero(Value value, const std::string& position) const {
  return is_zero(value, position) || need(value, position) <= Need::finite;
}

bool Padding::has_end(Value value, const std::string& position) const {
  const AxisNames& axes = graph_.type(value).axes;
  return contains(axes, position) && contains(axes, ends_.at(position).first);
}

bool Padding::is_zero(Value value, const std::string& position) const {
  if (const auto* constant = std::get_if<Constant>(&graph_.node(value.node).op))
    return constant->value == 0;
  auto found = zero_.find(value);
  return found != zero_.end() && found->second.count(position) != 0;
}

Padding::Need Padding::need(Value value, const std::string& position) const {
  auto found = needs_.find(value);
  if (found == needs_.end()) return Need::nothing;
  auto asked = found->second.find(position);
  return asked == found->second.end() ? Need::nothing : asked->second;
}

void Padding::ask(Value value, const std::string& position, Need asked) {
  if (!has_end(value, position)) return;
  Need& known = needs_[value][position];
  known = std::max(known, asked);
}

bool Padding::gives_zero(int number, const std::string& position) const {
  const Node& node = graph_.node(number);
  const auto all = [&](const std::string& along) {
    return !node.operands.empty() &&
           std::all_of(node.operands.begin(), node.operands.end(),
                       [&](Value operand) { return is_zero(operand, along); });
  };
  const std::string& chunks = ends_.at(position).first;
  if (const auto* split = std::get_if<Split>(&node.op))
    return (split->inner == position && split->outer == chunks) || all(position);
  if (std::holds_alternative<Map>(node.op)) {
    const ScalarNode root = past_end(number, position).root();
    return root.op == ScalarOp::constant && root.value == 0;
  }
  if (const auto* contract = std::get_if<Contract>(&node.op))
    return !contains(contract->sum, position) &&
           std::any_of(node.operands.begin(), node.operands.end(),
                       [&](Value operand) { return is_zero(operand, position); });
  if (const auto* rename = std::get_if<Rename>(&node.op))
    return all(rename->to == position ? rename->from : position);
  if (const auto* shift = std::get_if<Shift>(&node.op))
    return shift->axis != position && shift->axis != chunks && shift->fill == 0 && all(position);
  if (const auto* slice = std::get_if<Slice>(&node.op))
    return slice->axis != chunks && slice->result != position && slice->result != chunks &&
           all(position);
  if (const auto* concat = std::get_if<Concat>(&node.op))
    return concat->result != position && concat->result != chunks && all(position);
  if (std::holds_alternative<Merge>(node.op) || std::holds_alternative<Reduce>(node.op))
    return all(position);
  return false;
}

void Padding::ask_operands(int number) {
  const std::vector<Value>& operands = graph_.node(number).operands;
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (const auto& [position, end] : ends_)
      if (has_end(operands[i], position)) ask(operands[i], position, asked_of(number, i, position));
}

/// What the node asks of its operand.
Padding::Need Padding::asked_of(int number, std::size_t operand,
                                const std::string& position) const {
  const Node& node = graph_.node(number);
  const std::string& chunks = ends_.at(position).first;
  if (std::holds_alternative<Map>(node.op)) return asked_by_map(number, operand, position);
  if (const auto* contract = std::get_if<Contract>(&node.op)) {
    // Zero times what is finite.
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (i != operand && is_zero(node.operands[i], position)) return Need::finite;
    return contains(contract->sum, position) || contains(contract->sum, chunks)
               ? Need::exact
               : asked_by_results(number, position);
  }
  if (const auto* merge = std::get_if<Merge>(&node.op)) {
    if (merge->outer == chunks && merge->inner == position) return Need::nothing;  // cut off
    return merge->outer == chunks || merge->inner == position ? Need::exact
                                                              : asked_by_results(number, position);
  }
  if (const auto* rename = std::get_if<Rename>(&node.op))
    return asked_by_results(number, rename->from == position ? rename->to : position);
  if (const auto* sum = std::get_if<PairSum>(&node.op))  // what is past the end goes no further
    return sum->axis == chunks ? Need::exact : asked_by_results(number, position);
  if (std::holds_alternative<Cumsum>(node.op) || std::holds_alternative<Scan>(node.op))
    return asked_by_running(number, position);
  // Others move or sum along few axes, and leave the rest as it is.
  for (const Type& type : node.results)
    if (!contains(type.axes, position) || !contains(type.axes, chunks)) return Need::exact;
  if (const auto* shift = std::get_if<Shift>(&node.op);
      shift != nullptr && (shift->axis == chunks || (shift->axis == position && shift->steps < 0)))
    return Need::exact;
  if (const auto* slice = std::get_if<Slice>(&node.op);
      slice != nullptr && (slice->axis == chunks || slice->axis == position))
    return Need::exact;
  if (const auto* concat = std::get_if<Concat>(&node.op);
      concat != nullptr && (concat->result == chunks || concat->result == position))
    return Need::exact;
  return asked_by_results(number, position);
}

Padding::Need Padding::asked_by_results(int number, const std::string& position) const {
  Need asked = Need::nothing;
  for (std::size_t r = 0; r < graph_.node(number).results.size(); ++r)
    asked = std::max(asked, need({number, static_cast<int>(r)}, position));
  return asked == Need::nonzero ? Need::exact : asked;
}

/// Forwards what is past the end comes last, along the positions and, position by position, along
/// the chunks. What is left at the end takes it in.
Padding::Need Padding::asked_by_running(int number, const std::string& position) const {
  const Node& node = graph_.node(number);
  const auto* scan = std::get_if<Scan>(&node.op);
  const auto* sum = std::get_if<Cumsum>(&node.op);
  const std::string& axis = scan != nullptr ? scan->axis : sum->axis;
  const bool reverse = scan != nullptr ? scan->reverse : sum->reverse;
  const bool along = axis == position || axis == ends_.at(position).first;
  if (!along) return asked_by_results(number, position);
  const int last = scan != nullptr ? 2 : 1;
  const bool last_is_read =
      std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                  [&](const Node& reader) {
                    return contains_value(reader.operands, {number, last});
                  }) ||
      std::any_of(graph_.outputs().begin(), graph_.outputs().end(), [&](const Output& output) {
        return output.value == Value{number, last};
      });
  return reverse || last_is_read ? Need::exact : asked_by_results(number, position);
}

/// The expression as it is past the end: operands that are 0 there, and whether it is inside, put
/// in.
Scalar Padding::past_end(int number, const std::string& position) const {
  const Node& node = graph_.node(number);
  const Scalar& expression = std::get<Map>(node.op).expression;
  return with_constants(expression, [&](int id) -> std::optional<double> {
    const ScalarNode& scalar = expression.nodes()[static_cast<std::size_t>(id)];
    const bool zero = scalar.op == ScalarOp::operand &&
                      is_zero(node.operands[static_cast<std::size_t>(scalar.operand)], position);
    if (zero || is_inside(expression, id, position)) return 0.0;
    return std::nullopt;
  });
}

/// Whether the node says that the position is inside: chunk * size + position < extent.
bool Padding::is_inside(const Scalar& expression, int id, const std::string& position) const {
  const ScalarNode& node = expression.nodes()[static_cast<std::size_t>(id)];
  if (node.op != ScalarOp::less) return false;
  const ScalarNode& limit = expression.nodes()[static_cast<std::size_t>(node.args[1])];
  const auto& [chunks, axis] = ends_.at(position);
  if (limit.op != ScalarOp::extent || limit.extent != graph_.axis(axis).extent) return false;
  const auto at = linear(expression, node.args[0], chunks, position);
  const auto size = static_cast<double>(graph_.axis(position).extent.offset);
  return at && at->chunk == size && at->position == 1 && at->constant >= 0;
}

Padding::Need Padding::asked_by_map(int number, std::size_t operand,
                                    const std::string& position) const {
  const Need asked = need({number, 0}, position);
  if (asked == Need::nothing) return asked;
  const Scalar expression = past_end(number, position);
  if (!reads(expression, operand)) return Need::finite;  // it stands behind a mask
  if (asked == Need::exact) return asked;
  std::vector<Interval> operands;
  for (Value value : graph_.node(number).operands) {
    Interval range = graph_.interval(value);
    if (has_end(value, position)) range = {std::min(range.low, 0.0), std::max(range.high, 0.0)};
    operands.push_back(range);
  }
  operands[operand] = {0, 0};
  if (divides_by_zero(expression, operands, operand)) return Need::nonzero;
  if (asked == Need::finite) return asked;
  const Interval range = expression.interval(operands);
  return range.low > 0 || range.high < 0 ? Need::finite : Need::exact;
}

/// Whether it may divide by zero, or take its logarithm, given the range of its operands, in
/// something that reads this one.
bool Padding::divides_by_zero(const Scalar& expression, const std::vector<Interval>& operands,
                              std::size_t operand) const {
  return std::any_of(expression.nodes().begin(), expression.nodes().end(),
                     [&](const ScalarNode& node) {
                       const bool division = node.op == ScalarOp::div;
                       if (!division && node.op != ScalarOp::log && node.op != ScalarOp::rsqrt)
                         return false;
                       Scalar argument = expression;
                       argument.finish(node.args[division ? 1 : 0]);
                       const Interval range = argument.interval(operands);
                       return reads(argument, operand) && range.low <= 0 && range.high >= 0;
                     });
}

}  // namespace krait
