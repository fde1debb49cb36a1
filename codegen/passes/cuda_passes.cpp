#include "codegen/passes/cuda_passes.h"

#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// Every statement has a layout of its points, and fragments are touched by theirs alone.
void verify_place(const TileProgram& program) {
  verify(program);
  KRAIT_ASSERT(program.warps >= 1, program.name, " has ", program.warps, " warps");
  visit_statements(program.body, [&](const Statement& statement) {
    const std::optional<Layout>* layout = layout_of(statement);
    KRAIT_ASSERT(layout == nullptr || (*layout && (*layout)->covers_once()), "tile program ",
                 program.name, ": points without a thread, or with two\n",
                 to_text(program, statement));
  });
}

void verify_shared(const TileProgram& program, const CudaTarget& target) {
  verify_sync(program);
  verify_stage(program);
  for (const Buffer& buffer : program.buffers) {
    if (buffer.space != Space::shared || buffer.alias_of >= 0) continue;
    KRAIT_ASSERT(buffer.scratch_offset >= 0 && buffer.scratch_offset % 64 == 0 &&
                     buffer.scratch_offset + bytes_of(buffer) <= program.scratch_bytes,
                 buffer.name, " stands at byte ", buffer.scratch_offset, " of ",
                 program.scratch_bytes);
  }
  if (program.scratch_bytes > target.shared_limit)
    throw UsageError("shared memory of kernel " + program.name,
                     std::to_string(program.scratch_bytes) + " bytes",
                     text("at most ", target.shared_limit, " on ", target.architecture,
                          "; a smaller chunk takes less"));
}

}  // namespace

std::vector<CudaPass> cuda_passes() {
  auto unguarded = [](const TileProgram& p, const CudaTarget&) { verify(p, false); };
  auto guarded = [](const TileProgram& p, const CudaTarget&) { verify(p); };
  auto placed = [](const TileProgram& p, const CudaTarget&) { verify_place(p); };
  auto staged = [](const TileProgram& p, const CudaTarget&) {
    verify(p);
    verify_stage(p);
  };
  auto synced = [](const TileProgram& p, const CudaTarget&) {
    verify_sync(p);
    verify_stage(p);
  };
  auto vectorized = [](const TileProgram& p, const CudaTarget&) { verify_vectorize(p); };
  return {
      {"simplify", [](TileProgram& p, const CudaTarget&) { simplify(p); }, unguarded},
      {"guard", [](TileProgram& p, const CudaTarget&) { list_guards(p); }, guarded},
      {"place", [](TileProgram& p, const CudaTarget& target) { place(p, target); }, placed},
      {"stage", [](TileProgram& p, const CudaTarget& target) { stage(p, target); }, staged},
      {"sync", [](TileProgram& p, const CudaTarget&) { sync(p); }, synced},
      {"smem", [](TileProgram& p, const CudaTarget&) { place_shared(p); }, verify_shared},
      {"vectorize", [](TileProgram& p, const CudaTarget&) { vectorize(p); }, vectorized},
  };
}

void run_passes(TileProgram& program, const CudaTarget& target, const std::vector<CudaPass>& passes,
                const std::function<void(const std::string&, const TileProgram&)>& after) {
  for (const CudaPass& pass : passes) {
    pass.run(program, target);
    if (after) after(pass.name, program);
    pass.verify(program, target);
  }
}

}  // namespace krait
