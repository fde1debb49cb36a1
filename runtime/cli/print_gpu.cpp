// krait print: the stages of GPUs, none of which needs one.
#include <algorithm>
#include <exception>
#include <iostream>
#include <sstream>

#include "codegen/build.h"
#include "codegen/generate.h"
#include "codegen/passes/cuda_passes.h"
#include "dsl/error.h"
#include "runtime/cli/gpu_stats.h"
#include "runtime/cli/print.h"
#include "runtime/cuda/disassemble.h"
#include "runtime/cuda/facts.h"
#include "runtime/host/pool.h"

namespace krait {
namespace {

/// Those of --arch; all that krait and NVRTC know for "all".
std::vector<CudaTarget> targets_of(const PrintFlags& flags) {
  std::vector<CudaTarget> targets;
  if (flags.arch == "all") {
    const std::vector<int> compiled = nvrtc_facts().capabilities;
    for (const int capability : cuda_capabilities())
      if (std::find(compiled.begin(), compiled.end(), capability) != compiled.end())
        targets.push_back(cuda_target(capability));
    return targets;
  }
  std::istringstream parts(flags.arch);
  for (std::string part; std::getline(parts, part, ',');)
    targets.push_back(cuda_target(part, "--arch"));
  KRAIT_REQUIRE(!targets.empty(), "--arch is ", flags.arch, "; allowed: 8.0, \"8.0,9.0\", all");
  return targets;
}

/// The program after the pass of --after, after all where it is empty.
TileProgram program_of(const PrintFlags& flags, const Plan& plan, int kernel,
                       const CudaTarget& target) {
  TileProgram program = build(plan, kernel, gpu_product_blocks(plan, kernel, target.warps)).program;
  std::vector<CudaPass> passes = cuda_passes();
  const auto last = std::find_if(passes.begin(), passes.end(),
                                 [&](const CudaPass& pass) { return pass.name == flags.after; });
  if (flags.after == kBuilt)
    passes.clear();
  else if (last != passes.end())
    passes.erase(last + 1, passes.end());
  run_passes(program, target_of(plan, target), passes);
  return program;
}

void print_texts(const PrintFlags& flags, const Plan& plan, const CudaTarget& target) {
  KernelTexts texts(flags);
  for (const int kernel : print_kernels(flags, plan)) {
    const std::string file = file_of(plan, kernel);
    if (flags.stage == "tile") {
      texts.add(file + ".tile" + (flags.after.empty() ? "" : "@" + flags.after) + ".txt",
                to_text(program_of(flags, plan, kernel, target)));
      continue;
    }
    const KernelSource source = generate_cuda(plan, kernel, target).source;
    if (flags.stage == "cuda")
      texts.add(file + ".cu", source.text);
    else if (flags.stage == "ptx")
      texts.add(file + ".ptx", nvrtc_code(source).text);
    else
      texts.add(file + ".sass", disassemble(nvrtc_code(source).binary));
  }
}

/// Generates and compiles the kernels, several at a time.
ArchStats stats_of(const PrintFlags& flags, const Problem& problem, const CudaTarget& target,
                   Pool& pool) {
  const Plan plan = print_plan(flags, problem, &target);
  const std::vector<int> kernels = print_kernels(flags, plan);
  ArchStats stats = arch_stats(plan, print_sizes(flags, problem), target);
  std::vector<std::exception_ptr> errors(kernels.size());
  stats.kernels.resize(kernels.size());
  pool.parallel_for(static_cast<std::int64_t>(kernels.size()), 0,
                    [&](std::int64_t begin, std::int64_t end, void*) {
                      for (std::int64_t i = begin; i < end; ++i) try {
                          stats.kernels[i] = gpu_kernel_stats(plan, kernels[i], stats);
                        } catch (...) {
                          errors[i] = std::current_exception();
                        }
                    });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return stats;
}

}  // namespace

int print_for_gpus(const PrintFlags& flags, const Problem& problem) {
  const std::vector<CudaTarget> targets = targets_of(flags);
  KRAIT_REQUIRE(targets.size() == 1 || flags.stage == "stats", "--arch is ", flags.arch,
                "; allowed: one, with --stage ", flags.stage);
  if (flags.stage != "stats") {
    print_texts(flags, print_plan(flags, problem, &targets.front()), targets.front());
    return kOk;
  }
  KRAIT_REQUIRE(targets.size() == 1 || flags.counts.empty(), "--arch is ", flags.arch,
                "; allowed: one, with --counts");
  Pool pool;
  std::vector<ArchStats> all;
  for (const CudaTarget& target : targets) all.push_back(stats_of(flags, problem, target, pool));
  if (!flags.counts.empty()) add_counts(flags.counts, all.front());
  std::cout << (flags.json ? gpu_stats_json(all) : gpu_stats_text(all));
  return kOk;
}

}  // namespace krait
