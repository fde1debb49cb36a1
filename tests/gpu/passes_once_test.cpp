// What a layer's kernels go through when it is built: nothing twice, and verified before a compile.
#include <catch2/catch.hpp>

#include "codegen/generate.h"
#include "dsl/blocks/blocks.h"
#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/cuda/defaults.h"

namespace krait {
namespace {

TEST_CASE("finding room for a layer and generating its kernels, passes run once a program") {
  const Graph graph = build_graph(block_function(
      BlockSpec(SsdSpec{.nheads = 4, .headdim = 64, .d_state = 128, .initial_state = true})));
  const CudaTarget cuda = cuda_target(80);
  Prepared prepared;
  cuda_defaults({}, {graph, {}, floating_outputs(graph), floating_inputs(graph)},
                gpu_target(cuda.architecture, 1, 1 << 30), cuda, &prepared);
  REQUIRE(prepared.plans);
  REQUIRE(prepared.kernels);
  const std::size_t looked_at = prepared.kernels->programs();
  std::size_t fused = 0, others = 0;
  for (const Plan* plan : {&prepared.plans->forward, &prepared.plans->backward})
    for (int k = 0; k < static_cast<int>(plan->kernels.size()); ++k) {
      const bool known = plan->kernels[k].kind == PlannedKernel::Kind::fused;
      const std::size_t before = prepared.kernels->programs();
      const GeneratedKernel kernel = prepared.kernels->generate(*plan, k);
      if (known) CHECK(prepared.kernels->programs() == before);
      ++(known ? fused : others);
      // The same kernel as by itself.
      const GeneratedKernel alone = generate_cuda(*plan, k, cuda);
      CHECK(kernel.source.text == alone.source.text);
      CHECK(kernel.source.file == alone.source.file);
      CHECK(kernel.objects == alone.objects);
      CHECK(kernel.scratch_bytes == alone.scratch_bytes);
      REQUIRE(kernel.source.verify);
      CHECK_NOTHROW(kernel.source.verify());
      CHECK_FALSE(alone.source.verify);
    }
  CHECK(fused > 3);
  CHECK(prepared.kernels->programs() <= looked_at + others);
  // Once more: nothing is new.
  const std::size_t all = prepared.kernels->programs();
  for (const Plan* plan : {&prepared.plans->forward, &prepared.plans->backward})
    for (int k = 0; k < static_cast<int>(plan->kernels.size()); ++k)
      prepared.kernels->generate(*plan, k);
  CHECK(prepared.kernels->programs() == all);
}

TEST_CASE("what has no room has none a second time, and says the same") {
  const Graph graph = build_graph(block_function(
      BlockSpec(SsdSpec{.nheads = 4, .headdim = 64, .d_state = 128, .initial_state = true})));
  CudaTarget cuda = cuda_target(75);
  cuda.shared_limit = 4 << 10;
  const Lowered plans =
      lower(graph, parse_schedule("chunk=64"), floating_outputs(graph), floating_inputs(graph));
  const Plan& plan = plans.forward;
  CudaKernels kernels(cuda);
  int refused = 0;
  for (int k = 0; k < static_cast<int>(plan.kernels.size()); ++k) {
    std::string alone = "fits";
    try {
      generate_cuda(plan, k, cuda);
    } catch (const UsageError& error) {
      alone = error.what();
      ++refused;
    }
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::string told = "fits";
      try {
        kernels.require_fit(plan, k);
      } catch (const UsageError& error) {
        told = error.what();
      }
      CHECK(told == alone);
    }
  }
  CHECK(refused > 0);
  CHECK(kernels.programs() <= plan.kernels.size());
}

}  // namespace
}  // namespace krait
