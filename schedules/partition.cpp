#include "schedules/partition.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "dsl/error.h"
#include "schedules/analysis.h"
#include "schedules/boundaries.h"
#include "schedules/chains.h"
#include "schedules/groups.h"
#include "schedules/legality.h"
#include "schedules/mapping.h"
#include "schedules/order.h"
#include "schedules/placement.h"
#include "schedules/remake.h"
#include "schedules/view.h"

namespace krait {
namespace {

/// One attempt: kernels as far as these cuts ask for, and where that fails, more cuts.
class Partitioner {
 public:
  Partitioner(const Graph& graph, const Schedule& schedule, Pass pass, const Cuts& cuts,
              const AxisNames& tiles)
      : analysis_(graph, tiles), placement_(analysis_), cuts_(cuts) {
    if (const auto width = schedule.width_of(pass)) analysis_.width = *width;
    plan_.pass = pass;
    plan_.schedule = schedule;
    plan_.graph = graph;
    plan_.tiles = tiles;
  }

  /// No plan where some kernel is not possible or kernels wait for one another.
  std::optional<Plan> run() {
    request_boundaries(analysis_, placement_);
    for (Value value : cuts_.kept) placement_.keep(value);
    const std::vector<Chain> chains = form_chains(analysis_, placement_, cuts_);
    groups_ = form_groups(analysis_, placement_, chains, plan_.schedule, cuts_);
    for (const Group& group : groups_)
      more_.add(misplaced(analysis_, placement_, group.closure, group.mapping));
    // A step has whole states in its tiles, and no chunks that could be smaller.
    if (plan_.pass == Pass::step || plan_.schedule.width_of(plan_.pass))
      for (const Group& group : groups_)
        if (is_rows(group))
          more_.kept.merge(kept_for_room(analysis_, placement_, group.closure, group.mapping));
    if (const auto every = plan_.schedule.save_every_of(plan_.pass))
      thin_states(analysis_, placement_, chains, *every, groups_);
    for (const Group& group : groups_) add_kernel(group);
    add_products();
    plan_.objects = placement_.objects();
    const std::vector<std::set<int>> waits = dependencies();
    const std::vector<int> order = ordered(waits);
    if (order.size() < waits.size()) part_circles(chains, waits);
    if (!more_.empty()) return std::nullopt;
    arrange(order);
    return std::move(plan_);
  }

  /// Where there was no plan: cuts without which there is none.
  const Cuts& more() const { return more_; }

 private:
  const Graph& graph() const { return analysis_.graph; }

  bool is_rows(const Group& group) const {
    return group.chain < 0 && !has_matmul(analysis_, group.closure);
  }

  void add_kernel(const Group& group) {
    Made made;
    PlannedKernel& kernel = made.kernel;
    made.reads = group.closure.boundary;
    made.group = &group;
    kernel.rows = is_rows(group);
    kernel.nodes = group.closure.nodes;
    kernel.loads = group.closure.loads;
    kernel.mapping = group.mapping;
    kernel.digits = group.digits;
    kernel.remade = group.remade;
    for (const Remade& remade : group.remade)
      for (const auto& [value, views] : remade.loads)
        for (Value root : placement_.written(placement_.roots(value), views))
          made.reads.insert(root);
    std::vector<Made> finishing;
    for (Value sink : group.sinks) {
      const std::vector<View>& views = placement_.stored().at(sink);
      const AxisNames over = partial_axes(analysis_, kernel.mapping, sink);
      if (over.empty()) {
        for (const View& view : views) kernel.stores.push_back({sink, view});
        made.writes.insert(sink);
        continue;
      }
      std::vector<Axis> dims;
      for (const auto& axis : over) dims.push_back(partial_axis(graph(), kernel.mapping, axis));
      for (const auto& axis : graph().type(sink).axes) dims.push_back(graph().axis(axis));
      const int object = placement_.add_temporary("partial." + graph().label(sink),
                                                  graph().type(sink).dtype, dims);
      kernel.partials.push_back({sink, object, over});
      // Partials that look alike are added up by one kernel.
      auto finish = std::find_if(finishing.begin(), finishing.end(), [&](const Made& other) {
        return alike(other.kernel.partials[0], kernel.partials.back());
      });
      if (finish == finishing.end()) {
        finish = finishing.insert(finish, Made{});
        finish->kernel.kind = PlannedKernel::Kind::finish;
        finish->finishes = static_cast<int>(made_.size());
      }
      finish->kernel.partials.push_back(kernel.partials.back());
      for (const View& view : views) finish->kernel.stores.push_back({sink, view});
      finish->writes.insert(sink);
    }
    made_.push_back(std::move(made));
    for (Made& finish : finishing) made_.push_back(std::move(finish));
  }

  /// Over the same axes of the same parts, combined in the same way.
  bool alike(const Partial& a, const Partial& b) const {
    const auto axes = [&](const Partial& partial) {
      std::vector<std::string> names = partial.over;
      for (const Axis& dim : placement_.objects()[partial.object].dims) names.push_back(dim.name);
      return names;
    };
    return axes(a) == axes(b) && graph().type(a.value).dtype == graph().type(b.value).dtype &&
           is_maximum(graph(), a.value) == is_maximum(graph(), b.value);
  }

  void add_products() {
    for (std::size_t i = 0; i < graph().nodes().size(); ++i) {
      if (!analysis_.product[i]) continue;
      const Value value{static_cast<int>(i), 0};
      Made made;
      PlannedKernel& kernel = made.kernel;
      kernel.kind = PlannedKernel::Kind::product;
      kernel.nodes = {value.node};
      for (Value operand : graph().node(value.node).operands) {
        const std::vector<View> views = *placement_.memory_view(operand);
        for (Value root : placement_.written(placement_.roots(operand), views))
          made.reads.insert(root);
        kernel.loads[operand] = views;
      }
      for (const View& view : placement_.stored().at(value)) kernel.stores.push_back({value, view});
      made.writes.insert(value);
      made_.push_back(std::move(made));
    }
  }

