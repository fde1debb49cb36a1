#include "schedules/groups.h"

#include <algorithm>
#include <map>

#include "schedules/mapping.h"
#include "schedules/view.h"

namespace krait {
namespace {

class Grouper {
 public:
  Grouper(const Analysis& analysis, Placement& placement, const std::vector<Chain>& chains,
          const Schedule& schedule, const Cuts& cuts)
      : analysis_(analysis),
        placement_(placement),
        chains_(chains),
        recompute_(schedule.recompute.value_or(0)),
        cuts_(cuts) {}

  std::vector<Group> run() {
    share_products();
    form_groups();
    join_sums();
    return std::move(groups_);
  }

 private:
  const Graph& graph() const { return analysis_.graph; }

  std::vector<Value> results_of(int node) const {
    std::vector<Value> results;
    for (std::size_t r = 0; r < graph().node(node).results.size(); ++r)
      results.push_back({node, static_cast<int>(r)});
    return results;
  }

  /// Stored values that the loop computes.
  std::vector<Value> sinks_of(const Chain& chain) const {
    std::set<int> computed = chain.members;
    computed.insert(chain.nodes.begin(), chain.nodes.end());
    std::vector<Value> sinks;
    for (int node : computed)
      for (Value value : results_of(node))
        if (placement_.is_stored(value)) sinks.push_back(value);
    return sinks;
  }

  std::set<Value> owned_by(const Chain& chain) const {
    const std::vector<Value> sinks = sinks_of(chain);
    std::set<Value> own(sinks.begin(), sinks.end());
    for (int node : chain.nodes)
      for (Value value : results_of(node)) own.insert(value);
    return own;
  }

  Closure closure_of(const std::vector<Value>& sinks, const std::set<Value>& own) const {
    return close(analysis_, placement_, sinks, own);
  }

  /// Products inside kernels that several grid points of a loop would repeat are computed once and
  /// kept, but for those that add little to what the loop computes anyhow: these save a kernel, and
  /// what it would write, others read and all wait for.
  void share_products() {
    for (const Chain& chain : chains_) {
      std::vector<Value> sinks = sinks_of(chain);
      for (int node : chain.nodes) sinks.push_back({node, 0});
      const Closure closure = closure_of(sinks, owned_by(chain));
      double own = 0;
      std::vector<int> shared;
      for (int node : closure.nodes) {
        if (!analysis_.matmul[node] || chain.depends_on_state(node)) continue;
        const AxisNames missing = without(chain.grid, graph().node(node).results[0].axes);
        if (std::any_of(missing.begin(), missing.end(), [&](const auto& axis) {
              return graph().axis(axis).extent != Extent::constant(1);
            }))
          shared.push_back(node);
      }
      for (int node : closure.nodes)
        if (analysis_.matmul[node] && std::find(shared.begin(), shared.end(), node) == shared.end())
          own += turn_work(chain, node);
      double again = 0;
      for (int node : shared) {
        const double work = turn_work(chain, node);
        if (100 * (again + work) <= static_cast<double>(recompute_) * own)
          again += work;
        else
          placement_.request({node, 0});
      }
    }
  }

  /// Multiply-adds of a product in one turn of the loop, of one grid point.
  double turn_work(const Chain& chain, int node) const {
    AxisNames axes = graph().node(node).results[0].axes;
    for (const auto& axis : analysis_.summed(node)) axes.push_back(axis);
    return static_cast<double>(constant_elements(graph(), without(axes, chain.grid)));
  }

  void form_groups() {
    std::set<Value> assigned;
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      Group group;
      group.chain = static_cast<int>(i);
      group.sinks = sinks_of(chains_[i]);
      if (group.sinks.empty()) continue;
      assigned.insert(group.sinks.begin(), group.sinks.end());
      group.closure = closure_of(group.sinks, owned_by(chains_[i]));
      group.mapping = chain_mapping(analysis_, chains_[i]);
      groups_.push_back(std::move(group));
    }
    // The others: those that share work, run over the same axes, do not wait for one another and
    // need the same of what is kept apart.
    std::map<std::vector<std::string>, std::vector<Group>> by_key;
    for (const auto& [value, views] : placement_.stored()) {
      if (assigned.count(value) || analysis_.product[value.node]) continue;
      Group group;
      group.sinks = {value};
      group.closure = closure_of({value}, {value});
      std::vector<std::string> key = grouping_key(analysis_, group.closure);
      key.push_back(std::to_string(levels_.of(analysis_, placement_, value)));
      for (int node : group.closure.nodes)
        if (cuts_.apart.count(node)) key.push_back("apart " + std::to_string(node));
      std::vector<Group>& candidates = by_key[key];
      std::vector<Group> kept;
      for (Group& other : candidates) {
        if (!shares_work(group.closure, other.closure)) {
          kept.push_back(std::move(other));
          continue;
        }
        group.sinks.insert(group.sinks.end(), other.sinks.begin(), other.sinks.end());
        group.closure.join(other.closure);
      }
      std::sort(group.sinks.begin(), group.sinks.end());
      kept.push_back(std::move(group));
      candidates = std::move(kept);
    }
    for (auto& [key, groups] : by_key)
      for (Group& group : groups) {
        group.closure =
            closure_of(group.sinks, std::set<Value>(group.sinks.begin(), group.sinks.end()));
        group.mapping = local_mapping(analysis_, group.closure);
        groups_.push_back(std::move(group));
      }
  }

