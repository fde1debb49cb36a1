// Candidates: which schedules are legal for a graph and a shape, and which is the best guess.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/graph.h"
#include "schedules/cost.h"
#include "schedules/plan.h"
#include "schedules/target.h"

namespace krait {

/// What a schedule is wanted for.
struct ScheduleRequest {
  const Graph& graph;
  /// Sizes of the graph's symbols. Those that are missing count as with_usual_sizes() has them.
  Sizes sizes;
  /// As for lower(): both empty for a forward pass alone.
  std::vector<std::string> cotangents, wanted;
};

/// `sizes`, and for the symbols of the graph's axes that it lacks: 2048 for an axis that is
/// scanned, 1 for others.
Sizes with_usual_sizes(const Graph& graph, Sizes sizes);

struct Candidate {
  Schedule schedule;  // chunk, backward.chunk where there is a backward pass, segments above 1
  Cost forward, backward;
  /// Predicted seconds of both passes, and what their temporaries are priced at.
  double price = 0;
};

/// Why no plan of this graph can follow the schedule on the target, or nothing: a plan that the
/// target does not run, or chunks of a graph that cannot be chunked.
std::optional<std::string> why_illegal(const Schedule& schedule, const Graph& graph,
                                       const Target& target);
/// Why this plan cannot run at these sizes on the target, or nothing: more on chip than a kernel
/// may keep there, more temporaries than there is memory. The text says what would be allowed.
std::optional<std::string> why_illegal(const Plan& plan, const Sizes& sizes, const Target& target);
/// Throws UsageError with that reason.
void require_legal(const Plan& plan, const Sizes& sizes, const Target& target);

/// The legal schedules of the request, best guess first, equal guesses in the order of their text.
/// Keys that `given` sets stay as they are. Throws UsageError where there is none, with the reason.
std::vector<Candidate> candidates(const ScheduleRequest& request, const Target& target,
                                  const Schedule& given = {});

/// `given`, with the keys that it leaves open filled in by rule, from the width of the states that
/// the graph carries and its length: nothing is lowered or priced, since a layer asks this whenever
/// it is built. Segments are left at one: every segment is gone through twice, and on the threads
/// of a host that has not paid where it was measured.
Schedule with_defaults(const Schedule& given, const ScheduleRequest& request, const Target& target);

}  // namespace krait
