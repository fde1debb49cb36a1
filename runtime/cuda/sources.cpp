#include "runtime/cuda/sources.h"

#include <optional>

#include "codegen/generate.h"
#include "dsl/differentiate.h"
#include "runtime/cuda/defaults.h"
#include "schedules/lower.h"
#include "schedules/split_sums.h"

namespace krait {
namespace {

void add(std::vector<KernelSource>& sources, Plan plan, const std::string& name,
         const CudaTarget& target) {
  plan.name = name;
  plan = split_sums(std::move(plan));
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    sources.push_back(generate_cuda(plan, static_cast<int>(k), target).source);
}

}  // namespace

Target usual_target(const CudaTarget& target) {
  constexpr std::int64_t kMemory = std::int64_t{16} << 30;  // of a small one
  return gpu_target(target.architecture, target.multiprocessors, kMemory);
}

std::vector<KernelSource> gpu_sources(const Graph& graph, const LayerOptions& options,
                                      const CudaTarget& target) {
  std::vector<std::string> wanted = options.wanted.value_or(floating_inputs(graph));
  std::vector<std::string> cotangents = options.cotangents.value_or(floating_outputs(graph));
  if (wanted.empty() || cotangents.empty()) {
    wanted.clear();
    cotangents.clear();
  }
  std::vector<KernelSource> sources;
  Schedule schedule = options.schedule;
  const bool windows = schedule.plan.value_or(PlanKind::chunks) != PlanKind::step;
  if (windows) {
    std::optional<Lowered> lowered;
    schedule = cuda_defaults(schedule, {graph, options.sizes, cotangents, wanted},
                             usual_target(target), target, &lowered);
    if (!lowered) lowered = lower(graph, schedule, cotangents, wanted);
    add(sources, std::move(lowered->forward), options.name, target);
    if (!wanted.empty()) add(sources, std::move(lowered->backward), options.name, target);
  }
  if (!windows || (options.step && !graph.states().empty()))
    add(sources, lower_step(graph, schedule), options.name, target);
  return sources;
}

}  // namespace krait