  /// A sum over dynamic axes of what another kernel computes is taken there.
  void join_sums() {
    for (std::size_t r = 0; r < groups_.size(); ++r) {
      const Group& reduction = groups_[r];
      if (reduction.sinks.size() != 1 || reduction.chain >= 0) continue;
      const Value sink = reduction.sinks[0];
      const AxisNames summed = analysis_.summed(sink.node);
      if (analysis_.matmul[sink.node] ||
          std::none_of(summed.begin(), summed.end(),
                       [&](const auto& axis) { return analysis_.is_dynamic(axis); }))
        continue;
      for (std::size_t k = 0; k < groups_.size(); ++k) {
        if (k == r || !takes(groups_[k], sink)) continue;
        groups_[k].sinks.push_back(sink);
        std::sort(groups_[k].sinks.begin(), groups_[k].sinks.end());
        groups_[k].closure = closure_of(groups_[k].sinks, owned_by(groups_[k]));
        if (groups_[k].chain < 0) groups_[k].mapping = local_mapping(analysis_, groups_[k].closure);
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(r));
        --r;
        break;
      }
    }
  }

  std::set<Value> owned_by(const Group& group) const {
    std::set<Value> own(group.sinks.begin(), group.sinks.end());
    if (group.chain >= 0) own.merge(owned_by(chains_[group.chain]));
    return own;
  }

  /// Whether the kernel already computes or reads all that the sum needs, along axes that it can
  /// sum.
  bool takes(const Group& group, Value sink) const {
    if (waits_for(group, sink.node)) return false;
    std::set<Value> own = owned_by(group);
    own.insert(sink);
    const Closure alone = closure_of({sink}, own);
    for (int node : alone.nodes)
      if (node != sink.node && !group.closure.has(node) && !is_view(graph().node(node).op))
        return false;
    if (std::any_of(cuts_.apart.begin(), cuts_.apart.end(),
                    [&](int node) { return alone.has(node) != group.closure.has(node); }))
      return false;
    if (std::none_of(alone.nodes.begin(), alone.nodes.end(),
                     [&](int node) { return group.closure.has(node); }) &&
        alone.loads.empty())
      return false;
    for (const auto& [value, views] : alone.loads)
      if (!group.closure.loads.count(value)) return false;
    const AxisNames summed = analysis_.summed(sink.node);
    const AxisNames& axes = graph().type(sink).axes;
    for (const AxisMapping& mapped : group.mapping) {
      if (contains(axes, mapped.axis)) continue;
      // Made outside of the innermost loop.
      if (mapped.kind == AxisMapping::Kind::serial && contains(analysis_.tiles, mapped.axis))
        continue;
      if (!contains(summed, mapped.axis)) return false;
      // Summing over a constant axis that is cut would make it a loop.
      if (mapped.kind == AxisMapping::Kind::grid && !analysis_.is_dynamic(mapped.axis))
        return false;
    }
    return true;
  }

  /// Whether something in the kernel depends on the node, by way of memory or not.
  bool waits_for(const Group& group, int node) const {
    std::set<int> readers{node};
    for (std::size_t i = static_cast<std::size_t>(node) + 1; i < graph().nodes().size(); ++i) {
      const int number = static_cast<int>(i);
      const auto& operands = graph().node(number).operands;
      if (std::none_of(operands.begin(), operands.end(),
                       [&](Value operand) { return readers.count(operand.node) != 0; }))
        continue;
      if (group.closure.has(number)) return true;
      readers.insert(number);
    }
    return false;
  }

  const Analysis& analysis_;
  Placement& placement_;
  const std::vector<Chain>& chains_;
  std::int64_t recompute_;
  const Cuts& cuts_;
  std::vector<Group> groups_;
  Levels levels_;
};

}  // namespace

std::vector<Group> form_groups(const Analysis& analysis, Placement& placement,
                               const std::vector<Chain>& chains, const Schedule& schedule,
                               const Cuts& cuts) {
  return Grouper(analysis, placement, chains, schedule, cuts).run();
}

}  // namespace krait
