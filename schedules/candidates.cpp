#include "schedules/candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "dsl/error.h"
#include "schedules/chunk.h"
#include "schedules/lower.h"

namespace krait {
namespace {

constexpr std::int64_t kChunks[] = {16, 32, 64, 128, 256};
/// Chunk sizes for a state of p n elements, as shares of sqrt(p n). With chunks of Q positions a
/// state comes and goes once in Q positions, which is p n / Q elements a position, and each
/// position meets Q others: the sum is least at a multiple of sqrt(p n). The backward pass keeps
/// states in memory, so that its multiple is larger. Measured on a host with vectors of 512 bits
/// over p from 16 to 128 and n from 16 to 256; the best is flat, a neighbour costs a tenth. The
/// backward pass takes twice the chunk that is fastest: the states and their gradients, 2 p n / Q
/// elements a position, then stay below the 3 p of input, output and gradient.
constexpr double kForwardShare = 1.0 / 3, kBackwardShare = 4.0 / 3;
/// Temporaries are priced as if each byte moved so many times: memory is what long sequences run
/// out of, and what is spread over it leaves the caches to no one.
constexpr double kMovesOfTemporaries = 4;

std::set<std::string> scanned_axes(const Graph& graph) {
  std::set<std::string> axes;
  for (const Node& node : graph.nodes()) {
    if (const auto* scan = std::get_if<Scan>(&node.op)) axes.insert(scan->axis);
    if (const auto* cumsum = std::get_if<Cumsum>(&node.op)) axes.insert(cumsum->axis);
  }
  return axes;
}

/// What a graph's scans carry, as far as it shows before the graph is lowered.
struct States {
  /// Fewest states of a scan that run side by side: one for each position of the axes of its decay
  /// and of those of dynamic size. 0 where nothing scans.
  double parallel = 0;
  /// Elements of the largest of them.
  double elements = 1;
};

States states_of(const Graph& graph, const Sizes& sizes) {
  States states;
  for (const Node& node : graph.nodes()) {
    const auto* scan = std::get_if<Scan>(&node.op);
    if (scan == nullptr) continue;
    double parallel = 1, elements = 1;
    for (const std::string& axis : node.results[0].axes) {
      if (axis == scan->axis) continue;
      const Extent& extent = graph.axis(axis).extent;
      const bool apart = contains(graph.type(node.operands[0]).axes, axis) || !extent.is_constant();
      (apart ? parallel : elements) *= static_cast<double>(extent.value(sizes));
    }
    states.parallel = states.parallel == 0 ? parallel : std::min(states.parallel, parallel);
    states.elements = std::max(states.elements, elements);
  }
  return states;
}

/// Segments that give every thread a state to work on, 1 where there are states enough.
std::int64_t most_segments(const Target& target, double parallel, std::int64_t positions,
                           std::int64_t chunk) {
  if (parallel < 1) return 1;
  const std::int64_t chunks = (positions + chunk - 1) / chunk;
  const auto idle = static_cast<std::int64_t>(static_cast<double>(target.threads) / parallel);
  return std::max<std::int64_t>(1, std::min(idle, chunks));
}

/// The longest axis that is scanned, 0 where there is none.
std::int64_t scanned_positions(const Graph& graph, const Sizes& sizes) {
  std::int64_t most = 0;
  for (const std::string& axis : scanned_axes(graph))
    most = std::max(most, graph.axis(axis).extent.value(sizes));
  return most;
}

/// The chunk sizes that are not mostly padding.
std::vector<std::int64_t> useful_chunks(std::int64_t positions) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : kChunks)
    if (sizes.empty() || size < 2 * positions) sizes.push_back(size);
  return sizes;
}

/// The one nearest to `wish`, by ratio.
std::int64_t nearest(const std::vector<std::int64_t>& sizes, double wish) {
  return *std::min_element(sizes.begin(), sizes.end(), [&](std::int64_t a, std::int64_t b) {
    const auto distance = [&](std::int64_t size) {
      return std::abs(std::log(static_cast<double>(size) / wish));
    };
    return distance(a) < distance(b);
  });
}

