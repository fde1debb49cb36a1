#include "schedules/partition.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>
#include <optional>

#include "dsl/error.h"
#include "schedules/analysis.h"
#include "schedules/chains.h"
#include "schedules/closure.h"
#include "schedules/legality.h"
#include "schedules/mapping.h"
#include "schedules/placement.h"
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

/// Values that must stand in memory whatever the kernels are: operands and results of library
/// products, values that change between whole time and chunks, sums over dynamic axes.
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

/// One kernel in the making.
struct Group {
  std::vector<Value> sinks;  // stored values that it computes, in graph order
  int chain = -1;
  Closure closure;
};

/// How freely values are put into one kernel, once those that depend on states are.
enum class Joining : std::uint8_t { none, alike, alike_and_sums };

class Partitioner {
 public:
  /// `kept`: values that stand in memory besides those that must anyhow.
  Partitioner(const Graph& graph, const Schedule& schedule, Pass pass, const std::set<Value>& kept,
              Joining joining)
      : analysis_(graph), placement_(analysis_), kept_(kept), joining_(joining) {
    plan_.pass = pass;
    plan_.schedule = schedule;
    plan_.graph = graph;
  }

  /// No plan where kernels wait for one another.
  std::optional<Plan> run() {
    request_boundaries(analysis_, placement_);
    for (Value value : kept_) placement_.keep(value);
    chains_ = form_chains(analysis_, placement_);
    share_products();
    part_at_sums_over_loops();
    form_groups();
    if (joining_ == Joining::alike_and_sums) join_sums();
    for (const Group& group : groups_) add_kernel(group);
    add_products();
    plan_.objects = placement_.objects();
    if (!order_kernels()) return std::nullopt;
    return std::move(plan_);
  }

  /// What must stand in memory too for the kernels to be possible; none: they are.
  std::set<Value> misplaced() const {
    std::set<Value> found;
    for (const Group& group : groups_)
      found.merge(krait::misplaced(analysis_, group.closure, mapping_of(group)));
    return found;
  }

 private:
  const Graph& graph() const { return analysis_.graph; }

  std::set<Value> owned_by(const Chain& chain) const {
    std::set<Value> own;
    for (int node : chain.nodes)
      for (std::size_t r = 0; r < graph().node(node).results.size(); ++r)
        own.insert({node, static_cast<int>(r)});
    for (Value sink : chain.sinks) own.insert(sink);
    return own;
  }

  Closure closure_of(const std::vector<Value>& sinks, const std::set<Value>& own) const {
    return close(analysis_, placement_, sinks, own);
  }

  /// Products inside kernels that several kernels, or several grid points of one, would repeat are
  /// computed once and kept.
  void share_products() {
    for (const Chain& chain : chains_) {
      std::vector<Value> sinks = chain.sinks;
      for (int node : chain.nodes) sinks.push_back({node, 0});
      const Closure closure = closure_of(sinks, owned_by(chain));
      for (int node : closure.nodes) {
        if (!analysis_.matmul[node] || chain.depends_on_state(node)) continue;
        const AxisNames missing = without(chain.grid, graph().node(node).results[0].axes);
        if (std::any_of(missing.begin(), missing.end(), [&](const auto& axis) {
              return graph().axis(axis).extent != Extent::constant(1);
            }))
          placement_.request({node, 0});
      }
    }
  }

  /// In a kernel with products a constant outer axis that is summed over is a loop, so its sum is
  /// there only when the loop has ended. Where something that varies along the axis needs the sum,
  /// what the products give is kept, and the rest is done by a kernel without the loop.
  void part_at_sums_over_loops() {
    std::set<Value> of_chains;
    for (const Chain& chain : chains_) of_chains.merge(owned_by(chain));
    for (bool again = true; again;) {
      again = false;
      for (const auto& [sink, views] : placement_.stored()) {
        if (of_chains.count(sink) || analysis_.product[sink.node]) continue;
        const std::set<Value> kept = kept_before_sum(closure_of({sink}, {sink}));
        if (kept.empty()) continue;
        for (Value value : kept) placement_.request(value);
        again = true;
        break;
      }
    }
  }

