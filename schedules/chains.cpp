#include "schedules/chains.h"

#include <algorithm>
#include <functional>

#include "dsl/error.h"
#include "schedules/closure.h"
#include "schedules/view.h"

namespace krait {
namespace {

class Former {
 public:
  Former(const Analysis& analysis, Placement& placement, const Cuts& cuts)
      : analysis_(analysis), graph_(analysis.graph), placement_(placement), cuts_(cuts) {}

  std::vector<Chain> run() {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const int node = static_cast<int>(i);
      int latest = -1;
      for (Value operand : graph_.node(node).operands)
        latest = std::max(latest, waits_for_[operand.node]);
      if (analysis_.running[i]) {
        assign(node, latest);
        latest = std::max(latest, chain_of_.at(node));
      }
      waits_for_.push_back(latest);
    }
    for (Chain& chain : chains_) {
      std::set<std::string> axes;
      for (int node : chain.nodes)
        for (const auto& axis : graph_.node(node).results[0].axes) axes.insert(axis);
      for (const auto& axis : analysis_.outer)
        if (axes.count(axis) && axis != chain.axis) chain.grid.push_back(axis);
      chain.grid = graph_.sorted(chain.grid);
      std::set<Value> requests;
      for (int node : chain.nodes) request_others(chain, node, requests);
      for (Value value : requests) placement_.request(value);
      requests.clear();
      bool absorbed = absorb(chain, requests);
      while (absorbed && !requests.empty()) {
        for (Value value : requests) placement_.request(value);
        requests.clear();
        absorbed = absorb(chain, requests);
      }
      if (!absorbed) store_states(chain);
      absorbed_.insert(chain.members.begin(), chain.members.end());
    }
    return std::move(chains_);
  }

 private:
  /// Nodes computed on the way to the operands of `node`, back to memory; running ones included.
  std::set<int> cone(int node) const {
    const Closure closure = close(analysis_, placement_, graph_.node(node).operands, {});
    return {closure.nodes.begin(), closure.nodes.end()};
  }

  /// Whether `node` depends on `on` by way of nodes of `within`.
  bool depends(int node, int on, const std::set<int>& within) const {
    for (Value operand : graph_.node(node).operands) {
      if (operand.node == on) return true;
      if (within.count(operand.node) && depends(operand.node, on, within)) return true;
    }
    return false;
  }

  /// Joins a chain that the node depends on and that runs the same way, unless heavy work that
  /// others need too lies between, or a chain of the other direction does. `waits_for` is the last
  /// chain behind the node, by way of memory or not.
  void assign(int node, int waits_for) {
    const std::string axis = analysis_.running_axis(node);
    const std::set<int> within = cone(node);
    int joined = -1;
    int latest = -1;  // the last chain that the node waits for
    for (int other : within)
      if (analysis_.running[other]) latest = std::max(latest, chain_of_.at(other));
    if (latest >= 0) {
      const Chain& chain = chains_[latest];
      if (!heavy_between(chain, within, node)) {
        if (same_way(chain, node) && may_join(latest, node, waits_for) && !is_apart(chain, node))
          joined = latest;
      } else {
        // What it runs over is made where others need it too.
        placement_.request(run_over(node));
      }
    }
    if (joined < 0 && continues_first_pass(node) && waits_for < chain_of_.at(last_assigned_) + 1 &&
        !is_apart(chains_[chain_of_.at(last_assigned_)], node))
      joined = chain_of_.at(last_assigned_);
    if (joined < 0) {
      joined = static_cast<int>(chains_.size());
      chains_.push_back({{}, axis, analysis_.is_reverse(node), analysis_.parts_of(node), {}, {}});
    }
    chains_[joined].nodes.push_back(node);
    chain_of_[node] = joined;
    last_assigned_ = node;
    // Of a first pass only the end is read, by a loop over the parts.
    if (analysis_.is_first_pass(node))
      placement_.request({node, std::holds_alternative<Scan>(graph_.node(node).op) ? 2 : 1});
    // A second pass does no product of another loop again that it can read in the sum it runs over.
    if (analysis_.is_second_pass(node) && std::holds_alternative<Cumsum>(graph_.node(node).op) &&
        has_any_product(run_over(node).node))
      placement_.request(run_over(node));
  }

