// Plan in, sources out.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "codegen/kernel_source.h"
#include "codegen/llvm/vector_target.h"
#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passed.h"
#include "codegen/tile/tile.h"
#include "schedules/plan.h"

namespace krait {

/// Everything that the runtime needs to compile and to launch one kernel.
struct GeneratedKernel {
  KernelSource source;
  /// Object of the plan behind each pointer of the launch.
  std::vector<int> objects;
  /// What each 64-bit argument holds; stride arguments name pointer and dimension of its object.
  std::vector<TileProgram::Argument> arguments;
  std::vector<Extent> grid;  // slowest first
  /// Objects, one read and one written, that may be one tensor; see in_place.h.
  std::vector<std::pair<int, int>> in_place;
  std::int64_t scratch_bytes = 0;  // of one grid point
  int threads = 0;                 // of one grid point, on a GPU
};

/// What files about a kernel are called, before their suffix: LAYER.PASS.KERNEL, as in
/// "mixer.backward.part_2", without the first where the plan has no name. Of the whole plan:
/// LAYER.PASS.
std::string file_of(const Plan& plan, int kernel);
std::string file_of(const Plan& plan);

/// Sees the program as it was built ("build"), and after every pass.
using PassObserver = std::function<void(const std::string& pass, const TileProgram& program)>;

/// `device` with what the plan's schedule says of its pass. Throws UsageError for what the part has
/// not.
CudaTarget target_of(const Plan& plan, const CudaTarget& device);

/// Lowers kernel `index` of the plan, of any kind, through the host passes to LLVM IR text: a
/// product becomes a kernel of its own, for machines without a library.
GeneratedKernel generate_host(const Plan& plan, int index, const VectorTarget& target,
                              const PassObserver& after = {});

/// The same through the passes for GPUs to CUDA C++. Throws UsageError where the kernel needs more
/// shared memory than the target has. Another list of passes than the usual one may look at the
/// program between them, or change it.
GeneratedKernel generate_cuda(const Plan& plan, int index, const CudaTarget& target,
                              const std::vector<CudaPass>& passes = cuda_passes(),
                              const PassObserver& after = {});

/// Kernels of one GPU, for those who first ask whether they fit and then for their text, and for
/// plans that have kernels in common: the passes run once for each program. Safe to use from
/// several threads at once.
class CudaKernels {
 public:
  explicit CudaKernels(CudaTarget device) : device_(std::move(device)) {}

  /// Throws as `generate` does, and writes no text.
  void require_fit(const Plan& plan, int index);
  /// As generate_cuda(plan, index, device) gives it, but verified only when source.verify is
  /// called: what is in the cache of kernels was verified when it was compiled.
  GeneratedKernel generate(const Plan& plan, int index);
  /// Programs that went through the passes so far.
  std::size_t programs() const { return passed_.size(); }

 private:
  CudaTarget device_;
  PassedPrograms passed_;
};

}  // namespace krait
