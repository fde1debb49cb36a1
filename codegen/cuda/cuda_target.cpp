#include "codegen/cuda/cuda_target.h"

#include <array>
#include <cstdio>

#include "dsl/error.h"

namespace krait {
namespace {

struct PartRow {
  int capability;
  const char* architecture;
  std::int64_t shared_kib;                 // of a block
  std::int64_t multiprocessor_shared_kib;  // what follows: of a multiprocessor
  int threads, blocks;
  int multiprocessors;  // of a common product
};

// CUDA C++ Programming Guide, table of technical specifications per compute capability.
constexpr std::array<PartRow, 10> parts = {{{75, "sm_75", 64, 64, 1024, 16, 40},
                                            {80, "sm_80", 163, 164, 2048, 32, 108},
                                            {86, "sm_86", 99, 100, 1536, 16, 84},
                                            {87, "sm_87", 163, 164, 1536, 16, 16},
                                            {89, "sm_89", 99, 100, 1536, 24, 128},
                                            {90, "sm_90a", 227, 228, 2048, 32, 132},
                                            {100, "sm_100a", 227, 228, 2048, 32, 148},
                                            {103, "sm_103a", 227, 228, 2048, 32, 148},
                                            {120, "sm_120a", 99, 100, 1536, 24, 170},
                                            {121, "sm_121a", 99, 100, 1536, 24, 48}}};

}  // namespace

CudaTarget cuda_target(int capability) {
  std::string known;
  for (const PartRow& part : parts) {
    if (part.capability == capability) {
      CudaTarget target;
      target.capability = capability;
      target.architecture = part.architecture;
      target.shared_limit = part.shared_kib << 10;
      target.multiprocessor_shared = part.multiprocessor_shared_kib << 10;
      target.reserved = capability >= 80 ? 1 << 10 : 0;
      target.multiprocessor_threads = part.threads;
      target.multiprocessor_blocks = part.blocks;
      target.multiprocessors = part.multiprocessors;
      // Asynchronous copies came with 8.0.
      target.stages = capability >= 80 ? 2 : 1;
      return target;
    }
    known += (known.empty() ? "" : ", ") + text(part.capability / 10, ".", part.capability % 10);
  }
  throw UsageError("compute capability", text(capability / 10, ".", capability % 10), known);
}

std::vector<int> cuda_capabilities() {
  std::vector<int> all;
  for (const PartRow& part : parts) all.push_back(part.capability);
  return all;
}

CudaTarget cuda_target(const std::string& capability, const std::string& field) {
  int major = 0, minor = 0;
  char end = 0;
  if (std::sscanf(capability.c_str(), "%2d.%1d%c", &major, &minor, &end) != 2)
    throw UsageError(field, capability, "a compute capability, such as 8.0 or 9.0");
  return cuda_target(10 * major + minor);
}

}  // namespace krait
