#include "schedules/cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "schedules/view.h"

namespace krait {
namespace {

/// Of the peak of multiply-adds, what register-blocked products reach, and a library's.
constexpr double kBlockedShare = 0.5, kLibraryShare = 0.7;
/// A product costs as if its sum had so many more terms: results come in and go out.
constexpr double kSumEnds = 4;
/// Cycles of a node each time a grid point comes to it, however little it does.
constexpr double kNodeCycles = 60;

double weight(ScalarOp op) {
  switch (op) {
    case ScalarOp::constant:
    case ScalarOp::operand:
    case ScalarOp::index:
    case ScalarOp::extent:
    case ScalarOp::nonpositive: return 0;
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::floor:
    case ScalarOp::logical_not:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::equal:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::select: return 1;
    case ScalarOp::wrap: return 3;
    case ScalarOp::div: return 8;
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt: return 12;
    case ScalarOp::exp:
    case ScalarOp::exp_nonpositive: return 14;
    case ScalarOp::expm1:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::sin_turns:
    case ScalarOp::cos_turns: return 20;
    case ScalarOp::tanh:
    case ScalarOp::sigmoid: return 28;
    case ScalarOp::softplus: return 36;
  }
  return 1;
}

class KernelCoster {
 public:
  KernelCoster(const Plan& plan, const PlannedKernel& kernel, const Sizes& sizes,
               const Target& target)
      : plan_(plan), graph_(plan.graph), kernel_(kernel), sizes_(sizes), target_(target) {
    cost_.name = kernel.name;
    for (const AxisMapping& mapped : kernel.mapping) {
      if (mapped.kind == AxisMapping::Kind::grid) grid_[mapped.axis] = extent(mapped.axis);
      if (mapped.kind == AxisMapping::Kind::blocked)
        blocks_[mapped.axis] = static_cast<double>(mapped.blocks);
      mapped_.insert(mapped.axis);
    }
    for (const auto& [axis, size] : grid_) cost_.grid *= size;
    for (const auto& [axis, count] : blocks_) cost_.grid *= count;
  }

  KernelCost run() {
    for (int node : kernel_.nodes) compute(node);
    for (const Remade& remade : kernel_.remade) {
      // As many turns as there are positions before the kernel's own since the last that is kept.
      turns_ = static_cast<double>(remade.every - 1) / 2;
      for (int node : remade.nodes) compute(node);
      compute(remade.scan);
      turns_ = 1;
    }
    move();
    if (kernel_.kind != PlannedKernel::Kind::product) keep();
    cost_.seconds = seconds();
    return cost_;
  }

 private:
  double extent(const std::string& axis) const {
    return static_cast<double>(graph_.axis(axis).extent.value(sizes_));
  }
  double elements(const AxisNames& axes) const {
    double count = 1;
    for (const auto& axis : axes) count *= extent(axis);
    return count;
  }
  /// How often a kernel handles a value with these axes: once for each grid point that shares it.
  double repeats(const AxisNames& axes) const {
    double times = 1;
    for (const auto& [axis, size] : grid_)
      if (!contains(axes, axis)) times *= size;
    for (const auto& [axis, count] : blocks_)
      if (!contains(axes, axis)) times *= count;
    return times;
  }
  double bytes(Value value) const {
    const Type& type = graph_.type(value);
    return elements(type.axes) * static_cast<double>(size_in_bytes(type.dtype));
  }
  /// Elements that are on chip together.
  double tile_bytes(Value value) const {
    const Type& type = graph_.type(value);
    double size = static_cast<double>(size_in_bytes(type.dtype));
    for (const auto& axis : type.axes)
      if (!mapped_.count(axis)) size *= extent(axis);
    return size;
  }

  /// The axes along which a node works.
  AxisNames domain(const Node& node) const {
    AxisNames axes = node.results[0].axes;
    if (std::holds_alternative<Contract>(node.op) || std::holds_alternative<Reduce>(node.op))
      for (Value operand : node.operands)
        for (const auto& axis : graph_.type(operand).axes)
          if (!contains(axes, axis)) axes.push_back(axis);
    return axes;
  }

