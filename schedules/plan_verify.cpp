// What every plan must keep, whoever made it.
#include <algorithm>
#include <set>

#include "dsl/error.h"
#include "schedules/plan.h"
#include "schedules/view.h"

namespace krait {
namespace {

/// A view may show fewer positions than a dim has, never more.
bool is_within(const Extent& shown, const Extent& dim) {
  return shown.symbol == dim.symbol && shown.divisor == dim.divisor && shown.offset <= dim.offset;
}

using Kind = PlannedKernel::Kind;

class PlanVerifier {
 public:
  explicit PlanVerifier(const Plan& plan) : plan_(plan) {}

  void run() {
    for (const MemoryObject& object : plan_.objects) check(object);
    writers_.resize(plan_.objects.size());
    readers_.resize(plan_.objects.size());
    for (const PlannedKernel& kernel : plan_.kernels) {
      for (const auto& [value, view] : kernel.stores) stored_.insert({value, view.object});
      if (kernel.kind != Kind::finish)
        for (const Partial& partial : kernel.partials)
          stored_.insert({partial.value, partial.object});
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      kernel_ = &plan_.kernels[i];
      number_ = static_cast<int>(i);
      KRAIT_ASSERT(names.insert(kernel_->name).second, "two kernels are named ", kernel_->name);
      check_kernel();
    }
    for (std::size_t i = 0; i < plan_.objects.size(); ++i) check_order(static_cast<int>(i));
  }

 private:
  const Graph& graph() const { return plan_.graph; }

  void check(const MemoryObject& object) const {
    KRAIT_ASSERT(object.strides.size() == object.dims.size(), object.name, " has ",
                 object.dims.size(), " dims and ", object.strides.size(), " strides");
    for (std::size_t d = 0; d < object.dims.size(); ++d)
      KRAIT_ASSERT(object.strides[d] >= 0, object.name, " has stride ", object.strides[d]);
  }

  bool is_constant(Value value) const {
    return std::holds_alternative<Constant>(graph().node(value.node).op);
  }

  void check_value(Value value) const {
    KRAIT_ASSERT(value.node >= 0 && value.node < static_cast<int>(graph().nodes().size()) &&
                     value.result >= 0 &&
                     value.result < static_cast<int>(graph().node(value.node).results.size()),
                 kernel_->name, " names value ", value.node, ".", value.result,
                 " that is not in the graph");
  }

  void check_view(Value value, const View& view) const {
    KRAIT_ASSERT(view.object >= 0 && view.object < static_cast<int>(plan_.objects.size()),
                 kernel_->name, ": object ", view.object);
    const MemoryObject& object = plan_.objects[view.object];
    int next = 0;
    for (const View::Dim& dim : view.dims) {
      if (dim.first < 0) continue;
      KRAIT_ASSERT(dim.first == next && dim.last >= dim.first &&
                       dim.last < static_cast<int>(object.dims.size()),
                   kernel_->name, ": a view of ", object.name, " has dims ", dim.first, " to ",
                   dim.last);
      next = dim.last + 1;
      if (dim.first == dim.last)
        KRAIT_ASSERT(is_within(dim.extent, object.dims[dim.first].extent), kernel_->name,
                     ": a view of ", object.name, " has extent ", dim.extent.text(), " for ",
                     object.dims[dim.first].extent.text());
      for (const auto& [axis, factor] : dim.index.terms)
        KRAIT_ASSERT(factor != 0 && (contains(graph().type(value).axes, axis) || is_digit(axis)),
                     kernel_->name, ": a view of ", object.name, " is indexed by ", axis,
                     ", which is no axis of value ", graph().label(value));
    }
    KRAIT_ASSERT(next == static_cast<int>(object.dims.size()), kernel_->name, ": a view of ",
                 object.name, " leaves dims out");
  }

  bool is_digit(const std::string& name) const {
    return std::any_of(kernel_->digits.begin(), kernel_->digits.end(),
                       [&](const Digit& digit) { return digit.name == name; });
  }

