#include "codegen/cuda/cuda_target.h"

#include <array>

#include "dsl/error.h"

namespace krait {
namespace {

struct PartRow {
  int capability;
  const char* architecture;
  std::int64_t shared_kib;
};

// "Maximum amount of shared memory per thread block", CUDA C++ Programming Guide, table of
// technical specifications per compute capability.
constexpr std::array<PartRow, 10> parts = {{{75, "sm_75", 64},
                                            {80, "sm_80", 163},
                                            {86, "sm_86", 99},
                                            {87, "sm_87", 163},
                                            {89, "sm_89", 99},
                                            {90, "sm_90a", 227},
                                            {100, "sm_100a", 227},
                                            {103, "sm_103a", 227},
                                            {120, "sm_120a", 99},
                                            {121, "sm_121a", 99}}};

}  // namespace

CudaTarget cuda_target(int capability) {
  std::string known;
  for (const PartRow& part : parts) {
    if (part.capability == capability) {
      CudaTarget target;
      target.capability = capability;
      target.architecture = part.architecture;
      target.shared_limit = part.shared_kib << 10;
      return target;
    }
    known += (known.empty() ? "" : ", ") + text(part.capability / 10, ".", part.capability % 10);
  }
  throw UsageError("compute capability", text(capability / 10, ".", capability % 10), known);
}

}  // namespace krait
