// scratch: gives every buffer on chip its place in the scratch memory of one grid point.
//
// What: statements are numbered in order; a buffer lives from its first use to its last, and
// through the whole of every loop that it may carry values around. Buffers that never live at once
// share bytes: the largest first, each at the lowest free offset, all 64-byte aligned. Why here:
// last, when no pass adds buffers any more. Limits: within a loop a buffer lives for a part only
// where it has no alias, is used in that loop alone, and is first written in full without a guard,
// by one statement or part by part along one dimension. Where threads share the scratch (smem),
// time is counted in barriers: buffers share bytes only where a barrier lies between.
#include <algorithm>
#include <set>

#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

/// What one statement writes of a buffer: all of it, or all that lies between two positions of one
/// dimension.
struct Part {
  int dim = -1;
  std::int64_t from = 0, to = 0;
};

std::optional<Part> part_written(const TileProgram& program, const Access& access,
                                 const std::vector<int>& own) {
  const Buffer& buffer = program.buffers[access.buffer];
  if (!access.guarded.empty()) return std::nullopt;
  Part part;
  std::set<int> seen;
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    const Index& index = access.index[d];
    if (buffer.dims[d].extent == Extent::constant(1)) continue;
    if (index.terms.size() != 1 || index.terms[0].factor != 1) return std::nullopt;
    const int var = index.terms[0].var;
    if (std::find(own.begin(), own.end(), var) == own.end() || !seen.insert(var).second)
      return std::nullopt;
    const Extent& extent = program.vars[var].extent;
    if (index.constant == 0 && extent == buffer.dims[d].extent) continue;
    if (part.dim >= 0) return std::nullopt;
    part = {static_cast<int>(d), index.constant, index.constant + extent.offset};
  }
  return part;
}

class Lives {
 public:
  Lives(const TileProgram& program, bool by_barriers)
      : program_(program), by_barriers_(by_barriers) {
    lives.resize(program.buffers.size());
    aliased_.resize(program.buffers.size(), false);
    uses_.resize(program.buffers.size(), 0);
    for (std::size_t i = 0; i < program.buffers.size(); ++i)
      if (program.buffers[i].alias_of >= 0)
        aliased_[memory_of(program, static_cast<int>(i))] = true;
    visit_statements(program.body, [&](const Statement& statement) {
      for_each_access(statement, [&](const Access& access, Use) {
        ++uses_[memory_of(program_, access.buffer)];
      });
    });
    walk(program.body);
  }

  std::vector<Life> lives;  // by memory

 private:
  struct Seen {
    int uses = 0;
    bool starts_whole = false;  // its first uses here write all of it
    Part filled{-1, 0, 0};      // by those so far, from the start of a dimension on
    /// Of the buffer one more use; what it writes of it, if that is all that it does.
    void use(const Buffer& buffer, const std::optional<Part>& part) {
      const bool fresh = uses++ == 0;
      if (starts_whole || !(fresh || filled.dim >= 0)) return;
      const bool goes_on = part && part->from == filled.to && (fresh || part->dim == filled.dim);
      const int dim = goes_on ? part->dim : -1;
      starts_whole = goes_on && (dim < 0 || buffer.dims[dim].extent.offset == part->to);
      filled = goes_on && !starts_whole ? *part : Part{};
    }
  };
  using Found = std::vector<std::pair<int, Seen>>;

  Seen& seen_in(Found& found, int memory) {
    for (auto& [number, seen] : found)
      if (number == memory) return seen;
    found.push_back({memory, {}});
    return found.back().second;
  }

  /// Numbers the statements of a body; tells of each memory how it is used there.
  Found walk(const std::vector<Statement>& body) {
    Found found;
    for (const Statement& statement : body) {
      if (const For* loop = std::get_if<For>(&statement)) {
        const int begin = tick(false);
        Found inner = walk(loop->body);
        const int end = tick(false);
        for (const auto& [memory, seen] : inner) {
          const bool local = seen.starts_whole && seen.uses == uses_[memory] && !aliased_[memory];
          if (!local) lives[memory].include(begin, end);
          // Around an outer loop it is as fresh as here: all its uses are inside.
          Seen& outer = seen_in(found, memory);
          if (outer.uses == 0) outer.starts_whole = local;
          outer.uses += seen.uses;
        }
        continue;
      }
      const int now = tick(std::holds_alternative<Barrier>(statement));
      if (const Prefetch* ahead = std::get_if<Prefetch>(&statement)) {
        // Issued at one time; none of them is the first whole use of a turn, but of the next.
        for (const auto& [memory, seen] : walk(ahead->body))
          seen_in(found, memory).uses += seen.uses;
        continue;
      }
      const std::vector<int> own = own_variables(statement);
      for_each_access(statement, [&](const Access& access, Use use) {
        const int memory = memory_of(program_, access.buffer);
        lives[memory].include(now, now);
        const bool writes = use == Use::write && access.buffer == memory;
        seen_in(found, memory)
            .use(program_.buffers[memory],
                 writes ? part_written(program_, access, own) : std::nullopt);
      });
    }
    return found;
  }

  /// The time of what comes now. `step`: what comes next comes later.
  int tick(bool step) { return step || !by_barriers_ ? next_++ : next_; }

  const TileProgram& program_;
  const bool by_barriers_;
  std::vector<bool> aliased_;
  std::vector<int> uses_;
  int next_ = 0;
};

}  // namespace

void Life::include(int from, int to) {
  first = first < 0 ? from : std::min(first, from);
  last = std::max(last, to);
}

std::vector<Life> lives_of(const TileProgram& program, bool by_barriers) {
  return Lives(program, by_barriers).lives;
}

void place_scratch(TileProgram& program, bool by_barriers) {
  const std::vector<Life> lives = lives_of(program, by_barriers);
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i)
    if (program.buffers[i].space == Space::shared && program.buffers[i].alias_of < 0 &&
        lives[i].first >= 0)
      order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return bytes_of(program.buffers[a]) > bytes_of(program.buffers[b]);
  });
  auto padded = [&](int i) { return (bytes_of(program.buffers[i]) + 63) / 64 * 64; };
  std::vector<int> placed;
  program.scratch_bytes = 0;
  for (int i : order) {
    const Life& life = lives[i];
    std::int64_t offset = 0;
    // Past everything in the way, lowest first, until nothing is.
    for (int other : placed) {
      const Life& theirs = lives[other];
      if (theirs.last < life.first || life.last < theirs.first) continue;
      const std::int64_t begin = program.buffers[other].scratch_offset;
      if (begin < offset + padded(i)) offset = std::max(offset, begin + padded(other));
    }
    program.buffers[i].scratch_offset = offset;
    program.scratch_bytes = std::max(program.scratch_bytes, offset + padded(i));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](std::int64_t mine, int other) {
                                     return mine < program.buffers[other].scratch_offset;
                                   }),
                  i);
  }
  // Buffers without a use stand at the start; nothing reads them.
  for (Buffer& buffer : program.buffers)
    if (buffer.space == Space::shared && buffer.alias_of < 0 && buffer.scratch_offset < 0) {
      buffer.scratch_offset = 0;
      program.scratch_bytes = std::max(program.scratch_bytes, (bytes_of(buffer) + 63) / 64 * 64);
    }
}

}  // namespace krait
