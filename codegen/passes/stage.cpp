// stage: lets what a loop loads for one turn come while the turn before is worked on.
//
// What: copies from global to shared memory that stand in a loop become asynchronous (cp.async) and
// are issued a turn ahead, for the first turn before the loop. Their buffers get a slot for each of
// two turns. A turn begins with a wait for its own copies and a barrier, behind which the other
// slot is free; then it issues the next. Largest first, as many buffers as shared memory has room
// for: each choice is tried through the passes that place it. Why here: after place, since only
// buffers that are left in shared memory can be loaded so; before sync, which knows of slots, and
// smem, which gives them their bytes. Limits: one level of a nest, the innermost that loads, which
// is no loop over a part of a run; two slots; the copy is the buffer's only writer, is not
// converted, and fills with zeros at most; its source is not written by the kernel.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "codegen/passes/cuda_passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

using Body = std::vector<Statement>;

/// Whether the kernel writes what stands behind the pointer, by another name too.
bool written(const TileProgram& program, int pointer) {
  std::set<int> same{pointer};
  for (const auto& [read, to] : program.in_place)
    if (read == pointer || to == pointer) same.insert({read, to});
  return std::any_of(program.buffers.begin(), program.buffers.end(), [&](const Buffer& buffer) {
    return buffer.space == Space::global && buffer.written && same.count(buffer.pointer) != 0;
  });
}

struct Uses {
  int reads = 0, writes = 0;
};

/// Reads and writes of the memory in the statements.
Uses uses_of(const TileProgram& program, std::span<const Statement> body, int memory) {
  Uses uses;
  const auto count = [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use use) {
      if (memory_of(program, access.buffer) != memory) return;
      uses.reads += use != Use::write;
      uses.writes += use != Use::read;
    });
  };
  for (const Statement& statement : body) {
    count(statement);
    if (const Body* inside = body_of(statement)) visit_statements(*inside, count);
  }
  return uses;
}

bool may_run_ahead(const TileProgram& program, const Copy& copy) {
  const Buffer& to = program.buffers[static_cast<std::size_t>(copy.destination.buffer)];
  const Buffer& from = program.buffers[static_cast<std::size_t>(copy.source.buffer)];
  const bool fills = !copy.source.guarded.empty();
  return from.space == Space::global && to.space == Space::shared && to.alias_of < 0 &&
         from.dtype == to.dtype && size_in_bytes(to.dtype) >= 4 &&
         !(fills && (copy.keep || copy.fill != 0)) && !written(program, from.pointer);
}

/// Whether the access moves with a digit of the variable, which is not known a turn ahead.
bool mentions_digit(const TileProgram& program, const Access& access, int var) {
  const std::vector<int> digits = program.digits_of(var);
  return std::any_of(digits.begin(), digits.end(), [&](int digit) {
    return std::any_of(access.index.begin(), access.index.end(),
                       [&](const Index& index) { return index.factor_of(digit) != 0; });
  });
}

/// Buffers that the loop's own body loads, each by a copy that may run ahead; all that reads them
/// comes behind it in the same turn.
std::vector<int> loaded_by(const TileProgram& program, const For& loop) {
  std::vector<int> found;
  const Extent& turns = program.vars[static_cast<std::size_t>(loop.var)].extent;
  if (loop.unroll || loop.until >= 0 || turns == Extent::constant(1)) return found;
  for (auto statement = loop.body.begin(); statement != loop.body.end(); ++statement) {
    const Copy* copy = std::get_if<Copy>(&*statement);
    if (copy == nullptr || !may_run_ahead(program, *copy)) continue;
    if (mentions_digit(program, copy->source, loop.var)) continue;
    const int buffer = copy->destination.buffer;
    const Uses all = uses_of(program, program.body, buffer);
    const Uses behind = uses_of(program, {statement + 1, loop.body.end()}, buffer);
    if (all.writes == 1 && all.reads == behind.reads) found.push_back(buffer);
  }
  return found;
}

