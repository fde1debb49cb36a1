// What the kernels of a plan do, counted on their tile programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/vector_target.h"
#include "codegen/tile/tile.h"
#include "schedules/plan.h"

namespace krait {

/// All numbers are of one launch, as the program says it: positions that a guard cuts off, at the
/// ends of axes, are counted too.
struct KernelStats {
  std::string name;
  std::string_view kind;           // "fused", "product", "finish"
  std::int64_t grid = 1;           // points
  std::int64_t scratch_bytes = 0;  // of one grid point
  std::map<std::string, int> statements;
  /// Operations on numbers: 2 for a multiply-add of a product, 1 for every operator of an
  /// expression (exp as well), every addition of a sum.
  std::int64_t flops = 0;
  std::int64_t product_flops = 0;  // those of them that products do
  /// Read from and written to memory; what a statement reads several times counts once a statement.
  std::int64_t load_bytes = 0, store_bytes = 0;
};

std::string_view name(PlannedKernel::Kind kind);

/// `program` has passed the host passes. Throws UsageError where `sizes` lacks a symbol.
KernelStats kernel_stats(const TileProgram& program, const Sizes& sizes);
/// Of every kernel of the plan, in order; what a library would run is counted as the generated
/// kernel that stands in for it.
std::vector<KernelStats> plan_stats(const Plan& plan, const Sizes& sizes,
                                    const VectorTarget& target);

}  // namespace krait
