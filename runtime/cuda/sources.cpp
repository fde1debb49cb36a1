#include "runtime/cuda/sources.h"

#include <memory>

#include "codegen/generate.h"
#include "dsl/differentiate.h"
#include "runtime/cuda/defaults.h"
#include "schedules/lower.h"
#include "schedules/split_sums.h"

namespace krait {
namespace {

/// Of all kernels of all plans, in order.
std::vector<KernelSource> sources_of(std::vector<Plan>& plans, const std::string& name,
                                     CudaKernels& kernels, Pool* pool) {
  std::vector<std::pair<const Plan*, int>> all;
  for (Plan& plan : plans) {
    plan.name = name;
    plan = split_sums(std::move(plan));
    for (std::size_t k = 0; k < plan.kernels.size(); ++k)
      all.emplace_back(&plan, static_cast<int>(k));
  }
  std::vector<KernelSource> sources(all.size());
  const auto generate = [&](std::int64_t begin, std::int64_t end, void*) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      sources[i] = kernels.generate(*all[i].first, all[i].second).source;
  };
  const auto count = static_cast<std::int64_t>(all.size());
  pool != nullptr ? pool->parallel_for(count, 0, generate) : generate(0, count, nullptr);
  return sources;
}

}  // namespace

Target usual_target(const CudaTarget& target) {
  constexpr std::int64_t kMemory = std::int64_t{16} << 30;  // of a small one
  return gpu_target(target.architecture, target.multiprocessors, kMemory);
}

std::vector<KernelSource> gpu_sources(const Graph& graph, const LayerOptions& options,
                                      const CudaTarget& target, Pool* pool, DiskCache* memory) {
  std::vector<std::string> wanted = options.wanted.value_or(floating_inputs(graph));
  std::vector<std::string> cotangents = options.cotangents.value_or(floating_outputs(graph));
  if (wanted.empty() || cotangents.empty()) {
    wanted.clear();
    cotangents.clear();
  }
  std::vector<Plan> plans;
  Schedule schedule = options.schedule;
  Prepared prepared;
  const bool windows = schedule.plan.value_or(PlanKind::chunks) != PlanKind::step;
  if (windows) {
    schedule = cuda_defaults(schedule, {graph, options.sizes, cotangents, wanted},
                             usual_target(target), target, &prepared, pool, memory);
    if (!prepared.plans) prepared.plans = lower(graph, schedule, cotangents, wanted);
    plans.push_back(std::move(prepared.plans->forward));
    if (!wanted.empty()) plans.push_back(std::move(prepared.plans->backward));
  }
  if (!windows || (options.step && !graph.states().empty()))
    plans.push_back(cuda_step(graph, schedule, target, prepared, pool));
  if (!prepared.kernels) prepared.kernels = std::make_shared<CudaKernels>(target);
  return sources_of(plans, options.name, *prepared.kernels, pool);
}

}  // namespace krait
