// Where buffers stand in shared memory, and how they are read there.
#include <algorithm>
#include <set>

#include "codegen/tile/access.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using Places = std::vector<Place>;

bool is_root(const Buffer& buffer) { return buffer.space == Space::shared && buffer.alias_of < 0; }

std::set<int> used_roots(const TileProgram& program) {
  std::set<int> used;
  visit_statements(program.body, [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use) {
      if (const int root = memory_of(program, access.buffer);
          is_root(program.buffers[static_cast<std::size_t>(root)]))
        used.insert(root);
    });
  });
  return used;
}

Places at_roots(const TileProgram& program, const std::function<bool(const Buffer&)>& wanted,
                const std::function<void(Buffer&)>& f) {
  Places places;
  for (const int root : used_roots(program)) {
    const auto at = static_cast<std::size_t>(root);
    if (!wanted(program.buffers[at])) continue;
    places.push_back({"buffer " + program.buffers[at].name,
                      [=](TileProgram& mutant) { f(mutant.buffers[at]); }});
  }
  return places;
}

const auto has_rows = [](const Buffer& buffer) {
  return buffer.dims.size() >= 2 && buffer.dims[buffer.dims.size() - 2].extent.offset > 1 &&
         buffer.dims.back().extent.offset > 1;
};

Places at_rows(const TileProgram& program, const std::function<void(Stride&)>& f) {
  return at_roots(program, has_rows,
                  [=](Buffer& buffer) { f(buffer.dims[buffer.dims.size() - 2].stride); });
}

/// The buffer stands where the other does.
Place moved_onto(const TileProgram& program, int buffer, int other) {
  const auto moved = static_cast<std::size_t>(buffer), to = static_cast<std::size_t>(other);
  return {"buffer " + program.buffers[moved].name + " in " + program.buffers[to].name,
          [=](TileProgram& mutant) {
            mutant.buffers[moved].scratch_offset = mutant.buffers[to].scratch_offset;
          }};
}

/// Two memories at once in one place: those used by one statement.
Places overlapping(const TileProgram& program) {
  std::set<std::pair<int, int>> pairs;
  visit_statements(program.body, [&](const Statement& statement) {
    std::set<int> roots;
    for_each_access(statement, [&](const Access& access, Use) {
      if (const int root = memory_of(program, access.buffer);
          is_root(program.buffers[static_cast<std::size_t>(root)]))
        roots.insert(root);
    });
    for (const int a : roots)
      for (const int b : roots)
        if (a < b) pairs.insert({a, b});
  });
  Places places;
  for (const auto& [a, b] : pairs) places.push_back(moved_onto(program, a, b));
  return places;
}

/// A buffer gives up its place before its last reader: another takes it, one that is used after it
/// was written and before it is read for the last time.
Places short_lives(const TileProgram& program) {
  struct Life {
    int first = -1, last = -1;
  };
  std::vector<Life> lives(program.buffers.size());
  for_each_numbered(program, [&](int number, const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use) {
      Life& life = lives[static_cast<std::size_t>(memory_of(program, access.buffer))];
      if (life.first < 0) life.first = number;
      life.last = number;
    });
  });
  Places places;
  const std::set<int> roots = used_roots(program);
  for (const int a : roots)
    for (const int b : roots) {
      const auto one = static_cast<std::size_t>(a), other = static_cast<std::size_t>(b);
      // b comes and goes while a is alive.
      if (a == b || lives[one].first >= lives[other].first || lives[one].last <= lives[other].last)
        continue;
      places.push_back(moved_onto(program, b, a));
    }
  return places;
}

/// Memories of low parts of running sums, which are too small to be missed.
std::set<int> low_parts(const TileProgram& program) {
  std::set<int> low;
  visit_statements(program.body, [&](const Statement& statement) {
    if (const ScanTile* scan = std::get_if<ScanTile>(&statement); scan != nullptr && scan->pair)
      low.insert(memory_of(program, scan->low.buffer));
  });
  return low;
}

