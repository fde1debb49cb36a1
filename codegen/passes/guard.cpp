// guard: lists in Access::guarded every dimension of a global access that may leave its extent.
//
// What: each index is bounded by the ranges of its variables; sizes that are known only when the
// kernel runs are compared as sums of symbols. Whatever is not proven inside is guarded.
// Why here: after simplify, which removes accesses and variables, and before anything that moves or
// copies accesses, which then carry their guards along. Both emitters need it.
// Limits: no reasoning about the block of a blocked loop, nor about sizes that divide evenly; a
// guard too many costs time only.
#include <algorithm>

#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"
#include "codegen/tile/range.h"

namespace krait {
namespace {

void guard(TileProgram& program, std::vector<Statement>& body) {
  for (Statement& statement : body) {
    for_each_access(statement, [&](Access& access, Use) {
      const Buffer& buffer = program.buffers[access.buffer];
      if (buffer.space != Space::global) return;
      for (int dim = 0; dim < static_cast<int>(buffer.dims.size()); ++dim)
        if (leaves(program, access, dim).any()) access.guarded.push_back(dim);
      std::sort(access.guarded.begin(), access.guarded.end());
      auto end = std::unique(access.guarded.begin(), access.guarded.end());
      access.guarded.erase(end, access.guarded.end());
    });
    if (For* loop = std::get_if<For>(&statement)) guard(program, loop->body);
  }
}

}  // namespace

void list_guards(TileProgram& program) { guard(program, program.body); }

}  // namespace krait
