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

/// Any kernel of the plan; a product becomes a blocked product of its own, for machines without a
/// library. Throws UsageError where a node needs what no tile statement can do yet.
BuiltKernel build(const Plan& plan, int kernel);

}  // namespace krait
