// Kernels of small blocks that mutants are made of: what each finds in memory and what it leaves
// there, as the kernels that nobody changed have it under the emulated driver.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "codegen/generate.h"
#include "dsl/expr.h"
#include "schedules/plan.h"
#include "tests/emulator/harness.h"

namespace krait::mutants {

/// The bytes of every object of a plan; none where nothing was written yet.
using Memory = std::vector<std::vector<std::byte>>;

struct KernelCase {
  std::string name;  // of block, pass and kernel
  std::shared_ptr<const Plan> plan;
  int kernel = 0;
  Sizes sizes;
  Memory before, after;
};

struct Experiment {
  std::string name;
  BlockFunction block;
  std::string schedule;
  Sizes sizes;
};

/// Blocks of every kind that the device runs, each small, with tails of chunks and padded tiles;
/// the first is the smallest set that has every kind of statement.
std::vector<Experiment> experiments();

CudaTarget target_of_experiments();

/// Every kernel of forward and backward, without what it finds and leaves in memory.
std::vector<KernelCase> cases_of(const Experiment& experiment);
/// Forward and backward, kernel by kernel; outputs are held to `evaluate`, failing the test.
std::vector<KernelCase> kernels_of(const Experiment& experiment, emulator_test::Device& device);

/// What became of a kernel that was generated through these passes.
struct Outcome {
  enum class By { nothing, verifier, compiler, report, numbers } by = By::nothing;
  std::string detail;  // of the verifier or the report: its first line
};
Outcome outcome_of(const KernelCase& one, const std::vector<CudaPass>& passes,
                   emulator_test::Device& device);

}  // namespace krait::mutants
