// States that are kept at intervals: which, and what makes the others again.
#include "schedules/remake.h"

#include "dsl/blocks/blocks.h"
#include "schedules/lower.h"
#include "tests/dsl/blocks_testing.h"

namespace krait {
namespace {

Plan backward_of(const BlockFunction& block, const std::string& schedule) {
  const Graph graph = build_graph(block);
  return lower(graph, parse_schedule(schedule), floating_outputs(graph), floating_inputs(graph))
      .backward;
}

/// Temporaries that hold a state of every chunk, or of every so many.
std::vector<MemoryObject> states(const Plan& plan, const std::string& row, const std::string& col) {
  std::vector<MemoryObject> found;
  for (const MemoryObject& object : plan.objects) {
    const auto has = [&](const std::string& name) {
      return std::any_of(object.dims.begin(), object.dims.end(),
                         [&](const Axis& dim) { return dim.name == name; });
    };
    if (object.kind == MemoryObject::Kind::temporary && has(row) && has(col))
      found.push_back(object);
  }
  return found;
}

std::size_t remade_in(const Plan& plan) {
  std::size_t count = 0;
  for (const PlannedKernel& kernel : plan.kernels) count += kernel.remade.size();
  return count;
}

const SsdSpec small_scan{.nheads = 6, .headdim = 16, .d_state = 32, .ngroups = 2};

TEST_CASE("states of both directions are kept every save.every positions, rounded up to chunks") {
  const Sizes sizes{{"b", 2}, {"t", 1000}};
  for (const auto& [schedule, chunks] :
       std::map<std::string, int>{{"chunk=16", 63},
                                  {"chunk=16 save.every=1", 63},
                                  {"chunk=16 save.every=16", 63},
                                  {"chunk=16 save.every=17", 32},
                                  {"chunk=16 save.every=64", 16},
                                  {"chunk=16 save.every=64 backward.save.every=100", 9},
                                  {"chunk=64 backward.chunk=16 save.every=64", 16},
                                  {"chunk=16 save.every=4096", 1}}) {
    const Plan plan = backward_of(block_function(small_scan), schedule);
    INFO(to_text(plan));
    CHECK_NOTHROW(verify(plan));
    const std::vector<MemoryObject> kept = states(plan, "p", "n");
    CHECK(kept.size() == 2);
    for (const MemoryObject& object : kept)
      CHECK(object.bytes(sizes) == 2 * chunks * 6 * 16 * 32 * 4);
    CHECK(remade_in(plan) == (chunks == 63 ? 0 : 2));
  }
}

TEST_CASE("states made again keep no tensor of every head and position") {
  const SsdSpec spec{.nheads = 80, .headdim = 64, .d_state = 128, .ngroups = 1};
  const Plan plan = backward_of(block_function(spec), "chunk=32 save.every=128");
  const Sizes sizes{{"b", 8}, {"t", 2048}};
  const double inputs = 4.0 * 8 * 2048 * (3 * 80 * 64 + 2 * 80 + 4 * 128);
  double moved = 0;
  for (const PlannedKernel& kernel : plan.kernels) {
    std::set<int> touched;
    for_each_load(kernel, [&](Value, const std::vector<View>& views) {
      for (const View& view : views) touched.insert(view.object);
    });
    for (const auto& [value, view] : kernel.stores) touched.insert(view.object);
    for (const Partial& partial : kernel.partials) touched.insert(partial.object);
    for (int object : touched) moved += static_cast<double>(plan.objects[object].bytes(sizes));
  }
  INFO(to_text(plan));
  CHECK(moved <= 3 * inputs);
  for (const MemoryObject& object : plan.objects) {
    if (object.kind != MemoryObject::Kind::temporary) continue;
    // Less than a tensor (b, t, h, n) or (b, t, h, p), and than the scores of every head.
    CHECK(object.bytes(sizes) <= 4LL * 8 * 2048 * 80 * 64);
  }
}

TEST_CASE("in segments too, and where keys are turned by a running angle") {
  const Plan parts = backward_of(block_function(small_scan), "chunk=8 segments=3 save.every=32");
  INFO(to_text(parts));
  CHECK_NOTHROW(verify(parts));
  CHECK(remade_in(parts) == 2);
  const Plan turned =
      backward_of(block_function(Mamba3ScanSpec{.nheads = 2, .headdim = 8, .d_state = 16}),
                  "chunk=8 save.every=32");
  INFO(to_text(turned));
  CHECK_NOTHROW(verify(turned));
  CHECK(remade_in(turned) == 2);
}

TEST_CASE("the verifier refuses states that are made again from too little") {
  const Plan good = backward_of(block_function(small_scan), "chunk=16 save.every=64");
  CHECK_NOTHROW(verify(good));
  const auto broken = [&](const std::function<void(PlannedKernel&)>& spoil) {
    Plan plan = good;
    for (PlannedKernel& kernel : plan.kernels)
      if (!kernel.remade.empty()) spoil(kernel);
    CHECK_THROWS_AS(verify(plan), InternalError);
  };
  broken([](PlannedKernel& kernel) { kernel.digits.clear(); });
  broken([](PlannedKernel& kernel) { kernel.digits[0].name = "b"; });
  broken([](PlannedKernel& kernel) { kernel.digits[0].axis = "q"; });
  broken([](PlannedKernel& kernel) { kernel.remade[0].nodes.pop_back(); });
  broken([](PlannedKernel& kernel) { kernel.remade[0].loads.clear(); });
  broken([](PlannedKernel& kernel) { kernel.remade[0].scan = kernel.nodes[0]; });
  broken([](PlannedKernel& kernel) { kernel.loads.erase({kernel.remade[0].scan, 0}); });
}

}  // namespace
}  // namespace krait
