// Which chunks and tiles of states GPUs are given where nobody asks for some.
#include "runtime/cuda/defaults.h"

#include <catch2/catch.hpp>

#include "codegen/generate.h"
#include "dsl/blocks/blocks.h"
#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "schedules/lower.h"
#include "tests/run_program.h"

namespace krait {
namespace {

Schedule defaults(const Graph& graph, int capability, const std::string& given = "") {
  const CudaTarget cuda = cuda_target(capability);
  const Target target = gpu_target(cuda.architecture, cuda.multiprocessors, std::int64_t{16} << 30);
  return cuda_defaults(parse_schedule(given),
                       {graph, {}, floating_outputs(graph), floating_inputs(graph)}, target, cuda);
}

/// The first kernel that has no room, with what it says; "" where there is room for all.
std::string without_room(const Graph& graph, const Schedule& schedule, int capability) {
  const Lowered plans = lower(graph, schedule, floating_outputs(graph), floating_inputs(graph));
  for (const Plan* plan : {&plans.forward, &plans.backward})
    for (std::size_t k = 0; k < plan->kernels.size(); ++k) try {
        generate_cuda(*plan, static_cast<int>(k), cuda_target(capability));
      } catch (const UsageError& error) {
        return error.what();
      }
  return "";
}

Graph scan_graph(std::int64_t headdim, std::int64_t d_state) {
  return build_graph(block_function(
      SsdSpec{.nheads = 4, .headdim = headdim, .d_state = d_state, .initial_state = true}));
}

TEST_CASE("states stand whole on a GPU that has room for them, in tiles on one that has not") {
  const Graph graph = scan_graph(64, 128);
  const Schedule roomy = defaults(graph, 90);
  INFO(to_text(roomy));
  CHECK_FALSE(roomy.tile);
  CHECK_FALSE(roomy.backward_tile);
  for (const int capability : {75, 86, 120}) {
    const Schedule small = defaults(graph, capability);
    INFO(capability << ": " << to_text(small));
    CHECK(small.tile_of(Pass::backward).value_or(64) < 64);
    // States go to memory as often as on the roomy one.
    CHECK(small.save_every_of(Pass::backward) == roomy.save_every_of(Pass::backward));
    CHECK(without_room(graph, small, capability) == "");
    // Without tiles no chunk is small enough for the smallest part.
    Schedule whole = small;
    whole.tile = whole.backward_tile = 64;
    if (capability == 75)
      CHECK(without_room(graph, whole, capability).find("shared memory of kernel") == 0);
  }
}

TEST_CASE("what is asked for stays, and the other gives way") {
  const Graph graph = scan_graph(64, 128);
  const Schedule chunk = defaults(graph, 75, "chunk=32");
  INFO(to_text(chunk));
  CHECK(chunk.chunk == 32);
  CHECK(chunk.chunk_of(Pass::backward) == 32);
  CHECK(chunk.tile_of(Pass::backward).value_or(64) < 64);
  CHECK(without_room(graph, chunk, 75) == "");
  const Schedule tile = defaults(graph, 75, "tile=64 backward.tile=16");
  INFO(to_text(tile));
  CHECK(tile.tile == 64);
  CHECK(tile.backward_tile == 16);
  CHECK(tile.chunk_of(Pass::forward) < 32);
}

TEST_CASE("states of odd widths have tiles too") {
  for (const auto& [headdim, d_state] :
       std::vector<std::pair<int, int>>{{80, 128}, {61, 128}, {1, 512}, {96, 100}}) {
    const Graph graph = scan_graph(headdim, d_state);
    const Schedule schedule = defaults(graph, 75);
    INFO(headdim << " by " << d_state << ": " << to_text(schedule));
    CHECK(without_room(graph, schedule, 75) == "");
  }
}

TEST_CASE("what a search found is kept, for the same graph, part and wishes") {
  const TestFolder folder;
  DiskCache memory({.directory = folder.path, .warn = {}});
  const Graph graph = scan_graph(64, 128);
  const auto search = [&](const Graph& of, int capability, const char* given) {
    const CudaTarget cuda = cuda_target(capability);
    const Target target =
        gpu_target(cuda.architecture, cuda.multiprocessors, std::int64_t{16} << 30);
    Prepared prepared;
    const Schedule found =
        cuda_defaults(parse_schedule(given), {of, {}, floating_outputs(of), floating_inputs(of)},
                      target, cuda, &prepared, nullptr, &memory);
    CHECK(to_text(prepared.plans->backward.schedule) == to_text(found));
    // Programs of kernels that were looked at on the way.
    return std::pair(to_text(found), prepared.kernels->programs());
  };
  const auto [first, looked] = search(graph, 86, "");
  CHECK(first == to_text(defaults(graph, 86)));
  CHECK(looked > 0);
  CHECK(search(graph, 86, "") == std::pair(first, std::size_t{0}));
  CHECK(search(graph, 86, "chunk=16").second > 0);
  CHECK(search(graph, 90, "").second > 0);
  CHECK(search(scan_graph(64, 64), 86, "").second > 0);
  CHECK(search(graph, 86, "chunk=16").second == 0);
}

TEST_CASE("blocks whose rows are too wide for a GPU are cut into more kernels") {
  const Graph graph = build_graph(block_function(
      Mamba2Spec{.d_model = 4096, .d_state = 16, .headdim = 64, .initial_state = true}));
  const Schedule schedule = defaults(graph, 80);
  INFO(to_text(schedule));
  CHECK(schedule.width_of(Pass::backward).value_or(16384) < 16384);
  CHECK(without_room(graph, schedule, 80) == "");
  Schedule whole = schedule;
  whole.width = whole.backward_width = 16384;
  CHECK(without_room(graph, whole, 80).find("shared memory of kernel") == 0);
  CHECK(defaults(graph, 80, "width=2048").width_of(Pass::backward) == 2048);
}

TEST_CASE("steps with wide states are cut into more kernels where a GPU has no room") {
  const Graph graph = build_graph(block_function(
      Mamba3Spec{.d_model = 4096, .d_state = 128, .headdim = 64, .initial_state = true}));
  const CudaTarget cuda = cuda_target(80);
  Prepared prepared;
  const Plan plan = cuda_step(graph, {}, cuda, prepared);
  CHECK(plan.schedule.width.value_or(16384) < 16384);
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    CHECK_NOTHROW(generate_cuda(plan, static_cast<int>(k), cuda));
  Prepared asked;
  CHECK(cuda_step(graph, parse_schedule("width=65536"), cuda, asked).schedule.width == 65536);
}

}  // namespace
}  // namespace krait
