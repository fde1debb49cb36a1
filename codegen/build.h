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

/// How a product of its own is cut: positions of a block of its rows and of its columns, and of
/// what it sums over at a time. `warps`: threads of a block by 32, 0 on the host.
struct ProductBlocks {
  std::int64_t free = 128, sum = 128;
  int warps = 0;
};

/// On the host an operand's block is used as often as the other one is wide, and all three lie in
/// the second cache together.
inline constexpr ProductBlocks host_product_blocks{};
/// On a GPU each thread holds up to 64 results of a block, and operands lie in shared memory, of
/// which the least part has 64 KiB. Blocks are wide where enough of them are left for a large part.
/// `most_warps`: that a block may have.
ProductBlocks gpu_product_blocks(const Plan& plan, int kernel, int most_warps);

/// Any kernel of the plan; a product becomes a blocked product of its own, for machines without a
/// library. Throws UsageError where a node needs what no tile statement can do yet.
BuiltKernel build(const Plan& plan, int kernel, const ProductBlocks& blocks = host_product_blocks);

}  // namespace krait
