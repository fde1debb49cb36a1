// krait print: plans, and the kernels that are asked for.
#include <fnmatch.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>

#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/cli/print.h"
#include "runtime/cuda/defaults.h"
#include "runtime/cuda/sources.h"
#include "runtime/environment.h"
#include "runtime/file.h"
#include "runtime/host/device.h"
#include "runtime/host/orc.h"
#include "schedules/candidates.h"
#include "schedules/lower.h"
#include "schedules/split_sums.h"

namespace krait {

Schedule print_schedule(const PrintFlags& flags, const Problem& problem) {
  Schedule schedule = parse_schedule(flags.schedule);
  const PlanKind wanted = flags.pass == "step" ? PlanKind::step : PlanKind::chunks;
  if (schedule.plan.value_or(wanted) != wanted)
    throw UsageError("--schedule", flags.schedule,
                     text("plan=", name(wanted), " with --pass ", flags.pass));
  if (flags.chunk) {
    schedule.chunk = flags.chunk;
    schedule.backward_chunk.reset();
  }
  if (!schedule.chunk && problem.chunk_wish > 0) schedule.chunk = problem.chunk_wish;
  return schedule;
}

Plan print_plan(const PrintFlags& flags, const Problem& problem, const CudaTarget* gpu) {
  if (problem.dtype != DType::f32 && problem.dtype != DType::f64)
    throw UsageError("--dtype", std::string(name(problem.dtype)),
                     "f32, f64 with --stage " + flags.stage);
  const Graph graph = problem.graph();
  const Environment environment = read_environment();
  const Schedule given =
      merge(HostDeviceOptions::from(environment).schedule, print_schedule(flags, problem));
  Plan plan;
  Prepared prepared;
  if (flags.pass == "step") {
    plan = gpu != nullptr ? cuda_step(graph, given, *gpu, prepared) : lower_step(graph, given);
  } else {
    std::vector<std::string> cotangents, wanted;
    if (!flags.no_gradients) {
      cotangents = floating_outputs(graph);
      wanted = floating_inputs(graph);
    }
    const Target target = gpu != nullptr
                              ? usual_target(*gpu)
                              : machine_target(host_target(environment.host_cpu).vector_bits);
    const ScheduleRequest request{graph, problem.sizes, cotangents, wanted};
    const Schedule schedule = gpu != nullptr
                                  ? cuda_defaults(given, request, target, *gpu, &prepared)
                                  : with_defaults(given, request, target);
    if (!prepared.plans) prepared.plans = lower(graph, schedule, cotangents, wanted);
    plan = flags.pass == "forward" ? std::move(prepared.plans->forward)
                                   : std::move(prepared.plans->backward);
  }
  plan.name = problem.block;
  if (gpu == nullptr) return plan;
  // As where there is no library: those products are kernels that can be printed.
  return split_sums(std::move(plan));
}

Sizes print_sizes(const PrintFlags& flags, const Problem& problem) {
  Sizes sizes = problem.sizes;
  if (flags.pass == "step") sizes["t"] = 1;
  return sizes;
}

std::vector<int> print_kernels(const PrintFlags& flags, const Plan& plan) {
  std::vector<int> kernels;
  std::string names;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const std::string& name = plan.kernels[k].name;
    names += (names.empty() ? "" : ", ") + name;
    if (flags.kernel.empty() || ::fnmatch(flags.kernel.c_str(), name.c_str(), 0) == 0)
      kernels.push_back(static_cast<int>(k));
  }
  if (kernels.empty()) throw UsageError("--kernel", flags.kernel, "a pattern for one of " + names);
  return kernels;
}

void KernelTexts::add(const std::string& file, const std::string& text) {
  if (into_.empty()) {
    std::cout << (first_ ? "" : "\n") << text;
    first_ = false;
    return;
  }
  std::error_code failed;
  std::filesystem::create_directories(into_, failed);
  if (failed)
    throw EnvironmentError(krait::text("cannot create the folder ", into_, ": ", failed.message()));
  const std::string path = (std::filesystem::path(into_) / file).string();
  write_file_atomically(path, text);
  std::cout << path << '\n';
}

}  // namespace krait