  void compute(int number) {
    const Node& node = graph_.node(number);
    const AxisNames axes = domain(node);
    const double times = repeats(axes), count = elements(axes) * times * turns_;
    dtype_ = wider(dtype_, node.results[0].dtype);
    double visits = cost_.grid * turns_;
    for (const AxisMapping& mapped : kernel_.mapping)
      if (mapped.kind != AxisMapping::Kind::grid && contains(axes, mapped.axis))
        visits *= extent(mapped.axis) / static_cast<double>(mapped.blocks);
    visits_ += visits;
    if (const auto* contract = std::get_if<Contract>(&node.op)) {
      const double terms = static_cast<double>(std::max<std::size_t>(node.operands.size(), 2));
      (contract->sum.empty() ? cost_.element_flops : cost_.product_flops) += terms * count;
      double length = 1;
      for (const auto& axis : contract->sum)
        if (!mapped_.count(axis)) length *= extent(axis);
      if (!contract->sum.empty()) ends_ += terms * count * kSumEnds / length;
    } else if (const auto* map = std::get_if<Map>(&node.op)) {
      cost_.element_flops += krait::weight(map->expression) * count;
    } else if (std::holds_alternative<Scan>(node.op) || std::holds_alternative<PairSum>(node.op)) {
      cost_.element_flops += 4 * count;  // a multiply-add and what a step costs
    } else if (!is_view(node.op)) {
      cost_.element_flops += count;
    }
    // Operands come in and results go out; a carried value comes in too.
    for (Value operand : node.operands)
      cost_.traffic += bytes(operand) * repeats(graph_.type(operand).axes) * turns_;
    const bool carried =
        std::holds_alternative<Scan>(node.op) ||
        (std::holds_alternative<Contract>(node.op) && axes != node.results[0].axes);
    const double written = bytes({number, 0}) * repeats(node.results[0].axes) * turns_;
    cost_.traffic += (carried ? 2 : 1) * written;
  }

  static DType wider(DType a, DType b) { return size_in_bytes(a) > size_in_bytes(b) ? a : b; }

  /// Of a value's positions, how many a view shows: one of so many, where a digit says so.
  double share(const View& view) const {
    for (const View::Dim& dim : view.dims)
      for (const auto& [name, factor] : dim.index.terms)
        for (const Digit& digit : kernel_.digits)
          if (digit.name == name) return 1 / static_cast<double>(digit.base);
    return 1;
  }

  void move() {
    for (const auto& [value, views] : kernel_.loads)
      if (!views.empty()) cost_.bytes += bytes(value) * share(views[0]);
    for (const Remade& remade : kernel_.remade)
      for (const auto& [value, views] : remade.loads)
        if (!views.empty() && !kernel_.loads.count(value)) cost_.bytes += bytes(value);
    for (const auto& [value, view] : kernel_.stores) cost_.bytes += bytes(value) * share(view);
    for (const Partial& partial : kernel_.partials)
      cost_.bytes += static_cast<double>(plan_.objects[partial.object].bytes(sizes_));
    if (kernel_.kind == PlannedKernel::Kind::finish) {
      cost_.element_flops += cost_.bytes / 4;
      cost_.traffic += cost_.bytes;
    }
  }

  /// The most bytes that live at once. A Map that only Maps read is computed where it is read, and
  /// so is a value from memory; what does not vary along the innermost loop lives through it.
  void keep() {
    std::map<Value, std::pair<int, int>> lives;  // by place in the kernel
    std::map<Value, bool> stands;
    const int count = static_cast<int>(kernel_.nodes.size());
    std::string inner;
    for (const AxisMapping& mapped : kernel_.mapping)
      if (mapped.kind != AxisMapping::Kind::grid) inner = mapped.axis;
    for (const auto& [value, view] : kernel_.stores) stands[value] = true;
    for (int place = 0; place < count; ++place) {
      const Node& node = graph_.node(kernel_.nodes[place]);
      const bool map = std::holds_alternative<Map>(node.op);
      for (Value operand : node.operands) {
        auto found = lives.try_emplace(operand, place, place).first;
        found->second.second = place;
        stands[operand] |= !map;
      }
      for (std::size_t result = 0; result < node.results.size(); ++result) {
        const Value value{kernel_.nodes[place], static_cast<int>(result)};
        lives.try_emplace(value, place, place);
        if (result == 0) stands[value] |= !map && !is_view(node.op);
      }
    }
    std::vector<double> change(static_cast<std::size_t>(count) + 1);
    for (const auto& [value, span] : lives) {
      if (!stands[value]) continue;
      const AxisNames& axes = graph_.type(value).axes;
      const bool through = !inner.empty() && !contains(axes, inner);
      change[through ? 0 : span.first] += tile_bytes(value);
      change[through ? count : span.second + 1] -= tile_bytes(value);
    }
    double live = 0;
    for (const double step : change)
      cost_.scratch_bytes = std::max(cost_.scratch_bytes, live += step);
  }

