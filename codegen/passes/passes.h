// The passes between a built tile program and the host emitter, as a value: a caller may dump after
// each, and a test may append one that makes a mutant.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/llvm/vector_target.h"
#include "codegen/tile/tile.h"

namespace krait {

struct TilePass {
  std::string name;
  std::function<void(TileProgram&, const VectorTarget&)> run;
  std::function<void(const TileProgram&)> verify;  // throws InternalError
};

/// simplify, guard, pack, scratch: in this order.
std::vector<TilePass> host_passes();

/// Runs them all, verifying after each; `after` (if any) sees the program after every pass.
void run_passes(TileProgram& program, const VectorTarget& target,
                const std::vector<TilePass>& passes,
                const std::function<void(const std::string&, const TileProgram&)>& after = {});

// The passes themselves; their files say what each does and does not.
void simplify(TileProgram& program);
void list_guards(TileProgram& program);
void pack(TileProgram& program, const VectorTarget& target);
void place_scratch(TileProgram& program, bool by_barriers = false);

/// Buffers on chip that no statement and no view uses go.
void drop_buffers(TileProgram& program);
/// From the first to the last time that each buffer's memory is needed, -1 where it never is.
/// Statements are counted in order; by barriers: only these.
struct Life {
  int first = -1, last = -1;
  void include(int from, int to);
};
std::vector<Life> lives_of(const TileProgram& program, bool by_barriers);

}  // namespace krait