  Value run_over(int node) const {
    const bool scan = std::holds_alternative<Scan>(graph_.node(node).op);
    return graph_.node(node).operands[scan ? 1 : 0];
  }

  bool same_way(const Chain& chain, int node) const {
    return chain.axis == analysis_.running_axis(node) &&
           chain.reverse == analysis_.is_reverse(node) && chain.parts == analysis_.parts_of(node);
  }

  /// With parts, other chains wait for a chain's ends and give what it starts from.
  bool may_join(int chain, int node, int waits_for) const {
    return analysis_.parts_of(node).empty() ||
           (!analysis_.is_second_pass(node) && waits_for <= chain);
  }

  /// Whether the node needs something else of what is to be apart than the chain does.
  bool is_apart(const Chain& chain, int node) const {
    const auto needed = [&](int of) {
      std::set<int> found;
      for (int inner : cone(of))
        if (cuts_.apart.count(inner)) found.insert(inner);
      if (cuts_.apart.count(of)) found.insert(of);
      return found;
    };
    return !cuts_.apart.empty() && needed(node) != needed(chain.nodes.front());
  }

  /// Whether the node runs beside the first pass that was assigned last, cut along the same axes.
  bool continues_first_pass(int node) const {
    if (last_assigned_ < 0 || !analysis_.is_first_pass(node) ||
        !analysis_.is_first_pass(last_assigned_) ||
        !same_way(chains_[chain_of_.at(last_assigned_)], node))
      return false;
    auto cut = [&](int of) {
      AxisNames axes;
      for (const auto& axis : graph_.node(of).results[0].axes)
        if (contains(analysis_.outer, axis)) axes.push_back(axis);
      return axes;
    };
    return cut(node) == cut(last_assigned_);
  }

  /// Whether the node runs in parts: what it reads is made again in the other pass, in a kernel of
  /// its own.
  bool is_pass(int node) const { return !analysis_.parts_of(node).empty(); }

  /// Whether something that a product of the chain's states goes into, on the way to `node`, is
  /// read elsewhere too.
  bool heavy_between(const Chain& chain, const std::set<int>& within, int node) const {
    std::set<int> below;  // depends on the states
    std::set<int> heavy;  // by way of a product
    for (int inner : within) {
      auto among = [&](const std::set<int>& set) {
        const auto& operands = graph_.node(inner).operands;
        return std::any_of(operands.begin(), operands.end(),
                           [&](Value operand) { return set.count(operand.node) != 0; });
      };
      if (is_state(chain, inner) || among(below)) below.insert(inner);
      if (!is_state(chain, inner) && below.count(inner) &&
          (analysis_.matmul[inner] || among(heavy)))
        heavy.insert(inner);
    }
    return std::any_of(heavy.begin(), heavy.end(), [&](int inner) {
      return std::any_of(analysis_.users[inner].begin(), analysis_.users[inner].end(),
                         [&](int user) {
                           const bool other_pass = is_pass(node) && is_pass(user);
                           return user != node && !within.count(user) && !other_pass;
                         });
    });
  }

  bool is_state(const Chain& chain, int node) const {
    return std::find(chain.nodes.begin(), chain.nodes.end(), node) != chain.nodes.end();
  }

  /// Whether the value is what a state is once the loop has ended.
  bool is_last(const Chain& chain, Value value) const {
    if (!is_state(chain, value.node)) return false;
    return value.result == (std::holds_alternative<Scan>(graph_.node(value.node).op) ? 2 : 1);
  }

