#include "schedules/boundaries.h"

#include <algorithm>

#include "schedules/view.h"

namespace krait {
namespace {

/// Whether something but outputs and products reads the value of a view, by way of others if need
/// be.
bool read_by_compute(const Analysis& analysis, int node) {
  return std::any_of(analysis.users[node].begin(), analysis.users[node].end(), [&](int user) {
    if (analysis.product[user]) return false;
    return !is_view(analysis.graph.node(user).op) || read_by_compute(analysis, user);
  });
}

}  // namespace

void request_boundaries(const Analysis& analysis, Placement& placement) {
  const Graph& graph = analysis.graph;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int id = static_cast<int>(i);
    const Node& node = graph.node(id);
    if (analysis.product[i]) {
      for (Value operand : node.operands) placement.request(operand);
      placement.request({id, 0});
      continue;
    }
    const auto* split = std::get_if<Split>(&node.op);
    if (split != nullptr && analysis.is_dynamic(split->axis)) placement.request(node.operands[0]);
    const auto* merge = std::get_if<Merge>(&node.op);
    if (merge != nullptr && analysis.is_dynamic(merge->axis) && !analysis.users[i].empty())
      placement.request({id, 0});
    if (const auto* slice = std::get_if<Slice>(&node.op);
        slice != nullptr && analysis.is_dynamic(slice->axis))
      placement.request(node.operands[0]);
    // Axes that kernels are cut along come and go in memory only.
    if (split != nullptr || std::holds_alternative<Slice>(node.op)) {
      const AxisNames& before = graph.type(node.operands[0]).axes;
      const bool new_cut = std::any_of(
          node.results[0].axes.begin(), node.results[0].axes.end(), [&](const auto& axis) {
            return !contains(before, axis) && contains(analysis.outer, axis);
          });
      if (new_cut) placement.request(node.operands[0]);
    }
    if ((merge != nullptr || std::holds_alternative<Concat>(node.op)) &&
        read_by_compute(analysis, id)) {
      const bool lost_cut =
          std::any_of(node.operands.begin(), node.operands.end(), [&](Value operand) {
            const AxisNames& axes = graph.type(operand).axes;
            return std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
              return !contains(node.results[0].axes, axis) && contains(analysis.outer, axis);
            });
          });
      if (lost_cut) placement.request({id, 0});
    }
    if (std::holds_alternative<Shift>(node.op) &&
        analysis.is_dynamic(std::get<Shift>(node.op).axis))
      for (Value operand : node.operands) placement.request(operand);
    // A view of memory of which this is no view in its turn (past its bounds it reads no zeros).
    const bool along_dynamic = (split != nullptr && analysis.is_dynamic(split->axis)) ||
                               (std::holds_alternative<Slice>(node.op) &&
                                analysis.is_dynamic(std::get<Slice>(node.op).axis)) ||
                               (std::holds_alternative<Shift>(node.op) &&
                                analysis.is_dynamic(std::get<Shift>(node.op).axis));
    if (along_dynamic && !placement.memory_view({id, 0}))
      for (Value operand : node.operands) placement.keep(operand);
    const AxisNames summed = analysis.summed(id);
    const bool over_dynamic = std::any_of(summed.begin(), summed.end(), [&](const auto& axis) {
      return analysis.is_dynamic(axis) && !analysis.is_running_axis(axis);
    });
    const bool over_running = std::any_of(summed.begin(), summed.end(), [&](const auto& axis) {
      return analysis.is_running_axis(axis);
    });
    if (over_dynamic || over_running) placement.request({id, 0});
  }
}

}  // namespace krait