/// The same of all innermost loops that load something, loop by loop; whether `body` has one.
bool collect(const TileProgram& program, const Body& body, std::vector<std::vector<int>>& found) {
  bool any = false;
  for (const Statement& statement : body) {
    const For* loop = std::get_if<For>(&statement);
    if (loop == nullptr) continue;
    if (collect(program, loop->body, found)) {
      any = true;
      continue;
    }
    std::vector<int> loaded = loaded_by(program, *loop);
    if (loaded.empty()) continue;
    found.push_back(std::move(loaded));
    any = true;
  }
  return any;
}

void stage_body(TileProgram& program, Body& body, const std::set<int>& chosen);

/// Takes the chosen copies out of the loop's body; what goes before the loop in their place.
Body stage_loop(TileProgram& program, For& loop, const std::set<int>& chosen) {
  Prefetch ahead{loop.var, loop.reverse, loop.block_var, loop.blocks, false, {}};
  Body rest;
  for (Statement& statement : loop.body) {
    Copy* copy = std::get_if<Copy>(&statement);
    if (copy == nullptr || chosen.count(copy->destination.buffer) == 0) {
      rest.push_back(std::move(statement));
      continue;
    }
    copy->asynchronous = true;
    Buffer& buffer = program.buffers[static_cast<std::size_t>(copy->destination.buffer)];
    buffer.stages = 2;
    buffer.stage_var = loop.var;
    ahead.body.push_back(std::move(statement));
  }
  loop.body = std::move(rest);
  if (ahead.body.empty()) {
    stage_body(program, loop.body, chosen);
    return {};
  }
  Prefetch first = ahead;
  first.first = true;
  const Body start = {Wait{0}, Barrier{}, std::move(ahead), Commit{}};
  loop.body.insert(loop.body.begin(), start.begin(), start.end());
  return {std::move(first), Commit{}};
}

void stage_body(TileProgram& program, Body& body, const std::set<int>& chosen) {
  Body made;
  for (Statement& statement : body) {
    if (For* loop = std::get_if<For>(&statement)) {
      Body before = stage_loop(program, *loop, chosen);
      made.insert(made.end(), std::make_move_iterator(before.begin()),
                  std::make_move_iterator(before.end()));
    }
    made.push_back(std::move(statement));
  }
  body = std::move(made);
}

/// Bytes of shared memory that the kernel takes with these buffers staged.
std::int64_t bytes_staged(TileProgram program, const RowsApart& apart,
                          const std::set<int>& chosen) {
  stage_body(program, program.body, chosen);
  sync(program);
  place_shared(program, apart);
  return program.scratch_bytes;
}

}  // namespace

std::vector<std::vector<int>> loads_of_loops(const TileProgram& program) {
  std::vector<std::vector<int>> found;
  collect(program, program.body, found);
  return found;
}

void stage(TileProgram& program, const CudaTarget& target) {
  if (target.stages < 2) return;
  std::vector<int> loaded;
  for (const std::vector<int>& of_loop : loads_of_loops(program))
    loaded.insert(loaded.end(), of_loop.begin(), of_loop.end());
  std::stable_sort(loaded.begin(), loaded.end(), [&](int a, int b) {
    return bytes_of(program.buffers[static_cast<std::size_t>(a)]) >
           bytes_of(program.buffers[static_cast<std::size_t>(b)]);
  });
  if (loaded.empty() && !target.stages_asked) return;
  const RowsApart apart = rows_apart(program);
  const auto bytes_with = [&](const std::set<int>& chosen) {
    return bytes_staged(program, apart, chosen);
  };
  std::set<int> chosen(loaded.begin(), loaded.end());
  if (const std::int64_t bytes = bytes_with(chosen); bytes > target.shared_limit) {
    if (target.stages_asked)
      throw UsageError(
          "schedule: stages", std::to_string(target.stages),
          text("1 for kernel ", program.name, " on ", target.architecture, ": with two it takes ",
               bytes, " bytes of shared memory, and has ", target.shared_limit,
               " at most; a smaller chunk, tile or width takes less"));
    chosen.clear();
    if (bytes_with(chosen) > target.shared_limit) return;  // no room for slots, none as it is
    for (const int buffer : loaded) {
      chosen.insert(buffer);
      if (bytes_with(chosen) > target.shared_limit) chosen.erase(buffer);
    }
  }
  if (!chosen.empty()) stage_body(program, program.body, chosen);
}

}  // namespace krait
