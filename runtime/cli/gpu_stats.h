// What kernels for GPUs take and do, before they run and as a driver counted it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "codegen/passes/conflicts.h"
#include "runtime/cuda/code_report.h"
#include "schedules/plan.h"

namespace krait {

/// Of one launch, counted by a driver that can.
struct LaunchCounts {
  std::int64_t instructions = 0;    // of warps
  std::int64_t sectors = 0;         // of 32 bytes, that the warps' accesses of global memory touch
  std::int64_t bank_conflicts = 0;  // wavefronts of shared memory beyond those without conflicts
  std::int64_t barriers = 0;        // of blocks
};

struct GpuKernelStats {
  std::string name, kind, entry;
  /// Why it cannot be made for the part; then nothing below is told.
  std::string problem;
  std::int64_t grid = 0;  // blocks
  int threads = 0, blocks_per_multiprocessor = 0;
  std::int64_t dynamic_shared = 0;  // bytes of a block, beside code.static_shared
  /// Of shared memory, told from the tile program: one turn of loops of unknown length.
  SharedTraffic shared;
  CodeReport code;
  /// Bytes of global memory, counted on the tile program (see kernel_stats.h).
  std::int64_t load_bytes = 0, store_bytes = 0;
  std::optional<LaunchCounts> counts;
};

/// The kernels of one plan on one part; each is launched once.
struct ArchStats {
  CudaTarget target;
  std::string pass, schedule;
  Sizes sizes;
  std::int64_t temporary_bytes = 0;
  std::vector<GpuKernelStats> kernels;
};

/// Everything but the kernels.
ArchStats arch_stats(const Plan& plan, const Sizes& sizes, const CudaTarget& target);
/// Generates the kernel and compiles it by NVRTC. Throws EnvironmentError where that is missing.
GpuKernelStats gpu_kernel_stats(const Plan& plan, int kernel, const ArchStats& stats);

/// Reads the counts of launches that the emulated driver left (KRAIT_EMULATOR_STATS) and gives
/// them to the kernels: those of the first launches in the file that follow each other as these
/// kernels do, with their names and sizes. Throws UsageError where there are none such.
void add_counts(const std::string& path, ArchStats& stats);

/// A table, a row a kernel and part, and one object with its newline.
std::string gpu_stats_text(const std::vector<ArchStats>& all);
std::string gpu_stats_json(const std::vector<ArchStats>& all);

}  // namespace krait
