#include "schedules/normalise.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "dsl/error.h"
#include "schedules/view.h"

namespace krait {
namespace {

/// Rebuilds a graph node by node; `rewrite` may add nodes of its own for one and map its results,
/// or return false to have it copied.
Graph rebuilt(const Graph& graph,
              const std::function<bool(int node, Graph& to, Rewriter& rewriter)>& rewrite) {
  Graph to;
  Rewriter rewriter(graph, to);
  rewriter.copy_axes();
  for (std::size_t i = 0; i < graph.nodes().size(); ++i)
    if (!rewrite(static_cast<int>(i), to, rewriter)) rewriter.copy(static_cast<int>(i));
  rewriter.copy_interface();
  return prune(to);
}

std::vector<Value> moved(const Rewriter& rewriter, const std::vector<Value>& values) {
  std::vector<Value> result;
  for (Value value : values) result.push_back(rewriter.at(value));
  return result;
}

}  // namespace

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

namespace {

/// The position that select(index(axis) == position, 1, 0) marks, for a value of that form.
std::optional<std::int64_t> indicated(const Graph& graph, Value value, const std::string& axis) {
  const auto* map = std::get_if<Map>(&graph.node(value.node).op);
  if (map == nullptr || graph.type(value).axes != AxisNames{axis}) return std::nullopt;
  if (!graph.node(value.node).operands.empty()) return std::nullopt;
  // Without operands the expression is a function of the position: tabulate it.
  const Extent& extent = graph.axis(axis).extent;
  if (!extent.is_constant() || extent.offset > 64) return std::nullopt;
  std::optional<std::int64_t> found;
  for (std::int64_t i = 0; i < extent.offset; ++i) {
    Scalar at;
    std::vector<int> numbers;
    for (ScalarNode node : map->expression.nodes()) {
      for (int& argument : node.args)
        if (argument >= 0) argument = numbers[argument];
      numbers.push_back(node.op == ScalarOp::index ? at.constant(static_cast<double>(i))
                                                   : at.add(std::move(node)));
    }
    at.finish(numbers.back());
    if (at.root().op != ScalarOp::constant) return std::nullopt;
    if (at.root().value == 0) continue;
    if (at.root().value != 1 || found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

Graph pick_indicated(const Graph& graph) {
  return rebuilt(graph, [&](int number, Graph& to, Rewriter& rewriter) {
    const Node& node = graph.node(number);
    const auto* contract = std::get_if<Contract>(&node.op);
    if (contract == nullptr || contract->sum.size() != 1 || node.operands.size() != 2) return false;
    const std::string& axis = contract->sum[0];
    const std::vector<Value> operands = moved(rewriter, node.operands);
    for (std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const auto position = indicated(to, operands[side], axis);
      const Value other = operands[1 - side];
      if (!position || !contains(to.type(other).axes, axis)) continue;
      rewriter.set({number, 0}, {to.add(Slice{axis, *position, false, ""}, {other}), 0});
      return true;
    }
    return false;
  });
}

Graph pair_contracts(const Graph& graph) {
  return rebuilt(graph, [&](int number, Graph& to, Rewriter& rewriter) {
    const Node& node = graph.node(number);
    const auto* contract = std::get_if<Contract>(&node.op);
    if (contract == nullptr) return false;
    std::vector<Value> operands = moved(rewriter, node.operands);
    if (contract->sum.empty()) {
      Scalar product;
      int result = product.operand(0);
      for (std::size_t i = 1; i < operands.size(); ++i)
        result = product.apply(ScalarOp::mul, result, product.operand(static_cast<int>(i)));
      product.finish(result);
      rewriter.set({number, 0}, to.map(product, operands));
      return true;
    }
    if (operands.size() == 1) {
      rewriter.set({number, 0}, to.reduce(Reduce::Kind::sum, contract->sum, operands[0]));
      return true;
    }
    // An axis may be summed as soon as only the two at hand have it.
    auto result_axes = [&](std::size_t i, std::size_t j, AxisNames* sums) {
      AxisNames axes = to.type(operands[i]).axes;
      for (const auto& axis : to.type(operands[j]).axes) axes.push_back(axis);
      axes = to.sorted(axes);
      AxisNames kept;
      for (const auto& axis : axes) {
        bool elsewhere = !contains(contract->sum, axis);
        for (std::size_t k = 0; k < operands.size(); ++k)
          elsewhere |= k != i && k != j && contains(to.type(operands[k]).axes, axis);
        if (elsewhere)
          kept.push_back(axis);
        else if (sums != nullptr)
          sums->push_back(axis);
      }
      return kept;
    };
    auto size = [&](const AxisNames& axes) {
      double elements = 1;
      for (const auto& axis : axes) {
        const Extent& extent = to.axis(axis).extent;
        elements *= extent.is_constant() ? static_cast<double>(extent.offset) : 1e4;
      }
      return elements;
    };
    while (operands.size() > 2) {
      std::size_t best_i = 0;
      std::size_t best_j = 1;
      double best = -1;
      for (std::size_t i = 0; i < operands.size(); ++i)
        for (std::size_t j = i + 1; j < operands.size(); ++j) {
          const double elements = size(result_axes(i, j, nullptr));
          if (best < 0 || elements < best) best = elements, best_i = i, best_j = j;
        }
      AxisNames sums;
      result_axes(best_i, best_j, &sums);
      const Value pair = sums.empty() ? to.map(ScalarOp::mul, operands[best_i], operands[best_j])
                                      : to.contract(sums, {operands[best_i], operands[best_j]});
      operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(best_j));
      operands[best_i] = pair;
    }
    AxisNames sums;
    result_axes(0, 1, &sums);
    rewriter.set({number, 0}, sums.empty() ? to.map(ScalarOp::mul, operands[0], operands[1])
                                           : to.contract(sums, operands));
    return true;
  });
}

namespace {

/// A part of a tensor along one axis: `length` positions from `start` that are `value` along
/// `axis`, or zero where there is no value.
struct Part {
  std::int64_t start = 0, length = 0;
  std::optional<Value> value;
  std::string axis;
};

/// The parts of a Concat of constant sizes; nothing for another node.
std::optional<std::vector<Part>> parts_of(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  const auto* concat = std::get_if<Concat>(&node.op);
  if (concat == nullptr) return std::nullopt;
  std::vector<Part> parts;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < concat->axes.size(); ++i) {
    const Extent& extent = graph.axis(concat->axes[i]).extent;
    if (!extent.is_constant()) return std::nullopt;
    const auto* constant = std::get_if<Constant>(&graph.node(node.operands[i].node).op);
    Part part{start, extent.offset, node.operands[i], concat->axes[i]};
    if (constant != nullptr && constant->value == 0) part.value.reset();
    parts.push_back(part);
    start += extent.offset;
  }
  return parts;
}

/// The parts of a sum, or nothing where parts overlap and do not coincide.
std::optional<std::vector<Part>> added(Graph& to, const std::vector<Part>& a,
                                       const std::vector<Part>& b) {
  std::vector<Part> filled;
  for (const auto* list : {&a, &b})
    for (const Part& part : *list)
      if (part.value) filled.push_back(part);
  std::sort(filled.begin(), filled.end(),
            [](const Part& x, const Part& y) { return x.start < y.start; });
  std::vector<Part> result;
  for (const Part& part : filled) {
    if (result.empty() || result.back().start + result.back().length <= part.start) {
      result.push_back(part);
      continue;
    }
    Part& last = result.back();
    if (last.start != part.start || last.length != part.length) return std::nullopt;
    Value other = *part.value;
    if (part.axis != last.axis) other = {to.add(Rename{part.axis, last.axis}, {other}), 0};
    last.value = to.map(ScalarOp::add, *last.value, other);
  }
  return result;
}

}  // namespace

namespace {

/// Whether the expression is the sum of all its operands, each once.
bool is_plain_sum(const Scalar& expression) {
  std::set<int> seen;
  for (const ScalarNode& node : expression.nodes()) {
    if (node.op == ScalarOp::operand && !seen.insert(node.operand).second) return false;
    if (node.op != ScalarOp::operand && node.op != ScalarOp::add) return false;
  }
  // A tree: as many additions as it takes to join the leaves.
  return expression.nodes().size() == 2 * seen.size() - 1 && seen.size() >= 2;
}

/// One Concat of the parts, zeros between them.
Value joined_parts(Graph& to, const std::vector<Part>& parts, const std::string& along,
                   const Type& type) {
  Concat concat{{}, along};
  std::vector<Value> values;
  std::int64_t at = 0;
  auto zeros = [&](std::int64_t length) {
    if (length == 0) return;
    const std::string axis = to.fresh_axis_name(along + "_rest");
    to.declare(Axis(axis, length));
    AxisNames axes = without(type.axes, {along});
    axes.push_back(axis);
    concat.axes.push_back(axis);
    values.push_back(to.constant(0, type.dtype, to.sorted(axes)));
  };
  for (const Part& part : parts) {
    zeros(part.start - at);
    concat.axes.push_back(part.axis);
    values.push_back(*part.value);
    at = part.start + part.length;
  }
  zeros(to.axis(along).extent.offset - at);
  return {to.add(concat, values), 0};
}

}  // namespace

Graph join_parts(const Graph& graph) {
  return rebuilt(graph, [&](int number, Graph& to, Rewriter& rewriter) {
    const Node& node = graph.node(number);
    const auto* map = std::get_if<Map>(&node.op);
    if (map == nullptr || !is_plain_sum(map->expression)) return false;
    std::vector<Value> rest;  // of the sum: what is no Concat, or overlaps in part
    std::optional<std::vector<Part>> parts;
    std::string along;
    Type type;
    int joined = 0;
    for (Value operand : moved(rewriter, node.operands)) {
      auto own = parts_of(to, operand);
      const auto* concat = std::get_if<Concat>(&to.node(operand.node).op);
      const bool fits =
          own && (!parts || (concat->result == along && to.type(operand).axes == type.axes));
      std::optional<std::vector<Part>> sum;
      if (fits) sum = parts ? added(to, *parts, *own) : added(to, *own, {});
      if (!sum) {
        rest.push_back(operand);
        continue;
      }
      if (!parts) {
        along = std::get<Concat>(to.node(operand.node).op).result;
        type = to.type(operand);
      }
      parts = std::move(sum);
      ++joined;
    }
    if (joined < 2) return false;
    Value total = joined_parts(to, *parts, along, type);
    for (Value value : rest) total = to.map(ScalarOp::add, total, value);
    rewriter.set({number, 0}, total);
    return true;
  });
}

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