  /// Where something along a loop of the closure needs a sum over the loop: the last value by way
  /// of which alone products reach the sink; the sum itself where there is none.
  std::set<Value> kept_before_sum(const Closure& closure) const {
    for (const AxisMapping& mapped : local_mapping(analysis_, closure)) {
      if (mapped.kind != AxisMapping::Kind::serial || !contains(analysis_.outer, mapped.axis) ||
          analysis_.is_dynamic(mapped.axis))
        continue;
      for (int sum : closure.nodes) {
        if (!contains(analysis_.summed(sum), mapped.axis)) continue;
        const std::set<int> behind = inside(closure, sum, true);
        if (std::none_of(behind.begin(), behind.end(), [&](int node) {
              return node != sum && contains(graph().node(node).results[0].axes, mapped.axis);
            }))
          continue;
        const std::set<int> before = inside(closure, sum, false);
        for (auto node = before.rbegin(); node != before.rend(); ++node)
          if (*node != sum && !is_view(graph().node(*node).op) &&
              contains(graph().node(*node).results[0].axes, mapped.axis) &&
              guards_products(closure, *node))
            return {{*node, 0}};
        return {{sum, 0}};
      }
    }
    return {};
  }

  /// Whether the node needs a product, and every product reaches the sinks by way of it.
  bool guards_products(const Closure& closure, int node) const {
    const std::set<int> needed = inside(closure, node, false);
    if (std::none_of(needed.begin(), needed.end(),
                     [&](int other) { return analysis_.matmul[static_cast<std::size_t>(other)]; }))
      return false;
    std::set<int> reached;
    for (Value sink : closure.sinks)
      if (sink.node != node) reached.insert(sink.node);
    for (auto other = closure.nodes.rbegin(); other != closure.nodes.rend(); ++other) {
      if (!reached.count(*other)) continue;
      if (analysis_.matmul[static_cast<std::size_t>(*other)]) return false;
      for (Value operand : graph().node(*other).operands)
        if (operand.node != node) reached.insert(operand.node);
    }
    return true;
  }

  /// Nodes of the closure that depend on `start`, or that it depends on, itself included.
  std::set<int> inside(const Closure& closure, int start, bool behind) const {
    std::set<int> reached{start};
    const auto reads = [&](int reader, int node) {
      const auto& operands = graph().node(reader).operands;
      return std::any_of(operands.begin(), operands.end(),
                         [&](Value operand) { return operand.node == node; });
    };
    const auto visit = [&](int node) {
      for (int other : reached)
        if (behind ? reads(node, other) : reads(other, node)) {
          reached.insert(node);
          return;
        }
    };
    if (behind)
      std::for_each(closure.nodes.begin(), closure.nodes.end(), visit);
    else
      std::for_each(closure.nodes.rbegin(), closure.nodes.rend(), visit);
    return reached;
  }