  /// What is read of the value in these objects was written by an earlier kernel: the value itself,
  /// or those that it is a view of.
  void check_written(Value value, const std::set<int>& objects) const {
    const Node& node = graph().node(value.node);
    bool stored = false;
    for (int object : objects)
      if (stored_.count({value, object})) {
        stored = true;
        KRAIT_ASSERT(done_.count({value, object}), kernel_->name, " reads ", graph().label(value),
                     " in ", plan_.objects[object].name, " before it is written");
      }
    if (stored || is_constant(value) || std::holds_alternative<Input>(node.op)) return;
    KRAIT_ASSERT(is_view(node.op), kernel_->name, " reads ", graph().label(value),
                 ", which is never written there");
    for (Value operand : node.operands) check_written(operand, objects);
  }

  /// What runs along the axis of a loop runs the loop's way.
  void check_direction(int node) const {
    const Op& op = graph().node(node).op;
    const auto* scan = std::get_if<Scan>(&op);
    const auto* sum = std::get_if<Cumsum>(&op);
    if (scan == nullptr && sum == nullptr) return;
    for (const AxisMapping& axis : kernel_->mapping)
      if (axis.kind != AxisMapping::Kind::grid && axis.axis == (scan ? scan->axis : sum->axis)) {
        KRAIT_ASSERT(axis.reverse == (scan ? scan->reverse : sum->reverse), kernel_->name,
                     " runs against node ", node, " along ", axis.axis);
        const bool blocked = axis.kind == AxisMapping::Kind::blocked;
        KRAIT_ASSERT((scan ? scan->parts : sum->parts) == (blocked ? axis.block_axis : ""),
                     kernel_->name, " runs node ", node, " along ", axis.axis,
                     " in other parts than it has");
        if (blocked)
          KRAIT_ASSERT(graph().axis(axis.block_axis).extent == Extent::constant(axis.blocks),
                       kernel_->name, " cuts ", axis.axis, " into ", axis.blocks, " parts");
      }
  }

  /// What a scan starts from, no value where it starts from zero.
  Value initial_of(int scan) const {
    const Node& node = graph().node(scan);
    return std::get<Scan>(node.op).has_initial ? node.operands[2] : Value{};
  }

  /// Each node has its operands by then; returns the nodes.
  std::set<int> check_nodes(const std::vector<int>& nodes,
                            const std::map<Value, std::vector<View>>& loads) const {
    std::set<int> computed;
    for (int node : nodes) {
      check_value({node, 0});
      for (Value operand : graph().node(node).operands)
        KRAIT_ASSERT(is_constant(operand) || loads.count(operand) || computed.count(operand.node),
                     kernel_->name, ": node ", node, " reads ", graph().label(operand),
                     " before it is there");
      check_direction(node);
      computed.insert(node);
    }
    return computed;
  }

  void check_loads(const std::map<Value, std::vector<View>>& loads) {
    for (const auto& [value, views] : loads) {
      check_value(value);
      std::set<int> objects;
      for (const View& view : views) objects.insert(view.object);
      check_written(value, objects);
      for (std::size_t i = 0; i < views.size(); ++i) {
        check_view(value, views[i]);
        KRAIT_ASSERT(views[i].keep == (i > 0), kernel_->name, ": view ", i, " of ",
                     graph().label(value), i > 0 ? " does not keep" : " keeps",
                     " what is there before it");
        readers_[views[i].object].insert(number_);
      }
    }
  }

