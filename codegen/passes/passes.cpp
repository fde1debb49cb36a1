#include "codegen/passes/passes.h"

#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

void verify_scratch(const TileProgram& program) {
  verify(program);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.space == Space::global || buffer.alias_of >= 0) continue;
    KRAIT_ASSERT(buffer.scratch_offset >= 0 && buffer.scratch_offset % 64 == 0 &&
                     buffer.scratch_offset + bytes_of(buffer) <= program.scratch_bytes,
                 buffer.name, " stands at byte ", buffer.scratch_offset, " of ",
                 program.scratch_bytes);
  }
}

}  // namespace

std::vector<TilePass> host_passes() {
  auto unguarded = [](const TileProgram& program) { verify(program, false); };
  auto guarded = [](const TileProgram& program) { verify(program); };
  return {
      {"simplify", [](TileProgram& p, const VectorTarget&) { simplify(p); }, unguarded},
      {"guard", [](TileProgram& p, const VectorTarget&) { list_guards(p); }, guarded},
      {"pack", [](TileProgram& p, const VectorTarget& target) { pack(p, target); }, guarded},
      {"scratch", [](TileProgram& p, const VectorTarget&) { place_scratch(p); }, verify_scratch},
  };
}

void run_passes(TileProgram& program, const VectorTarget& target,
                const std::vector<TilePass>& passes,
                const std::function<void(const std::string&, const TileProgram&)>& after) {
  for (const TilePass& pass : passes) {
    pass.run(program, target);
    if (after) after(pass.name, program);
    pass.verify(program);
  }
}

}  // namespace krait
