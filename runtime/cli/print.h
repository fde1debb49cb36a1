// What the parts of krait print share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "runtime/cli/shape_flags.h"
#include "schedules/plan.h"

namespace krait {

struct PrintFlags {
  ShapeFlags shape;
  std::string stage = "graph", pass = "forward", format = "text", schedule, after, kernel;
  std::optional<std::int64_t> chunk;
  std::string arch, into, counts;
  bool no_gradients = false, json = false;
};

/// The name under which --after takes a program that no pass has seen.
inline constexpr const char* kBuilt = "build";

/// That of --schedule, --chunk for both passes, else what the spec wishes for.
Schedule print_schedule(const PrintFlags& flags, const Problem& problem);
/// As a layer of this block and shape has it that is asked for every gradient; on the host where
/// there is no `gpu`.
Plan print_plan(const PrintFlags& flags, const Problem& problem, const CudaTarget* gpu);
/// The sizes at which the pass runs.
Sizes print_sizes(const PrintFlags& flags, const Problem& problem);
/// Numbers of the kernels whose name fits --kernel. Throws UsageError where none does.
std::vector<int> print_kernels(const PrintFlags& flags, const Plan& plan);

/// Takes the texts of kernels: to stdout with an empty line between them, or into the folder of
/// --into, a file each, whose paths go to stdout.
class KernelTexts {
 public:
  explicit KernelTexts(const PrintFlags& flags) : into_(flags.into) {}
  void add(const std::string& file, const std::string& text);

 private:
  std::string into_;
  bool first_ = true;
};

/// The stages tile, cuda, ptx, sass and stats of GPUs: those of --arch.
int print_for_gpus(const PrintFlags& flags, const Problem& problem);

}  // namespace krait
