// The pipeline: graph in, plans out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph.h"
#include "schedules/checkpoint.h"
#include "schedules/plan.h"

namespace krait {

struct Lowered {
  Plan forward;
  Plan backward;  // no kernels where no gradient is wanted
  /// What backward reads beyond inputs, cotangents: outputs of `forward` and inputs of `backward`
  /// with these names ("saved.NAME"), indexed by time, never by chunk. The tape.
  std::vector<std::string> saved;
};

/// Forward, and backward for the gradients named in `wanted` (inputs' names) under cotangents of
/// the outputs named in `cotangents`; both empty: forward only. The backward plan's inputs are
/// named as differentiate() names them, its outputs "grad.NAME". schedule.plan is chunks, a chunk
/// that is not set is of 64 positions (with_defaults() fills in a better guess); a graph
/// that cannot be chunked, or an op that no kernel can run yet, is a UsageError with the reason.
Lowered lower(const Graph& graph, const Schedule& schedule,
              const std::vector<std::string>& cotangents, const std::vector<std::string>& wanted);

/// The same for one schedule after another, as a search tries them: what a schedule has in common
/// with the one before is not made again.
class Lowering {
 public:
  /// As for lower(). The graph must live as long.
  Lowering(const Graph& graph, std::vector<std::string> cotangents,
           std::vector<std::string> wanted);

  bool has_backward() const { return !wanted_.empty(); }
  /// The schedule that follows, and what one pass leaves for the other under it.
  void begin(const Schedule& schedule);
  /// Makes the plan of forward or backward. False where that of the schedule before was the same.
  /// Two threads may ask for one pass each.
  bool lower(Pass pass);
  const Plan& plan(Pass pass) const { return (pass == Pass::backward ? backward_ : forward_).plan; }
  /// All of it, with nothing left here.
  Lowered take() &&;

 private:
  struct Made {
    std::optional<std::int64_t> chunk;  // of `normal`
    Graph normal;                       // the pass's graph, normalised
    std::optional<Schedule> schedule;   // of the pass alone, that `plan` follows
    Plan plan;
  };
  Graph chunked(Pass pass, std::int64_t chunk) const;

  const Graph& graph_;
  const std::vector<std::string> cotangents_, wanted_;
  Schedule schedule_;
  std::string tiled_;  // the axis that schedule.tile cuts
  Graph live_;
  std::vector<Checkpoint> cuts_, kept_;          // what forward may keep; what backward reads
  std::optional<std::int64_t> gradients_chunk_;  // of `gradients_`
  Graph gradients_;
  Made forward_, backward_;
};

/// One step: the same graph for windows of one position along its scanned axis.
Plan lower_step(const Graph& graph, const Schedule& schedule);

}  // namespace krait
