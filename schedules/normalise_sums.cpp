// Rewrites of sums and products: one order for products of many, one tensor for sums of parts.
#include <algorithm>
#include <optional>
#include <set>

#include "dsl/error.h"
#include "schedules/normalise.h"
#include "schedules/rebuild.h"

namespace krait {

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

}  // namespace krait
