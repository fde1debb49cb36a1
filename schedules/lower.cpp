#include "schedules/lower.h"

#include <future>

#include "dsl/error.h"
#include "schedules/checkpoint.h"
#include "schedules/chunk.h"
#include "schedules/normalise.h"
#include "schedules/one_step.h"
#include "schedules/partition.h"
#include "schedules/segment.h"

namespace krait {
namespace {

std::int64_t chunk_size(const Schedule& schedule, Pass pass) {
  constexpr std::int64_t fallback = 64;
  if (pass == Pass::backward && schedule.backward_chunk) return *schedule.backward_chunk;
  return schedule.chunk.value_or(fallback);
}

std::int64_t segments(const Schedule& schedule, Pass pass) {
  if (pass == Pass::step) return 1;
  if (pass == Pass::backward && schedule.backward_segments) return *schedule.backward_segments;
  return schedule.segments.value_or(1);
}

Plan planned(const Graph& graph, const Schedule& schedule, Pass pass) {
  Plan plan = partition(in_segments(normalise(graph), segments(schedule, pass)), schedule, pass);
  verify(plan);
  return plan;
}

}  // namespace

Lowered lower(const Graph& graph, const Schedule& schedule,
              const std::vector<std::string>& cotangents, const std::vector<std::string>& wanted) {
  if (auto reason = why_not_chunkable(graph))
    throw UsageError("schedule.plan", "chunks",
                     "another plan, since " + *reason + "; other plans are not on this device yet");
  Lowered lowered;
  if (wanted.empty() || cotangents.empty()) {
    lowered.forward =
        planned(chunk(graph, chunk_size(schedule, Pass::forward)), schedule, Pass::forward);
    return lowered;
  }
  const Graph live = prune(graph);
  const std::vector<Checkpoint> cuts = checkpoints(live);
  auto gradients = [&](const std::vector<Checkpoint>& at) {
    return backward_graph(live, at, chunk_size(schedule, Pass::backward), cotangents, wanted);
  };
  auto read = [](const Graph& graph, const std::vector<Checkpoint>& of) {
    std::vector<Checkpoint> found;
    for (const Checkpoint& cut : of)
      if (graph.find_input(cut.name)) found.push_back(cut);
    return found;
  };
  // Cut only where backward then reads: elsewhere a cut would part work that belongs together.
  const Graph probe = gradients(cuts);
  std::vector<Checkpoint> kept = read(probe, cuts);
  const Graph backward = kept.size() == cuts.size() ? probe : gradients(kept);
  kept = read(backward, kept);
  for (const Checkpoint& cut : kept) lowered.saved.push_back(cut.name);
  // Both at once: a layer that finds its kernels in the cache waits for little else.
  std::future<Plan> plan =
      std::async(std::launch::async, [&] { return planned(backward, schedule, Pass::backward); });
  lowered.forward =
      planned(chunk(with_checkpoints(live, kept), chunk_size(schedule, Pass::forward)), schedule,
              Pass::forward);
  lowered.backward = plan.get();
  return lowered;
}

Plan lower_step(const Graph& graph, const Schedule& schedule) {
  return planned(one_step(graph), schedule, Pass::step);
}

}  // namespace krait
