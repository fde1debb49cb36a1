// Build: a kernel of a plan as a tile program, before any pass.
#pragma once

#include "codegen/tile/tile.h"
#include "schedules/plan.h"

namespace krait {

/// A tile program and the object of the plan behind each of its pointers.
struct BuiltKernel {
  TileProgram program;
  std::vector<int> objects;
};

/// Positions of a block of rows, columns or sums of a product of its own. On the host an operand's
/// block is used as often as the other one is wide, and all three lie in the second cache together;
/// on a GPU they lie in shared memory, of which the least part has 64 KiB.
inline constexpr std::int64_t host_product_block = 128, gpu_product_block = 64;

/// Any kernel of the plan; a product becomes a blocked product of its own, for machines without a
/// library. Throws UsageError where a node needs what no tile statement can do yet.
BuiltKernel build(const Plan& plan, int kernel, std::int64_t product_block = host_product_block);

}  // namespace krait
