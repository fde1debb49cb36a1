// Rewrites of what runs along an axis: gaps, shifted scans, slices along time.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "dsl/error.h"
#include "schedules/normalise.h"
#include "schedules/rebuild.h"
#include "schedules/view.h"

namespace krait {

Graph lower_gaps(const Graph& graph) {
  return rebuilt(graph, [&](int number, Graph& to, Rewriter& rewriter) {
    const Node& node = graph.node(number);
    const auto* gap = std::get_if<Gap>(&node.op);
    if (gap == nullptr) return false;
    const int sums = to.add(PairSum{gap->axis}, {rewriter.at(node.operands[0])});
    const Value high{sums, 0};
    const Value low{sums, 1};
    auto end = [&](Value sum) {
      const std::int64_t last = graph.axis(gap->axis).extent.offset - 1;
      return Value{to.add(Slice{gap->axis, last, false, ""}, {sum}), 0};
    };
    auto difference = [&](Value a_high, Value a_low, Value b_high, Value b_low) {
      return to.map(ScalarOp::add, to.map(ScalarOp::sub, a_high, b_high),
                    to.map(ScalarOp::sub, a_low, b_low));
    };
    Value result;
    switch (gap->kind) {
      case Gap::Kind::from_start: result = to.map(ScalarOp::add, high, low); break;
      case Gap::Kind::total: result = to.map(ScalarOp::add, end(high), end(low)); break;
      case Gap::Kind::to_end: result = difference(end(high), end(low), high, low); break;
      case Gap::Kind::between: {
        auto earlier = [&](Value sum) {
          return Value{to.add(Rename{gap->axis, gap->other}, {sum}), 0};
        };
        const Value pairs = difference(high, low, earlier(high), earlier(low));
        Scalar masked;
        masked.finish(masked.apply(
            ScalarOp::select,
            masked.apply(ScalarOp::less_equal, masked.index(gap->other), masked.index(gap->axis)),
            masked.operand(0), masked.constant(0)));
        result = to.map(masked, {pairs});
        break;
      }
    }
    rewriter.set({number, 0}, result);
    return true;
  });
}

namespace {

/// The value that a Shift by -1 without state or fill shows along `axis`, if `value` is one.
std::optional<Value> shifted_by_one(const Graph& graph, Value value, const std::string& axis) {
  const Node& node = graph.node(value.node);
  const auto* shift = std::get_if<Shift>(&node.op);
  if (shift == nullptr || shift->axis != axis || shift->steps != -1 || shift->fill != 0 ||
      shift->has_state)
    return std::nullopt;
  return node.operands[0];
}

/// Whether `value` is position 0 of `of` along `axis`.
bool is_first_position(const Graph& graph, Value value, Value of, const std::string& axis) {
  const Node& node = graph.node(value.node);
  const auto* slice = std::get_if<Slice>(&node.op);
  return slice != nullptr && slice->axis == axis && slice->start == 0 && !slice->from_end &&
         slice->result.empty() && node.operands[0] == of;
}

/// The other operand of a sum of two, if the node is one that reads `value`.
std::optional<Value> added_to(const Graph& graph, int node, Value value) {
  const auto* map = std::get_if<Map>(&graph.node(node).op);
  const auto& operands = graph.node(node).operands;
  if (map == nullptr || operands.size() != 2 || map->expression.nodes().size() != 3 ||
      map->expression.root().op != ScalarOp::add)
    return std::nullopt;
  if (operands[0] == value) return operands[1];
  if (operands[1] == value) return operands[0];
  return std::nullopt;
}

}  // namespace

Graph take_shifted_late(const Graph& graph) {
  const auto users = graph.users();
  std::set<int> late;            // scans to rewrite
  std::map<int, int> last_sums;  // node that adds the first position, to its scan
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int number = static_cast<int>(i);
    const Node& node = graph.node(number);
    const auto* scan = std::get_if<Scan>(&node.op);
    if (scan == nullptr || !scan->reverse || scan->late) continue;
    const auto source = shifted_by_one(graph, node.operands[1], scan->axis);
    if (!source) continue;
    std::map<int, int> sums;
    bool fits = std::none_of(graph.outputs().begin(), graph.outputs().end(),
                             [&](const Output& output) { return output.value.node == number; });
    for (int user : users[i])
      for (Value operand : graph.node(user).operands) {
        if (operand.node != number || operand.result == 1) continue;
        const auto other = added_to(graph, user, operand);
        fits &=
            operand.result == 2 && other && is_first_position(graph, *other, *source, scan->axis);
        sums[user] = number;
      }
    if (!fits) continue;
    late.insert(number);
    last_sums.insert(sums.begin(), sums.end());
  }
  std::map<int, int> made;
  return rebuilt(graph, [&](int number, Graph& to, Rewriter& rewriter) {
    if (auto sum = last_sums.find(number); sum != last_sums.end()) {
      rewriter.set({number, 0}, {made.at(sum->second), 2});
      return true;
    }
    if (!late.count(number)) return false;
    const Node& node = graph.node(number);
    Scan scan = std::get<Scan>(node.op);
    std::vector<Value> operands = moved(rewriter, node.operands);
    operands[1] = rewriter.at(*shifted_by_one(graph, node.operands[1], scan.axis));
    scan.late = true;
    made[number] = to.add(scan, operands);
    // What left at t enters at t of the late one. The last state is asked for with the first
    // position added only; the entering value is not asked for at all.
    for (int result : {0, 1}) rewriter.set({number, result}, {made[number], 0});
    rewriter.set({number, 2}, {made[number], 2});
    return true;
  });
}