  /// States on the way to `node` that another loop gives, one that runs along another axis or the
  /// other way: they must stand in memory.
  void request_others(const Chain& chain, int node, std::set<Value>& requests) const {
    std::set<int> within = cone(node);
    within.insert(node);
    for (int inner : within)
      for (Value operand : graph_.node(inner).operands) {
        if (!analysis_.running[operand.node] || placement_.memory_view(operand)) continue;
        const Chain& other = chains_[chain_of_.at(operand.node)];
        if (other.axis != chain.axis || other.reverse != chain.reverse) requests.insert(operand);
      }
  }

  /// Everything that depends on the states, up to stored values, in order; stored values are among
  /// it. What an earlier chain computes in its loop reads the states from memory.
  std::vector<int> descendants(const Chain& chain) const {
    std::set<int> found;
    const std::set<int> states(chain.nodes.begin(), chain.nodes.end());
    std::function<void(int)> visit = [&](int node) {
      for (int user : analysis_.users[node]) {
        if (analysis_.product[user] || states.count(user)) continue;
        const Node& reader = graph_.node(user);
        const bool reads_memory =
            std::any_of(reader.operands.begin(), reader.operands.end(), [&](Value operand) {
              return operand.node == node && placement_.is_stored(operand) &&
                     (!states.count(node) || is_last(chain, operand));
            });
        if (reads_memory || absorbed_.count(user) || !found.insert(user).second) continue;
        visit(user);
      }
    };
    for (int node : chain.nodes) visit(node);
    return {found.begin(), found.end()};
  }