/// Views of another buffer's memory.
Places moved_views(const TileProgram& program) {
  Places places;
  const std::set<int> low = low_parts(program);
  std::set<int> used;
  visit_statements(program.body, [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use) { used.insert(access.buffer); });
  });
  for (const int number : used) {
    const auto at = static_cast<std::size_t>(number);
    if (program.buffers[at].alias_of < 0 || program.buffers[at].space != Space::shared ||
        low.count(memory_of(program, number)) != 0)
      continue;
    places.push_back({"view " + program.buffers[at].name,
                      [=](TileProgram& mutant) { ++mutant.buffers[at].alias_offset; }});
    if (program.buffers[at].alias_offset > 0)
      places.push_back({"view " + program.buffers[at].name,
                        [=](TileProgram& mutant) { --mutant.buffers[at].alias_offset; }});
  }
  return places;
}

Places at_shared_reads(const TileProgram& program, std::int64_t by) {
  Places places;
  const std::set<int> low = low_parts(program);
  for_each_numbered_access(
      program,
      [&](const Access& access, Use use) {
        const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
        return use == Use::read && buffer.space == Space::shared && !access.index.empty() &&
               buffer.dims.back().extent.offset >= 2 &&
               !(access.index.back().terms.empty() && low.count(access.buffer) != 0);
      },
      [&](const NumberedAccess& at, const Access&) {
        places.push_back(
            {at.where, [=](TileProgram& mutant) { at.in(mutant).index.back().constant += by; }});
      });
  return places;
}

/// Buffers of one shape, rows as far apart.
bool alike(const Buffer& a, const Buffer& b) {
  return a.dims.size() == b.dims.size() && a.dtype == b.dtype &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), [](const Dim& x, const Dim& y) {
           return x.extent == y.extent && x.stride == y.stride;
         });
}

/// A buffer of the same shape is read in place of another.
Places other_buffers(const TileProgram& program) {
  Places places;
  const auto buffer_of = [&](int number) -> const Buffer& {
    return program.buffers[static_cast<std::size_t>(number)];
  };
  for_each_numbered_access(
      program,
      [&](const Access& access, Use use) {
        const Buffer& buffer = buffer_of(access.buffer);
        return use == Use::read && is_root(buffer) && !buffer.dims.empty();
      },
      [&](const NumberedAccess& at, const Access& access) {
        for (const int other : used_roots(program))
          if (other != access.buffer && alike(buffer_of(other), buffer_of(access.buffer)))
            places.push_back(
                {at.where, [=](TileProgram& mutant) { at.in(mutant).buffer = other; }});
      });
  return places;
}

}  // namespace

std::vector<Mutation> mutations_of_memory() {
  return {
      {"rows of shared memory overlap", "smem",
       [](const TileProgram& p) {
         return at_rows(p, [](Stride& stride) { stride.constant /= 2; });
       }},
      {"rows of shared memory are farther apart", "smem",
       [](const TileProgram& p) {
         return at_rows(p, [](Stride& stride) { stride.constant *= 2; });
       },
       "what lies behind is free at that time"},
      {"operands of one statement share bytes", "smem", overlapping},
      {"a life is cut short", "smem", short_lives},
      {"a buffer is not aligned", "smem",
       [](const TileProgram& p) {
         return at_roots(
             p, [](const Buffer&) { return true; },
             [](Buffer& buffer) { buffer.scratch_offset += 4; });
       }},
      {"a buffer leaves the block's memory", "smem",
       [](const TileProgram& p) {
         const std::int64_t end = p.scratch_bytes;
         return at_roots(
             p, [](const Buffer&) { return true; },
             [=](Buffer& buffer) { buffer.scratch_offset = end; });
       }},
      {"the block asks for too little memory", "smem",
       [](const TileProgram& p) {
         return p.scratch_bytes == 0 ? Places{} : Places{{"the block", [](TileProgram& mutant) {
                                                            mutant.scratch_bytes -= 64;
                                                          }}};
       }},
      {"a view is off by one", "guard", moved_views},
      {"a tile is read past its end", "smem",
       [](const TileProgram& p) { return at_shared_reads(p, 1); }},
      {"a tile is read before its start", "smem",
       [](const TileProgram& p) { return at_shared_reads(p, -1); }},
      {"another buffer is read", "smem", other_buffers},
  };
}

}  // namespace krait::mutants