  /// By values, not by objects: parts of one tensor may come from kernels of which some need what
  /// others gave.
  std::vector<std::set<int>> dependencies() const {
    std::map<Value, int> writers;
    for (std::size_t i = 0; i < made_.size(); ++i)
      for (Value value : made_[i].writes) writers[value] = static_cast<int>(i);
    std::vector<std::set<int>> waits(made_.size());
    for (std::size_t i = 0; i < made_.size(); ++i) {
      for (Value value : made_[i].reads) waits[i].insert(writers.at(value));
      if (made_[i].finishes >= 0) waits[i].insert(made_[i].finishes);
    }
    return waits;
  }

  /// Kernels that wait for one another hold both what others in the circle wait for and what waits
  /// for others: the latter is parted from the former.
  void part_circles(const std::vector<Chain>& chains, const std::vector<std::set<int>>& waits) {
    for (const std::set<int>& circle : circles(waits)) {
      std::set<Value> late;  // what kernels of the circle write
      for (int member : circle) {
        const Made& made = made_[static_cast<std::size_t>(member)];
        late.insert(made.writes.begin(), made.writes.end());
      }
      for (int member : circle)
        if (const Group* group = made_[static_cast<std::size_t>(member)].group)
          part(*group,
               group->chain >= 0 ? &chains[static_cast<std::size_t>(group->chain)] : nullptr, late);
    }
  }

  /// Parts those sinks, and running nodes before them, that need one of the values in memory.
  void part(const Group& group, const Chain* chain, const std::set<Value>& late) {
    std::set<Value> waiting_loads;
    for (const auto& [value, views] : group.closure.loads)
      for (Value root : placement_.written(placement_.roots(value), views))
        if (late.count(root)) waiting_loads.insert(value);
    std::set<int> waiting, parted, starting;
    for (int node : group.closure.nodes) {
      const std::vector<Value>& operands = graph().node(node).operands;
      const auto among = [&](const std::set<int>& nodes) {
        return std::any_of(operands.begin(), operands.end(), [&](Value operand) {
          return nodes.count(operand.node) && !group.closure.loads.count(operand);
        });
      };
      if (!among(waiting) && std::none_of(operands.begin(), operands.end(), [&](Value operand) {
            return waiting_loads.count(operand) != 0;
          }))
        continue;
      waiting.insert(node);
      const bool starts = chain != nullptr && std::find(chain->nodes.begin(), chain->nodes.end(),
                                                        node) != chain->nodes.end();
      if (starts && !among(parted)) starting.insert(node);
      if (starts || among(parted)) parted.insert(node);
    }
    const auto waits = [&](Value sink) {
      return waiting.count(sink.node) != 0 || waiting_loads.count(sink) != 0;
    };
    if (std::all_of(group.sinks.begin(), group.sinks.end(), waits)) return;
    more_.apart.insert(starting.begin(), starting.end());
    for (Value sink : group.sinks)
      if (waits(sink) && !parted.count(sink.node)) more_.apart.insert(sink.node);
  }

  /// The kernels in this order; names; lifetimes.
  void arrange(const std::vector<int>& order) {
    for (std::size_t place = 0; place < order.size(); ++place) {
      const PlannedKernel& kernel = made_[static_cast<std::size_t>(order[place])].kernel;
      const int number = static_cast<int>(place);
      const bool finish = kernel.kind == PlannedKernel::Kind::finish;
      const auto written = [&](int object) {
        MemoryObject& memory = plan_.objects[object];
        if (memory.first_kernel < 0) memory.first_kernel = number;
        memory.last_kernel = std::max(memory.last_kernel, number);
      };
      const auto read = [&](int object) {
        MemoryObject& memory = plan_.objects[object];
        memory.last_kernel = std::max(memory.last_kernel, number);
      };
      for (const auto& [value, view] : kernel.stores) written(view.object);
      for (const Partial& partial : kernel.partials)
        finish ? read(partial.object) : written(partial.object);
      for_each_load(kernel, [&](Value, const std::vector<View>& views) {
        for (const View& view : views) read(view.object);
      });
      plan_.kernels.push_back(kernel);
    }
    std::map<std::string, int> taken;
    for (PlannedKernel& kernel : plan_.kernels) name_kernel(kernel, taken);
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

  /// A kernel before kernels are ordered.
  struct Made {
    PlannedKernel kernel;
    std::set<Value> reads, writes;  // values in memory
    int finishes = -1;              // the kernel whose partials it adds up
    const Group* group = nullptr;
  };

  Analysis analysis_;
  Placement placement_;
  const Cuts& cuts_;
  Cuts more_;
  Plan plan_;
  std::vector<Group> groups_;
  std::vector<Made> made_;
};

}  // namespace

Plan partition(const Graph& graph, const Schedule& schedule, Pass pass, Cuts cuts,
               const AxisNames& tiles) {
  for (const Node& node : graph.nodes())
    if (std::holds_alternative<Gather>(node.op) || std::holds_alternative<ScatterSum>(node.op))
      throw UsageError(text("a block with a ", name(node.op), " cannot run on this device yet"));
  for (;;) {
    Partitioner partitioner(graph, schedule, pass, cuts, tiles);
    if (std::optional<Plan> plan = partitioner.run()) return std::move(*plan);
    if (!cuts.add(partitioner.more()))
      KRAIT_ASSERT(cuts.add(cut_everywhere(graph)), "no kernels can compute this graph");
  }
}

}  // namespace krait
