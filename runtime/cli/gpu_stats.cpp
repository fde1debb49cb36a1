#include "runtime/cli/gpu_stats.h"

#include <nlohmann/json.hpp>

#include "codegen/generate.h"
#include "dsl/error.h"
#include "runtime/cli/kernel_stats.h"
#include "runtime/cuda/facts.h"
#include "runtime/file.h"

namespace krait {
namespace {

using nlohmann::json;

LaunchCounts counts_of(const json& launch) {
  const auto number = [&](const char* path) {
    return launch.at(json::json_pointer(path)).get<std::int64_t>();
  };
  LaunchCounts counts;
  counts.instructions = number("/warp_instructions/all");
  counts.sectors = number("/global/load/sectors") + number("/global/store/sectors") +
                   number("/global/atomic/sectors");
  for (const char* kind : {"load", "store", "async", "ldmatrix", "stmatrix"})
    counts.bank_conflicts += number(text("/shared/", kind, "/wavefronts").c_str()) -
                             number(text("/shared/", kind, "/ideal").c_str());
  counts.barriers = number("/barriers");
  return counts;
}

bool is_launch_of(const json& launch, const GpuKernelStats& kernel) {
  return launch.at("kernel") == kernel.entry && launch.at("grid").at(0) == kernel.grid &&
         launch.at("block").at(0) == kernel.threads &&
         launch.at("dynamic_shared") == kernel.dynamic_shared;
}

}  // namespace

ArchStats arch_stats(const Plan& plan, const Sizes& sizes, const CudaTarget& target) {
  ArchStats stats;
  stats.target = target;
  stats.pass = name(plan.pass);
  stats.schedule = to_text(plan.schedule);
  stats.sizes = sizes;
  stats.temporary_bytes = arena(plan, sizes).bytes;
  return stats;
}

GpuKernelStats gpu_kernel_stats(const Plan& plan, int kernel, const ArchStats& stats) {
  GpuKernelStats made;
  made.name = plan.kernels[static_cast<std::size_t>(kernel)].name;
  made.kind = name(plan.kernels[static_cast<std::size_t>(kernel)].kind);
  GeneratedKernel generated;
  TileProgram program;
  try {
    generated =
        generate_cuda(plan, kernel, stats.target, cuda_passes(),
                      [&](const std::string&, const TileProgram& after) { program = after; });
  } catch (const UsageError& error) {
    made.problem = error.what();
    return made;
  }
  const KernelStats counted = kernel_stats(program, stats.sizes);
  made.entry = generated.source.entry;
  made.grid = counted.grid;
  made.load_bytes = counted.load_bytes;
  made.store_bytes = counted.store_bytes;
  made.threads = generated.threads;
  made.dynamic_shared = generated.scratch_bytes;
  made.shared = shared_traffic(program);
  made.code = code_report(nvrtc_code(generated.source));
  made.blocks_per_multiprocessor =
      blocks_per_multiprocessor(stats.target, made.threads, made.code.registers,
                                made.dynamic_shared + made.code.static_shared);
  return made;
}

void add_counts(const std::string& path, ArchStats& stats) {
  std::vector<json> launches;
  std::vector<GpuKernelStats>& kernels = stats.kernels;
  try {
    const json file = json::parse(read_text(path));
    for (const json& launch : file.at("launches")) launches.push_back(launch);
    for (std::size_t first = 0; first + kernels.size() <= launches.size(); ++first) {
      std::size_t same = 0;
      while (same < kernels.size() && is_launch_of(launches[first + same], kernels[same])) ++same;
      if (same < kernels.size()) continue;
      for (std::size_t k = 0; k < kernels.size(); ++k)
        kernels[k].counts = counts_of(launches[first + k]);
      return;
    }
  } catch (const json::exception& error) {
    throw UsageError("--counts", path, text("counts of launches as JSON (", error.what(), ")"));
  }
  throw UsageError("--counts", path,
                   text("counts of a run of these ", kernels.size(),
                        " kernels, at these sizes and on ", stats.target.architecture, "; it has ",
                        launches.size(), " launches, none after another as they are"));
}

}  // namespace krait
