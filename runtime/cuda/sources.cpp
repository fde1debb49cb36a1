#include "runtime/cuda/sources.h"

#include "codegen/generate.h"
#include "runtime/cuda/defaults.h"
#include "schedules/lower.h"
#include "schedules/split_sums.h"

namespace krait {
namespace {

std::vector<std::string> floating(const Graph& graph, bool inputs) {
  std::vector<std::string> names;
  if (inputs) {
    for (const Value value : graph.inputs())
      if (is_float(graph.type(value).dtype)) names.push_back(graph.input_of(value).name);
  } else {
    for (const Output& output : graph.outputs())
      if (is_float(graph.type(output.value).dtype)) names.push_back(output.name);
  }
  return names;
}

void add(std::vector<KernelSource>& sources, Plan plan, const std::string& name,
         const CudaTarget& target) {
  plan.name = name;
  plan = split_sums(std::move(plan), [](const Plan&, const PlannedKernel&) { return true; });
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
  std::vector<std::string> wanted = options.wanted.value_or(floating(graph, true));
  std::vector<std::string> cotangents = options.cotangents.value_or(floating(graph, false));
  if (wanted.empty() || cotangents.empty()) {
    wanted.clear();
    cotangents.clear();
  }
  std::vector<KernelSource> sources;
  Schedule schedule = options.schedule;
  const bool windows = schedule.plan.value_or(PlanKind::chunks) != PlanKind::step;
  if (windows) {
    schedule = cuda_defaults(schedule, {graph, options.sizes, cotangents, wanted},
                             usual_target(target), target);
    Lowered lowered = lower(graph, schedule, cotangents, wanted);
    add(sources, std::move(lowered.forward), options.name, target);
    if (!wanted.empty()) add(sources, std::move(lowered.backward), options.name, target);
  }
  if (!windows || (options.step && !graph.states().empty()))
    add(sources, lower_step(graph, schedule), options.name, target);
  return sources;
}

}  // namespace krait
