#include "schedules/lower.h"

#include <algorithm>
#include <future>

#include "dsl/error.h"
#include "schedules/chunk.h"
#include "schedules/normalise.h"
#include "schedules/one_step.h"
#include "schedules/partition.h"
#include "schedules/segment.h"
#include "schedules/tile_states.h"

namespace krait {
namespace {

std::int64_t chunk_size(const Schedule& schedule, Pass pass) {
  constexpr std::int64_t fallback = 64;
  return schedule.of(pass).chunk.value_or(fallback);
}

std::int64_t segments(const Schedule& schedule, Pass pass) {
  return pass == Pass::step ? 1 : schedule.of(pass).segments.value_or(1);
}

/// Whether the graphs do the same but for the sizes of axes and numbers: they read the same then.
bool differ_in_sizes(const Graph& a, const Graph& b) {
  return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                    [](const Node& one, const Node& other) {
                      const auto* input = std::get_if<Input>(&one.op);
                      return one.op.index() == other.op.index() && one.operands == other.operands &&
                             (input == nullptr || *input == std::get<Input>(other.op));
                    });
}

/// `axis`: what schedule.tile cuts.
Plan planned(const Graph& normal, const Schedule& schedule, Pass pass, const std::string& axis) {
  Tiles tiles{in_segments(normal, segments(schedule, pass)), ""};
  if (const auto most = schedule.tile_of(pass)) tiles = in_tiles(tiles.graph, axis, *most);
  Plan plan = partition(tiles.graph, schedule, pass, {},
                        tiles.outer.empty() ? AxisNames{} : AxisNames{tiles.outer});
  verify(plan);
  return plan;
}

}  // namespace

Lowering::Lowering(const Graph& graph, std::vector<std::string> cotangents,
                   std::vector<std::string> wanted)
    : graph_(graph),
      cotangents_(std::move(cotangents)),
      wanted_(cotangents_.empty() ? std::vector<std::string>() : std::move(wanted)) {
  if (auto reason = why_not_chunkable(graph))
    throw UsageError("schedule.plan", "chunks",
                     "another plan, since " + *reason + "; other plans are not on this device yet");
  tiled_ = tiled_axis(graph);
  if (!has_backward()) return;
  live_ = prune(graph);
  cuts_ = checkpoints(live_);
}

void Lowering::begin(const Schedule& schedule) {
  schedule_ = schedule;
  const std::int64_t chunk = chunk_size(schedule, Pass::backward);
  if (!has_backward() || gradients_chunk_ == chunk) return;
  auto gradients = [&](const std::vector<Checkpoint>& at) {
    return backward_graph(live_, at, chunk, cotangents_, wanted_);
  };
  auto read = [](const Graph& graph, const std::vector<Checkpoint>& of) {
    std::vector<Checkpoint> found;
    for (const Checkpoint& cut : of)
      if (graph.find_input(cut.name)) found.push_back(cut);
    return found;
  };
  if (gradients_chunk_) {
    Graph resized = gradients(kept_);
    if (differ_in_sizes(resized, gradients_)) {
      gradients_ = std::move(resized);
      gradients_chunk_ = chunk;
      return;
    }
  }
  // Cut only where backward then reads: elsewhere a cut would part work that belongs together.
  gradients_ = gradients(cuts_);
  std::vector<Checkpoint> kept = read(gradients_, cuts_);
  if (kept.size() != cuts_.size()) gradients_ = gradients(kept);
  kept = read(gradients_, kept);
  gradients_chunk_ = chunk;
  if (kept == kept_) return;
  kept_ = std::move(kept);
  forward_ = {};
}

Graph Lowering::chunked(Pass pass, std::int64_t chunk) const {
  if (pass == Pass::backward) return gradients_;
  return krait::chunk(has_backward() ? with_checkpoints(live_, kept_) : graph_, chunk);
}

bool Lowering::lower(Pass pass) {
  Made& made = pass == Pass::backward ? backward_ : forward_;
  const Schedule own = schedule_.of(pass);
  if (made.schedule == own) {
    made.plan.schedule = schedule_;
    return false;
  }
  if (const std::int64_t chunk = chunk_size(schedule_, pass); made.chunk != chunk) {
    made.normal = normalise(chunked(pass, chunk));
    made.chunk = chunk;
  }
  made.plan = planned(made.normal, schedule_, pass, tiled_);
  made.schedule = own;
  return true;
}

Lowered Lowering::take() && {
  Lowered lowered{std::move(forward_.plan), std::move(backward_.plan), {}};
  for (const Checkpoint& cut : kept_) lowered.saved.push_back(cut.name);
  return lowered;
}

Lowered lower(const Graph& graph, const Schedule& schedule,
              const std::vector<std::string>& cotangents, const std::vector<std::string>& wanted) {
  Lowering lowering(graph, cotangents, wanted);
  lowering.begin(schedule);
  // Both at once: a layer that finds its kernels in the cache waits for little else.
  std::future<bool> backward;
  if (lowering.has_backward())
    backward = std::async(std::launch::async, [&] { return lowering.lower(Pass::backward); });
  lowering.lower(Pass::forward);
  if (backward.valid()) backward.get();
  return std::move(lowering).take();
}

Plan lower_step(const Graph& graph, const Schedule& schedule) {
  return planned(normalise(one_step(graph)), schedule, Pass::step, "");
}

}  // namespace krait