  void check_kernel() {
    std::set<std::string> mapped;
    for (const AxisMapping& axis : kernel_->mapping) {
      KRAIT_ASSERT(mapped.insert(axis.axis).second, kernel_->name, " maps ", axis.axis, " twice");
      KRAIT_ASSERT(axis.blocks >= 1 && graph().has_axis(axis.axis), kernel_->name, " maps ",
                   axis.axis, " to ", axis.blocks, " blocks");
    }
    for (const Digit& digit : kernel_->digits)
      KRAIT_ASSERT(mapped.count(digit.axis) && digit.base >= 1 && !graph().has_axis(digit.name),
                   kernel_->name, " counts ", digit.axis, " in ", digit.base, "s as ", digit.name);
    const std::set<int> computed = check_nodes(kernel_->nodes, kernel_->loads);
    check_loads(kernel_->loads);
    for (const Remade& remade : kernel_->remade) {
      const Value entering{remade.scan, 0};
      check_value(entering);
      const auto* scan = std::get_if<Scan>(&graph().node(remade.scan).op);
      KRAIT_ASSERT(scan != nullptr && remade.every >= 1 && kernel_->loads.count(entering) &&
                       mapped.count(scan->axis),
                   kernel_->name, " makes ", graph().label(entering), " again");
      const std::set<int> again = check_nodes(remade.nodes, remade.loads);
      for (Value operand : graph().node(remade.scan).operands)
        KRAIT_ASSERT(operand == initial_of(remade.scan) || is_constant(operand) ||
                         remade.loads.count(operand) || again.count(operand.node),
                     kernel_->name, " makes ", graph().label(entering), " again without ",
                     graph().label(operand));
      check_loads(remade.loads);
    }
    for (const auto& [value, view] : kernel_->stores) {
      check_value(value);
      check_view(value, view);
      KRAIT_ASSERT(kernel_->kind == Kind::finish || computed.count(value.node) ||
                       kernel_->loads.count(value) || is_constant(value),
                   kernel_->name, " stores ", graph().label(value), " but does not compute it");
      writers_[view.object].insert(number_);
    }
    for (const Partial& partial : kernel_->partials) {
      check_value(partial.value);
      KRAIT_ASSERT(partial.object >= 0 && partial.object < static_cast<int>(plan_.objects.size()) &&
                       plan_.objects[partial.object].dims.size() ==
                           partial.over.size() + graph().type(partial.value).axes.size(),
                   kernel_->name, ": partials of ", graph().label(partial.value));
      if (kernel_->kind == Kind::finish) check_written(partial.value, {partial.object});
      (kernel_->kind == Kind::finish ? readers_ : writers_)[partial.object].insert(number_);
    }
    for (const auto& [value, view] : kernel_->stores) done_.insert({value, view.object});
    for (const Partial& partial : kernel_->partials) done_.insert({partial.value, partial.object});
    KRAIT_ASSERT(!kernel_->stores.empty() || !kernel_->partials.empty(), kernel_->name,
                 " writes nothing");
    KRAIT_ASSERT(kernel_->kind != Kind::product || kernel_->nodes.size() <= 2, kernel_->name,
                 " is a product of ", kernel_->nodes.size(), " nodes");
    if (kernel_->kind != Kind::finish) return;
    KRAIT_ASSERT(!kernel_->partials.empty(), kernel_->name, " adds up nothing");
    const Partial& first = kernel_->partials[0];
    for (const Partial& other : kernel_->partials)
      KRAIT_ASSERT(other.over == first.over &&
                       graph().type(other.value).axes == graph().type(first.value).axes,
                   kernel_->name, " adds up partials of ", graph().label(first.value), " and of ",
                   graph().label(other.value), ", along other axes");
  }

  void check_order(int number) const {
    const MemoryObject& object = plan_.objects[number];
    const std::set<int>& writers = writers_[number];
    const std::set<int>& readers = readers_[number];
    if (object.kind == MemoryObject::Kind::input) {
      KRAIT_ASSERT(writers.empty(), "kernel ", *writers.begin(), " writes input ", object.name);
      return;
    }
    if (object.kind == MemoryObject::Kind::output || !readers.empty())
      KRAIT_ASSERT(!writers.empty(), object.name, " is never written");
    if (object.kind != MemoryObject::Kind::temporary || writers.empty()) return;
    const int last = std::max(*writers.rbegin(), readers.empty() ? -1 : *readers.rbegin());
    KRAIT_ASSERT(object.first_kernel == *writers.begin() && object.last_kernel >= last, object.name,
                 " lives from ", object.first_kernel, " to ", object.last_kernel,
                 " but is used from ", *writers.begin(), " to ", last);
  }

  const Plan& plan_;
  const PlannedKernel* kernel_ = nullptr;
  int number_ = 0;
  std::vector<std::set<int>> writers_, readers_;
  std::set<std::pair<Value, int>> stored_, done_;  // values in objects: of all kernels, of earlier
};

}  // namespace

void verify(const Plan& plan) { PlanVerifier(plan).run(); }

}  // namespace krait