std::string count(double number) { return text(static_cast<std::int64_t>(number)); }

/// One pass under one schedule.
struct Priced {
  Cost cost;
  double price = 0;
  std::optional<std::string> illegal;
};

class Pricer {
 public:
  Pricer(const ScheduleRequest& request, const Target& target, const Schedule& given)
      : request_(request),
        target_(target),
        given_(given),
        sizes_(with_usual_sizes(request.graph, request.sizes)) {
    positions_ = scanned_positions(request.graph, sizes_);
    parallel_ = states_of(request.graph, sizes_).parallel;
    backward_ = !request.cotangents.empty() && !request.wanted.empty();
  }

  bool has_backward() const { return backward_; }

  /// The chunk sizes worth a thought: the one given, or those that are not mostly padding.
  std::vector<std::int64_t> chunks(Pass pass) const {
    const auto& fixed =
        pass == Pass::backward && given_.backward_chunk ? given_.backward_chunk : given_.chunk;
    if (fixed) return {*fixed};
    return useful_chunks(positions_);
  }
  /// The numbers of segments worth a thought: powers of two up to what fills the target.
  std::vector<std::int64_t> segments(std::int64_t chunk) const {
    if (given_.segments) return {*given_.segments};
    std::vector<std::int64_t> numbers{1};
    const std::int64_t most = most_segments(target_, parallel_, positions_, chunk);
    for (std::int64_t number = 2; number < 2 * most; number *= 2)
      numbers.push_back(std::min(number, most));
    return numbers;
  }

  const Priced& at(Pass pass, std::int64_t chunk, std::int64_t segments) {
    auto& passes = known_[{chunk, segments}];
    if (passes.empty()) {
      Schedule schedule = given_;
      schedule.chunk = schedule.backward_chunk = chunk;
      schedule.segments = segments;
      const Lowered lowered = lower(request_.graph, schedule, request_.cotangents, request_.wanted);
      passes[Pass::forward] = price(lowered.forward);
      passes[Pass::backward] = backward_ ? price(lowered.backward) : Priced{};
    }
    return passes.at(pass);
  }

  Candidate candidate(std::int64_t chunk, std::int64_t back, std::int64_t segments) {
    const Priced &forward = at(Pass::forward, chunk, segments),
                 &backward = at(Pass::backward, backward_ ? back : chunk, segments);
    Candidate made{given_, forward.cost, backward.cost, forward.price + backward.price};
    made.schedule.chunk = chunk;
    if (backward_ && back != chunk) made.schedule.backward_chunk = back;
    if (segments != 1) made.schedule.segments = segments;
    return made;
  }

 private:
  Priced price(const Plan& plan) const {
    Priced priced;
    priced.cost = cost(plan, sizes_, target_);
    priced.price = priced.cost.seconds +
                   kMovesOfTemporaries * priced.cost.arena_bytes / target_.memory_bytes_per_second;
    priced.illegal = why_illegal(plan, sizes_, target_);
    return priced;
  }

  const ScheduleRequest& request_;
  const Target& target_;
  const Schedule& given_;
  Sizes sizes_;
  double parallel_ = 0;
  std::int64_t positions_ = 0;
  bool backward_ = false;
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<Pass, Priced>> known_;
};

bool runs_chunks(const Schedule& schedule) {
  return schedule.plan.value_or(PlanKind::chunks) == PlanKind::chunks;
}

}  // namespace

Sizes with_usual_sizes(const Graph& graph, Sizes sizes) {
  constexpr std::int64_t usual_positions = 2048;
  for (const std::string& axis : scanned_axes(graph)) {
    const Extent& extent = graph.axis(axis).extent;
    if (!extent.is_constant()) sizes.emplace(extent.symbol, usual_positions);
  }
  for (const Axis& axis : graph.axes())
    if (!axis.extent.is_constant()) sizes.emplace(axis.extent.symbol, 1);
  return sizes;
}

