// Every graph that can be chunked gets a plan.
#include "schedules/partition.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "dsl/differentiate.h"
#include "schedules/chunk.h"
#include "schedules/lower.h"
#include "schedules/normalise.h"
#include "schedules/order.h"
#include "schedules/segment.h"
#include "tests/random_block.h"

namespace krait {
namespace {

using testing::random_block;

/// Random blocks with their gradients, in one part and in several.
void plan_random_blocks(unsigned from, unsigned to, bool rare) {
  int planned = 0;
  for (unsigned seed = from; seed < to; ++seed) {
    const int operations = 12 + static_cast<int>(seed % 14);
    const Graph graph = build_graph(random_block(seed, {.operations = operations, .rare = rare}));
    if (why_not_chunkable(graph)) continue;
    for (std::int64_t segments = 1; segments <= 3; ++segments) {
      INFO("seed " << seed << " rare " << rare << " segments " << segments);
      Schedule schedule;
      schedule.chunk = 8;
      schedule.segments = segments;
      Lowered lowered;
      REQUIRE_NOTHROW(lowered =
                          lower(graph, schedule, floating_outputs(graph), floating_inputs(graph)));
      REQUIRE(!lowered.forward.kernels.empty());
      REQUIRE(!lowered.backward.kernels.empty());
      ++planned;
    }
  }
  CHECK(planned > 0);
}

TEST_CASE("random blocks get plans") {
  plan_random_blocks(0, 40, false);
  plan_random_blocks(0, 20, true);
}

TEST_CASE("two thousand random blocks get plans", "[slow]") {
  plan_random_blocks(0, 2000, false);
  plan_random_blocks(0, 500, true);
}

TEST_CASE("cut everywhere, every kernel gives one value from memory") {
  for (unsigned seed = 0; seed < 20; ++seed)
    for (const std::int64_t segments : {1, 3}) {
      INFO("seed " << seed << " segments " << segments);
      const Graph graph = build_graph(random_block(seed, {.operations = 15, .rare = true}));
      if (why_not_chunkable(graph)) continue;
      const Graph normal = in_segments(normalise(differentiate(chunk(graph, 4))), segments);
      const Plan plan = partition(normal, {}, Pass::backward, cut_everywhere(normal));
      REQUIRE_NOTHROW(verify(plan));
      for (const PlannedKernel& kernel : plan.kernels) {
        std::set<int> written;
        for (const auto& [value, view] : kernel.stores) written.insert(value.node);
        for (const Partial& partial : kernel.partials) written.insert(partial.value.node);
        INFO(kernel.name << " of " << to_text(plan));
        CHECK(written.size() == 1);
      }
    }
}

TEST_CASE("parts of one tensor may come from kernels that wait for one another") {
  // The second half of what is left is a sum over time of the first.
  const Axis b("b"), t("t"), h("h", 2), half("half", 2), whole("whole", 4);
  Scope s;
  const Expr x = s.input("x", {b, t, half});
  const Expr total = cumsum(t, x).last;
  const Expr later = tanh(cumsum(t, x * total).last);
  s.output("y", concat({total, later}, {half, half}, whole), {b, whole});
  const Plan plan = partition(normalise(chunk(s.finish(), 4)), {}, Pass::forward);
  REQUIRE_NOTHROW(verify(plan));
  const int object = plan.find_object(MemoryObject::Kind::output, "y");
  std::set<std::size_t> writers, readers;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    for (const auto& [value, view] : plan.kernels[i].stores)
      if (view.object == object) writers.insert(i);
    for (const auto& [value, views] : plan.kernels[i].loads)
      for (const View& view : views)
        if (view.object == object) readers.insert(i);
  }
  INFO(to_text(plan));
  CHECK(writers.size() == 2);
  CHECK(*readers.begin() <= *writers.rbegin());
}

TEST_CASE("partials that look alike are added up by one kernel") {
  const Axis b("b"), t("t"), n("n", 24);
  const Graph graph = build_graph([&](Scope& s) {
    const Expr x = s.input("x", {b, t, n});
    s.output("y", tanh(x * s.param("scale", {n}) + s.param("offset", {n})), {b, t, n});
    s.output("peak", maximum(x, {b, t}), {n});
  });
  const Plan plan = lower(graph, {}, {"y"}, {"scale", "offset"}).backward;
  std::vector<std::size_t> sums;
  for (const PlannedKernel& kernel : plan.kernels)
    if (kernel.kind == PlannedKernel::Kind::finish) sums.push_back(kernel.partials.size());
  CHECK(sums == std::vector<std::size_t>{2});
}

TEST_CASE("kernels run after those that they wait for; circles are found") {
  CHECK(ordered({{2}, {}, {1}}) == std::vector<int>{1, 2, 0});
  CHECK(ordered({{1}, {0}, {}, {1}}) == std::vector<int>{2});
  const std::vector<std::set<int>> found = circles({{1}, {0}, {}, {1}, {5}, {6}, {4}});
  CHECK(found == std::vector<std::set<int>>{{0, 1}, {4, 5, 6}});
  CHECK(circles({{}, {0}, {0, 1}}).empty());
}

}  // namespace
}  // namespace krait
