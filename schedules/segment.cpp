#include "schedules/segment.h"

#include <map>

#include "dsl/error.h"

namespace krait {
namespace {

class Segmenter {
 public:
  Segmenter(const Graph& graph, std::int64_t segments)
      : from_(graph), rewriter_(graph, to_), segments_(segments) {
    rewriter_.copy_axes();
  }

  Graph run() {
    for (std::size_t i = 0; i < from_.nodes().size(); ++i) {
      const int number = static_cast<int>(i);
      const Op& op = from_.node(number).op;
      const auto* scan = std::get_if<Scan>(&op);
      const auto* cumsum = std::get_if<Cumsum>(&op);
      if (scan != nullptr && is_dynamic(scan->axis))
        cut_scan(number, *scan);
      else if (cumsum != nullptr && is_dynamic(cumsum->axis))
        cut_cumsum(number, *cumsum);
      else
        rewriter_.copy(number);
    }
    rewriter_.copy_interface();
    return prune(to_);
  }

 private:
  bool is_dynamic(const std::string& axis) const { return !from_.axis(axis).extent.is_constant(); }

  /// The axis that counts the parts of `axis`.
  std::string parts_of(const std::string& axis) {
    auto [found, added] = parts_.emplace(axis, "");
    if (added) {
      found->second = to_.fresh_axis_name("segment");
      to_.declare(Axis(found->second, segments_));
    }
    return found->second;
  }

  // The recurrence is the same for scans either way: a part turns what enters it into
  // exp(sum of its log decays) times that, 0 where it has a reset, plus what it leaves by itself.
  // Backwards it is the reset of a part itself that counts on the way out of it: a late scan.
  void cut_scan(int number, const Scan& op) {
    const Node& node = from_.node(number);
    const std::string parts = parts_of(op.axis);
    const Value log_decay = rewriter_.at(node.operands[0]);
    const Value input = rewriter_.at(node.operands[1]);
    const Value reset = op.has_reset ? rewriter_.at(node.operands.back()) : Value{};

    Scan first = op;
    first.has_initial = false;
    first.parts = parts;
    std::vector<Value> operands{log_decay, input};
    if (op.has_reset) operands.push_back(reset);
    const int ends = to_.add(first, operands);
    const Value decays = total(along(log_decay, op.axis), op.axis, op.reverse);

    Scan join{parts, op.reverse, op.has_initial, op.has_reset, op.reverse};
    operands = {decays, {ends, 2}};
    if (op.has_initial) operands.push_back(rewriter_.at(node.operands[2]));
    if (op.has_reset) operands.push_back(any(reset, op.axis, op.reverse));
    const int joined = to_.add(join, operands);

    Scan second = op;
    second.has_initial = true;
    second.parts = parts;
    operands = {log_decay, input, {joined, 0}};
    if (op.has_reset) operands.push_back(reset);
    const int passed = to_.add(second, operands);
    for (int result : {0, 1}) keep({number, result}, {passed, result});
    keep({number, 2}, {joined, 2});
  }

  void cut_cumsum(int number, const Cumsum& given) {
    const Node& node = from_.node(number);
    Cumsum op = given;
    op.parts = parts_of(op.axis);
    const Value x = rewriter_.at(node.operands[0]);
    Value reset = op.has_reset ? rewriter_.at(node.operands.back()) : Value{};
    if (op.has_reset && op.reverse && !op.late) {
      // What separates t from t + 1 then stands at t, in the same part.
      reset = {to_.add(Shift{.axis = op.axis, .steps = -1}, {reset})};
      op.late = true;
    }

    Cumsum first = op;
    first.has_initial = first.exclusive = false;
    std::vector<Value> operands{x};
    if (op.has_reset) operands.push_back(reset);
    const int ends = to_.add(first, operands);

    Cumsum join = op;
    join.axis = op.parts;
    join.parts.clear();
    join.exclusive = true;
    operands = {{ends, 1}};
    if (op.has_initial) operands.push_back(rewriter_.at(node.operands[1]));
    if (op.has_reset) operands.push_back(any(reset, op.axis, op.reverse));
    const int joined = to_.add(join, operands);

    Cumsum second = op;
    second.has_initial = true;
    operands = {x, {joined, 0}};
    if (op.has_reset) operands.push_back(reset);
    keep({number, 0}, {to_.add(second, operands), 0});
    keep({number, 1}, {joined, 1});
  }

  /// Sum over each part.
  Value total(Value value, const std::string& axis, bool reverse) {
    return {to_.add(Cumsum{.axis = axis, .reverse = reverse, .parts = parts_of(axis)}, {value}), 1};
  }

  /// How many resets stand in each part.
  Value any(Value reset, const std::string& axis, bool reverse) {
    Scalar flag;
    flag.finish(flag.apply(ScalarOp::logical_not,
                           flag.apply(ScalarOp::equal, flag.operand(0), flag.constant(0))));
    return total(to_.map(flag, {reset}), axis, reverse);
  }

  /// The value, varying along `axis`.
  Value along(Value value, const std::string& axis) {
    if (contains(to_.type(value).axes, axis)) return value;
    Scalar same;
    same.finish(same.operand(0));
    return to_.map(same, {value, to_.constant(0, to_.type(value).dtype, {axis})});
  }

  void keep(Value from, Value to) {
    rewriter_.set(from, to);
    if (auto labels = from_.labels().find(from.node); labels != from_.labels().end())
      if (const std::string& label = labels->second[from.result]; !label.empty())
        to_.set_label(to, label);
  }

  const Graph& from_;
  Graph to_;
  Rewriter rewriter_;
  std::int64_t segments_;
  std::map<std::string, std::string> parts_;
};

}  // namespace

Graph in_segments(const Graph& graph, std::int64_t segments) {
  KRAIT_ASSERT(segments >= 0, segments, " segments");
  if (segments == 1) return graph;
  Graph result = Segmenter(graph, segments == 0 ? most_segments : segments).run();
  verify(result);
  return result;
}

}  // namespace krait