  /// Decides whether all that depends on the states can be computed in the loop, up to sums over
  /// heads; `requests` are values to be kept in memory for those, after which it must be asked
  /// again.
  bool absorb(Chain& chain, std::set<Value>& requests) const {
    std::set<int> after;  // done once the loop has ended
    std::set<int> sums;   // of these, what each part gives a part of
    std::set<int> members;
    std::set<int> later;  // for later kernels
    const std::vector<bool> behind = behind_others(chain);
    for (int node : descendants(chain)) {
      if (analysis_.running[node]) return false;
      const std::vector<Value>& operands = graph_.node(node).operands;
      const auto needed_later = [&](Value operand) {
        return (members.count(operand.node) || is_state(chain, operand.node)) &&
               !placement_.is_stored(operand);
      };
      if (behind[static_cast<std::size_t>(node)]) {
        later.insert(node);
        for (Value operand : operands)
          if (needed_later(operand)) requests.insert(operand);
        continue;
      }
      if (std::any_of(operands.begin(), operands.end(),
                      [&](Value operand) { return later.count(operand.node) != 0; })) {
        // What all heads share is better made where they are a loop, with all that it needs.
        if (lacks_grid(chain, node)) return false;
        later.insert(node);
        for (Value operand : operands)
          if (needed_later(operand)) keep_for_later(chain, operand, requests, true);
        continue;
      }
      request_others(chain, node, requests);
      const AxisNames& axes = graph_.node(node).results[0].axes;
      const AxisNames summed = analysis_.summed(node);
      const bool over_grid = std::any_of(summed.begin(), summed.end(), [&](const auto& axis) {
        return contains(chain.grid, axis) && !analysis_.is_dynamic(axis) &&
               graph_.axis(axis).extent != Extent::constant(1);
      });
      if (over_grid) {
        // A sum over heads that every head needs again waits for a later kernel, and what it sums
        // is kept. One that stays a sum is better taken where the heads are a loop.
        if (analysis_.matmul[node] || !has_product(chain, node) || !comes_back(chain, node))
          return false;
        for (Value operand : operands)
          keep_for_later(chain, operand, requests, needed_later(operand));
        later.insert(node);
        continue;
      }
      const bool waits = std::any_of(operands.begin(), operands.end(), [&](Value operand) {
        return after.count(operand.node) != 0 || is_last(chain, operand);
      });
      // Positions that the loop does not stand at, of whole time beside chunks.
      const bool elsewhere = std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
        return analysis_.is_dynamic(axis) && axis != chain.axis && !contains(chain.grid, axis);
      });
      if (contains(summed, chain.axis)) {
        after.insert(node);
        if (!chain.parts.empty()) sums.insert(node);
      } else if (waits || elsewhere) {
        const bool waits_for_sum =
            std::any_of(operands.begin(), operands.end(),
                        [&](Value operand) { return sums.count(operand.node) != 0; });
        if (elsewhere || contains(axes, chain.axis) || waits_for_sum) {
          // Needs the end of the loop at every position.
          later.insert(node);
          for (Value operand : operands)
            if (needed_later(operand)) requests.insert(operand);
          continue;
        }
        after.insert(node);
      }
      if (lacks_grid(chain, node)) return false;
      members.insert(node);
    }
    if (requests.empty()) keep_shared_operands(chain, members, requests);
    if (!requests.empty()) return true;
    chain.members = members;
    return true;
  }

  /// Whether several grid points would compute the same.
  bool lacks_grid(const Chain& chain, int node) const {
    const AxisNames& axes = graph_.node(node).results[0].axes;
    const AxisNames summed = analysis_.summed(node);
    return !is_view(graph_.node(node).op) &&
           std::any_of(chain.grid.begin(), chain.grid.end(), [&](const auto& axis) {
             return !contains(axes, axis) && !contains(summed, axis);
           });
  }

  /// Of each node: whether it needs another loop, or what is to be apart, that needs something of
  /// this chain.
  std::vector<bool> behind_others(const Chain& chain) const {
    std::vector<bool> behind(graph_.nodes().size()), needs(graph_.nodes().size());
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const int node = static_cast<int>(i);
      for (Value operand : graph_.node(node).operands) {
        if (needs[static_cast<std::size_t>(operand.node)]) needs[i] = true;
        if (behind[static_cast<std::size_t>(operand.node)]) behind[i] = true;
      }
      if (is_state(chain, node))
        needs[i] = true;
      else if (needs[i] && (analysis_.running[i] || cuts_.apart.count(node)))
        behind[i] = true;
    }
    return behind;
  }

  /// Whether something that depends on the node varies along a summed grid axis again.
  bool comes_back(const Chain& chain, int node) const {
    AxisNames lost;
    for (const auto& axis : analysis_.summed(node))
      if (contains(chain.grid, axis)) lost.push_back(axis);
    std::set<int> seen;
    std::function<bool(int)> visit = [&](int from) {
      return std::any_of(analysis_.users[from].begin(), analysis_.users[from].end(), [&](int user) {
        if (analysis_.product[user] || !seen.insert(user).second) return false;
        for (const auto& axis : lost)
          if (contains(graph_.node(user).results[0].axes, axis)) return true;
        return visit(user);
      });
    };
    return visit(node);
  }

  /// The fewest values from which `value` can be made again by maps alone: the value itself, or the
  /// one dear value behind a tree of maps.
  void keep_for_later(const Chain& chain, Value value, std::set<Value>& kept,
                      bool depends = false) const {
    std::set<Value> found;
    frontier(chain, value, found);
    if (found.empty() && depends) found.insert(value);
    kept.insert(found.begin(), found.end());
  }

  void frontier(const Chain& chain, Value value, std::set<Value>& found) const {
    const Node& node = graph_.node(value.node);
    if (placement_.memory_view(value) || !has_product(chain, value.node)) return;
    std::set<Value> below;
    if (std::holds_alternative<Map>(node.op)) {
      for (Value operand : node.operands) frontier(chain, operand, below);
      if (below.size() == 1 && graph_.type(*below.begin()).axes == node.results[0].axes) {
        found.insert(below.begin(), below.end());
        return;
      }
    }
    found.insert(value);
  }

  /// Whether a product inside the kernel lies between the states and `node`.
  bool has_product(const Chain& chain, int node) const {
    std::set<int> within = cone(node);
    within.insert(node);
    return std::any_of(within.begin(), within.end(), [&](int inner) {
      return analysis_.matmul[inner] &&
             std::any_of(chain.nodes.begin(), chain.nodes.end(),
                         [&](int state) { return depends(inner, state, within); });
    });
  }

  /// Whether products inside kernels lie between memory and the node.
  bool has_any_product(int node) const {
    if (analysis_.matmul[node]) return true;
    const std::set<int> within = cone(node);
    return std::any_of(within.begin(), within.end(),
                       [&](int inner) { return analysis_.matmul[inner]; });
  }

  /// What the members read beside the states, if products that others need too go into it, is made
  /// once and kept.
  void keep_shared_operands(const Chain& chain, const std::set<int>& members,
                            std::set<Value>& requests) const {
    std::set<int> inside = core_of(chain);
    std::map<Value, std::set<int>> beside;  // operands that are no members, and their cones
    for (int node : members) {
      inside.insert(node);
      for (Value operand : graph_.node(node).operands) {
        if (members.count(operand.node) || is_state(chain, operand.node)) continue;
        if (placement_.memory_view(operand)) continue;
        std::set<int> within = cone(operand.node);
        within.insert(operand.node);
        inside.insert(within.begin(), within.end());
        beside[operand] = std::move(within);
      }
    }
    for (const auto& [operand, within] : beside)
      for (int node : within) {
        if (!analysis_.matmul[node]) continue;
        const auto& users = analysis_.users[node];
        if (std::any_of(users.begin(), users.end(),
                        [&](int user) { return !inside.count(user) && !is_pass(user); }))
          requests.insert(operand);
      }
  }

  /// The states and everything on the way to them.
  std::set<int> core_of(const Chain& chain) const {
    std::set<int> core;
    for (int node : chain.nodes) {
      core.insert(node);
      for (int inner : cone(node)) core.insert(inner);
    }
    return core;
  }

  void store_states(const Chain& chain) {
    const std::set<int> core = core_of(chain);
    // Nodes of the core that are made again elsewhere, as something outside reads them or what they
    // go into.
    std::set<int> again;
    for (auto node = core.rbegin(); node != core.rend(); ++node)
      for (int user : analysis_.users[*node])
        if (!core.count(user) || (again.count(user) && !is_state(chain, user))) again.insert(*node);
    for (int node : chain.nodes)
      for (int user : analysis_.users[node]) {
        if (core.count(user) && (is_state(chain, user) || !again.count(user))) continue;
        for (Value operand : graph_.node(user).operands) {
          if (operand.node == node) placement_.request(operand);
          // What meets the states only after this chain has run is not made again for that.
          else if (!core.count(user) && !is_pass(user) && has_any_product(operand.node))
            placement_.request(operand);
        }
      }
    // What lies inside the loop and is read outside of it is either cheap, and done again, or kept.
    for (int node : core) {
      if (!analysis_.matmul[node] || analysis_.running[node]) continue;
      for (int user : analysis_.users[node])
        if (!core.count(user) && !is_pass(user)) {
          placement_.request({node, 0});
          break;
        }
    }
  }

  const Analysis& analysis_;
  const Graph& graph_;
  Placement& placement_;
  const Cuts& cuts_;
  std::vector<Chain> chains_;
  std::map<int, int> chain_of_;
  std::vector<int> waits_for_;  // of each node: the last chain that it needs
  int last_assigned_ = -1;      // the running node that was given a chain last
  std::set<int> absorbed_;      // members of the chains decided so far
};

}  // namespace

std::vector<Chain> form_chains(const Analysis& analysis, Placement& placement, const Cuts& cuts) {
  return Former(analysis, placement, cuts).run();
}

}  // namespace krait