namespace {

/// Rebuilds values of `to` with the slice taken first.
class EarlySlice {
 public:
  EarlySlice(Graph& to, const Slice& slice) : to_(to), slice_(slice) {}

  Value of(Value value) {
    if (!contains(to_.type(value).axes, slice_.axis)) return value;
    const Node node = to_.node(value.node);
    if (const auto* map = std::get_if<Map>(&node.op)) return of_map(*map, node.operands);
    const bool rearranges = is_view(node.op) && !std::holds_alternative<Shift>(node.op) &&
                            !std::holds_alternative<Concat>(node.op);
    if (rearranges && contains(to_.type(node.operands[0]).axes, slice_.axis))
      return {to_.add(node.op, {of(node.operands[0])}), 0};
    return {to_.add(slice_, {value}), 0};
  }

 private:
  Value of_map(const Map& map, const std::vector<Value>& operands) {
    std::vector<Value> sliced;
    for (Value operand : operands) sliced.push_back(of(operand));
    Scalar expression;
    std::vector<int> numbers;
    for (ScalarNode node : map.expression.nodes()) {
      for (int& argument : node.args)
        if (argument >= 0) argument = numbers[argument];
      if (node.op == ScalarOp::index && node.axis == slice_.axis)
        numbers.push_back(position(expression));
      else
        numbers.push_back(expression.add(std::move(node)));
    }
    expression.finish(numbers.back());
    return to_.map(expression, sliced);
  }

  int position(Scalar& expression) const {
    int start = expression.constant(static_cast<double>(slice_.start));
    if (slice_.from_end)
      start =
          expression.apply(ScalarOp::sub, expression.extent(to_.axis(slice_.axis).extent), start);
    if (slice_.result.empty()) return start;
    return expression.apply(ScalarOp::add, expression.index(slice_.result), start);
  }

  Graph& to_;
  const Slice& slice_;
};

}  // namespace

Graph slice_early(const Graph& graph) {
  return rebuilt(graph, [&](int number, Graph& to, Rewriter& rewriter) {
    const Node& node = graph.node(number);
    const auto* slice = std::get_if<Slice>(&node.op);
    if (slice == nullptr || graph.axis(slice->axis).extent.is_constant()) return false;
    if (!slice->result.empty() && !graph.axis(slice->result).extent.is_constant()) return false;
    rewriter.set({number, 0}, EarlySlice(to, *slice).of(rewriter.at(node.operands[0])));
    return true;
  });
}

}  // namespace krait