  /// Bytes a cycle on chip where `scratch` bytes are used again and again.
  double chip_rate() const {
    const double l1 = static_cast<double>(target_.l1_bytes),
                 l2 = static_cast<double>(target_.l2_bytes);
    const double size = std::max(cost_.scratch_bytes, 1.0);
    // The share of the bytes that is found at each level.
    const double near = std::min(1.0, l1 / size), middle = std::min(1.0, l2 / size) - near;
    return 1 / (near / target_.l1_bytes_per_cycle + middle / target_.l2_bytes_per_cycle +
                (1 - near - middle) / target_.far_bytes_per_cycle);
  }

  double seconds() const {
    const bool library = kernel_.kind == PlannedKernel::Kind::product;
    const double vectors = target_.lanes(dtype_) * target_.vectors_per_cycle;
    double cycles =
        cost_.product_flops / (2 * vectors * (library ? kLibraryShare : kBlockedShare)) +
        cost_.element_flops / (vectors * kBlockedShare);
    if (!library)
      cycles += ends_ / (2 * vectors * kBlockedShare) + cost_.traffic / chip_rate() +
                kNodeCycles * visits_;
    const double threads = static_cast<double>(target_.threads);
    // The last round of a grid leaves threads idle; a library cuts its work as it likes.
    const double rounds = library ? 1 / threads : std::ceil(cost_.grid / threads) / cost_.grid;
    const double work = cycles * rounds / target_.cycles_per_second;
    return std::max(work, cost_.bytes / target_.memory_bytes_per_second) + target_.launch_seconds;
  }

  const Plan& plan_;
  const Graph& graph_;
  const PlannedKernel& kernel_;
  const Sizes& sizes_;
  const Target& target_;
  KernelCost cost_;
  std::map<std::string, double> grid_, blocks_;
  std::set<std::string> mapped_;
  DType dtype_ = DType::f32;
  double turns_ = 1;              // of what is computed now, beside the kernel's own loops
  double ends_ = 0, visits_ = 0;  // of sums, in flops; of nodes
};

}  // namespace

double weight(const Scalar& expression) {
  double sum = 0;
  for (const ScalarNode& node : expression.nodes()) sum += weight(node.op);
  return sum;
}

Cost cost(const Plan& plan, const Sizes& sizes, const Target& target) {
  Cost total;
  for (const PlannedKernel& kernel : plan.kernels) {
    const KernelCost one = KernelCoster(plan, kernel, sizes, target).run();
    total.flops += one.product_flops + one.element_flops;
    total.bytes += one.bytes;
    total.scratch_bytes = std::max(total.scratch_bytes, one.scratch_bytes);
    total.seconds += one.seconds;
    total.kernels.push_back(one);
  }
  total.arena_bytes = static_cast<double>(arena(plan, sizes).bytes);
  return total;
}

std::string to_text(const Cost& cost) {
  std::string text;
  char line[256];
  for (const KernelCost& kernel : cost.kernels) {
    std::snprintf(line, sizeof line,
                  "grid %.0f, %.4g product and %.4g other flops, %.4g bytes, %.4g on chip, "
                  "scratch %.0f, %.4g ms",
                  kernel.grid, kernel.product_flops, kernel.element_flops, kernel.bytes,
                  kernel.traffic, kernel.scratch_bytes, 1e3 * kernel.seconds);
    text += "kernel " + kernel.name + ": " + line + "\n";
  }
  std::snprintf(line, sizeof line,
                "%zu kernels, %.4g flops, %.4g bytes, scratch %.0f, temporaries %.0f, %.4g ms\n",
                cost.kernels.size(), cost.flops, cost.bytes, cost.scratch_bytes, cost.arena_bytes,
                1e3 * cost.seconds);
  return text + line;
}

}  // namespace krait
