#include "schedules/lower.h"

#include "dsl/error.h"
#include "schedules/checkpoint.h"
#include "schedules/chunk.h"
#include "schedules/normalise.h"
#include "schedules/one_step.h"
#include "schedules/partition.h"

namespace krait {
namespace {

std::int64_t chunk_size(const Schedule& schedule, Pass pass) {
  constexpr std::int64_t fallback = 64;
  if (pass == Pass::backward && schedule.backward_chunk) return *schedule.backward_chunk;
  return schedule.chunk.value_or(fallback);
}

Plan planned(const Graph& graph, const Schedule& schedule, Pass pass) {
  Plan plan = partition(normalise(graph), schedule, pass);
  verify(plan);
  return plan;
}

}  // namespace

Lowered lower(const Graph& graph, const Schedule& schedule,
              const std::vector<std::string>& cotangents, const std::vector<std::string>& wanted) {
  if (auto reason = why_not_chunkable(graph))
    throw UsageError("schedule.plan", "chunks", "another plan, since " + *reason);
  Lowered lowered;
  if (wanted.empty() || cotangents.empty()) {
    lowered.forward =
        planned(chunk(graph, chunk_size(schedule, Pass::forward)), schedule, Pass::forward);
    return lowered;
  }
  const Graph live = prune(graph);
  const std::vector<Checkpoint> cuts = checkpoints(live);
  const Graph backward =
      backward_graph(live, cuts, chunk_size(schedule, Pass::backward), cotangents, wanted);
  std::vector<Checkpoint> kept;
  for (const Checkpoint& cut : cuts)
    if (backward.find_input(cut.name)) {
      kept.push_back(cut);
      lowered.saved.push_back(cut.name);
    }
  lowered.backward = planned(backward, schedule, Pass::backward);
  lowered.forward =
      planned(chunk(with_checkpoints(live, kept), chunk_size(schedule, Pass::forward)), schedule,
              Pass::forward);
  return lowered;
}

Plan lower_step(const Graph& graph, const Schedule& schedule) {
  return planned(one_step(graph), schedule, Pass::step);
}

}  // namespace krait