  void form_groups() {
    std::set<Value> assigned;
    for (std::size_t i = 0; i < chains_.size(); ++i) {
      Group group;
      group.chain = static_cast<int>(i);
      group.sinks = chains_[i].sinks;
      for (int node : chains_[i].nodes)
        for (std::size_t r = 0; r < graph().node(node).results.size(); ++r)
          if (const Value value{node, static_cast<int>(r)};
              placement_.is_stored(value) && !contains_value(group.sinks, value))
            group.sinks.push_back(value);
      std::sort(group.sinks.begin(), group.sinks.end());
      if (group.sinks.empty()) continue;
      assigned.insert(group.sinks.begin(), group.sinks.end());
      group.closure = closure_of(group.sinks, owned_by(chains_[i]));
      groups_.push_back(std::move(group));
    }
    // The others: those that share work, run over the same axes and do not wait for one another.
    std::map<std::vector<std::string>, std::vector<Group>> by_key;
    for (const auto& [value, views] : placement_.stored()) {
      if (assigned.count(value) || analysis_.product[value.node]) continue;
      Group group;
      group.sinks = {value};
      group.closure = closure_of({value}, {value});
      std::vector<std::string> key = grouping_key(analysis_, group.closure);
      key.push_back(std::to_string(levels_.of(analysis_, placement_, value)));
      std::vector<Group>& candidates = by_key[key];
      std::vector<Group> kept;
      for (Group& other : candidates) {
        if (joining_ == Joining::none || !shares_work(group.closure, other.closure)) {
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
    if (std::none_of(alone.nodes.begin(), alone.nodes.end(),
                     [&](int node) { return group.closure.has(node); }) &&
        alone.loads.empty())
      return false;
    for (const auto& [value, views] : alone.loads)
      if (!group.closure.loads.count(value)) return false;
    const AxisNames summed = analysis_.summed(sink.node);
    const AxisNames& axes = graph().type(sink).axes;
    for (const AxisMapping& mapped : mapping_of(group)) {
      if (contains(axes, mapped.axis)) continue;
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

  std::vector<AxisMapping> mapping_of(const Group& group) const {
    return group.chain >= 0
               ? chain_mapping(analysis_, chains_[group.chain], plan_.schedule, plan_.pass)
               : local_mapping(analysis_, group.closure);
  }

  static bool contains_value(const std::vector<Value>& values, Value value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  }

  void add_kernel(const Group& group) {
    PlannedKernel kernel;
    kernel.nodes = group.closure.nodes;
    kernel.loads = group.closure.loads;
    kernel.mapping = mapping_of(group);
    std::vector<PlannedKernel> finishing;
    for (Value sink : group.sinks) {
      const std::vector<View>& views = placement_.stored().at(sink);
      const AxisNames over = partial_axes(analysis_, kernel.mapping, sink);
      if (over.empty()) {
        for (const View& view : views) kernel.stores.push_back({sink, view});
        continue;
      }
      std::vector<Axis> dims;
      for (const auto& axis : over) dims.push_back(partial_axis(graph(), kernel.mapping, axis));
      for (const auto& axis : graph().type(sink).axes) dims.push_back(graph().axis(axis));
      const int object = placement_.add_temporary("partial." + graph().label(sink),
                                                  graph().type(sink).dtype, dims);
      kernel.partials.push_back({sink, object, over});
      PlannedKernel finish;
      finish.kind = PlannedKernel::Kind::finish;
      finish.partials = {kernel.partials.back()};
      for (const View& view : views) finish.stores.push_back({sink, view});
      finishing.push_back(std::move(finish));
    }
    plan_.kernels.push_back(std::move(kernel));
    for (PlannedKernel& finish : finishing) plan_.kernels.push_back(std::move(finish));
  }

  void add_products() {
    for (std::size_t i = 0; i < graph().nodes().size(); ++i) {
      if (!analysis_.product[i]) continue;
      const Value value{static_cast<int>(i), 0};
      PlannedKernel kernel;
      kernel.kind = PlannedKernel::Kind::product;
      kernel.nodes = {value.node};
      for (Value operand : graph().node(value.node).operands)
        kernel.loads[operand] = *placement_.memory_view(operand);
      for (const View& view : placement_.stored().at(value)) kernel.stores.push_back({value, view});
      plan_.kernels.push_back(std::move(kernel));
    }
  }

  /// Writers before readers, otherwise as they were made; names; lifetimes. False where kernels
  /// wait for one another.
  bool order_kernels() {
    const std::size_t count = plan_.kernels.size();
    std::vector<std::set<int>> written(count);
    std::vector<std::set<int>> read(count);
    for (std::size_t i = 0; i < count; ++i) {
      const PlannedKernel& kernel = plan_.kernels[i];
      for (const auto& [value, views] : kernel.loads)
        for (const View& view : views) read[i].insert(view.object);
      for (const auto& [value, view] : kernel.stores) written[i].insert(view.object);
      for (const Partial& partial : kernel.partials)
        (kernel.kind == PlannedKernel::Kind::finish ? read : written)[i].insert(partial.object);
    }
    std::vector<bool> done(count);
    std::vector<PlannedKernel> ordered;
    while (ordered.size() < count) {
      bool moved = false;
      for (std::size_t i = 0; i < count; ++i) {
        if (done[i]) continue;
        const bool waits = std::any_of(read[i].begin(), read[i].end(), [&](int object) {
          for (std::size_t j = 0; j < count; ++j)
            if (j != i && !done[j] && written[j].count(object)) return true;
          return false;
        });
        if (waits) continue;
        done[i] = true;
        moved = true;
        const int place = static_cast<int>(ordered.size());
        for (int object : written[i]) {
          MemoryObject& memory = plan_.objects[object];
          if (memory.first_kernel < 0) memory.first_kernel = place;
          memory.last_kernel = std::max(memory.last_kernel, place);
        }
        for (int object : read[i])
          plan_.objects[object].last_kernel = std::max(plan_.objects[object].last_kernel, place);
        ordered.push_back(plan_.kernels[i]);
      }
      if (!moved) return false;
    }
    plan_.kernels = std::move(ordered);
    std::map<std::string, int> taken;
    for (PlannedKernel& kernel : plan_.kernels) name_kernel(kernel, taken);
    return true;
  }

  /// After its first result, without the prefix of a layer, so that equal layers share kernels.
  void name_kernel(PlannedKernel& kernel, std::map<std::string, int>& taken) const {
    const int object =
        !kernel.stores.empty() ? kernel.stores[0].second.object : kernel.partials.at(0).object;
    std::string name = plan_.objects[object].name;
    if (plan_.objects[object].kind == MemoryObject::Kind::temporary && name.find('%') != name.npos)
      name = "part";
    if (const auto dot = name.rfind('.'); dot != name.npos) {
      // "saved.3" is no name of the block's: what follows the dot alone would be a number.
      const bool number = std::isdigit(static_cast<unsigned char>(name[dot + 1])) != 0;
      name = number ? name.substr(0, dot) : name.substr(dot + 1);
    }
    if (kernel.kind == PlannedKernel::Kind::finish) name = "finish_" + name;
    const int number = taken[name]++;
    kernel.name = number == 0 ? name : name + "_" + std::to_string(number + 1);
  }

  Analysis analysis_;
  Placement placement_;
  const std::set<Value>& kept_;
  Joining joining_;
  Plan plan_;
  std::vector<Chain> chains_;
  std::vector<Group> groups_;
  Levels levels_;
};

}  // namespace

Plan partition(const Graph& graph, const Schedule& schedule, Pass pass) {
  for (const Node& node : graph.nodes())
    if (std::holds_alternative<Gather>(node.op) || std::holds_alternative<ScatterSum>(node.op))
      throw UsageError(text("a block with a ", name(node.op), " cannot run on this device yet"));
  std::set<Value> kept;
  for (Joining joining : {Joining::alike_and_sums, Joining::alike, Joining::none})
    for (;;) {
      Partitioner partitioner(graph, schedule, pass, kept, joining);
      std::optional<Plan> plan = partitioner.run();
      if (!plan) break;
      const std::set<Value> more = partitioner.misplaced();
      if (more.empty()) return std::move(*plan);
      const std::size_t before = kept.size();
      kept.insert(more.begin(), more.end());
      KRAIT_ASSERT(kept.size() > before, "no kernel can compute ", graph.label(*more.begin()));
    }
  KRAIT_ASSERT(false, "kernels wait for one another");
}

}  // namespace krait
