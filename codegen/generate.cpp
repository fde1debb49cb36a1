#include "codegen/generate.h"

#include "codegen/build.h"
#include "codegen/llvm/emit_llvm.h"
#include "codegen/passes/passes.h"

namespace krait {

GeneratedKernel generate_host(const Plan& plan, int index, const VectorTarget& target) {
  BuiltKernel built = build(plan, index);
  run_passes(built.program, target, host_passes());
  GeneratedKernel kernel;
  kernel.source = emit_llvm(built.program, target);
  kernel.objects = std::move(built.objects);
  for (int var : built.program.grid) kernel.grid.push_back(built.program.vars[var].extent);
  kernel.arguments = std::move(built.program.arguments);
  kernel.scratch_bytes = built.program.scratch_bytes;
  return kernel;
}

}  // namespace krait