std::optional<std::string> why_illegal(const Schedule& schedule, const Graph& graph,
                                       const Target& target) {
  if (schedule.plan == PlanKind::recurrent)
    return "plan=recurrent is not on this device (" + target.name +
           ") yet; allowed: plan=chunks, plan=step";
  if (!runs_chunks(schedule)) return {};
  if (const auto reason = why_not_chunkable(graph))
    return "plan=chunks needs a graph that can be chunked, and " + *reason;
  return {};
}

std::optional<std::string> why_illegal(const Plan& plan, const Sizes& sizes, const Target& target) {
  const Cost predicted = cost(plan, sizes, target);
  for (const KernelCost& kernel : predicted.kernels)
    if (kernel.scratch_bytes > static_cast<double>(target.scratch_limit))
      return "kernel " + kernel.name + " of the " + std::string(name(plan.pass)) +
             " pass would keep " + count(kernel.scratch_bytes) +
             " bytes on chip at once; allowed: a smaller chunk, for at most " +
             text(target.scratch_limit) + " bytes";
  if (predicted.arena_bytes > static_cast<double>(target.memory_bytes))
    return "temporaries of the " + std::string(name(plan.pass)) + " pass would take " +
           count(predicted.arena_bytes) +
           " bytes; allowed: a larger chunk, fewer segments or smaller sizes, for at most " +
           text(target.memory_bytes) + " bytes";
  return {};
}

void require_legal(const Plan& plan, const Sizes& sizes, const Target& target) {
  if (const auto reason = why_illegal(plan, sizes, target))
    throw UsageError("schedule \"" + to_text(plan.schedule) + "\": " + *reason);
}

std::vector<Candidate> candidates(const ScheduleRequest& request, const Target& target,
                                  const Schedule& given) {
  if (const auto reason = why_illegal(given, request.graph, target))
    throw UsageError("schedule \"" + to_text(given) + "\": " + *reason);
  KRAIT_REQUIRE(runs_chunks(given), "schedule is ", to_text(given),
                "; allowed: plan=chunks, since a step has no candidates");
  Pricer pricer(request, target, given);
  std::vector<Candidate> all;
  std::optional<std::string> reason;
  for (const std::int64_t chunk : pricer.chunks(Pass::forward))
    for (const std::int64_t segments : pricer.segments(chunk)) {
      const Priced& forward = pricer.at(Pass::forward, chunk, segments);
      if (forward.illegal && !reason) reason = forward.illegal;
      if (forward.illegal) continue;
      for (const std::int64_t back :
           pricer.has_backward() ? pricer.chunks(Pass::backward) : std::vector{chunk}) {
        const Priced& backward = pricer.at(Pass::backward, back, segments);
        if (backward.illegal && !reason) reason = backward.illegal;
        if (!backward.illegal) all.push_back(pricer.candidate(chunk, back, segments));
      }
    }
  if (all.empty()) throw UsageError("schedule \"" + to_text(given) + "\": " + reason.value());
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.price != b.price ? a.price < b.price : to_text(a.schedule) < to_text(b.schedule);
  });
  return all;
}

Schedule with_defaults(const Schedule& given, const ScheduleRequest& request, const Target&) {
  if (!runs_chunks(given)) return given;
  const Sizes sizes = with_usual_sizes(request.graph, request.sizes);
  const std::int64_t positions = scanned_positions(request.graph, sizes);
  if (positions == 0) return given;
  const States states = states_of(request.graph, sizes);
  const double width = std::sqrt(states.elements);
  const std::vector<std::int64_t> useful = useful_chunks(positions);
  Schedule guess;
  guess.chunk = nearest(useful, kForwardShare * width);
  if (!request.wanted.empty()) {
    const std::int64_t back = nearest(useful, kBackwardShare * width);
    if (back != *guess.chunk) guess.backward_chunk = back;
  }
  return merge(guess, given);
}

}  // namespace krait
