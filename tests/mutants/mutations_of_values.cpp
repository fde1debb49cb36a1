// Loops, sums, running sums, and what is carried from one turn to the next.
#include <algorithm>
#include <set>

#include "codegen/tile/access.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using Places = std::vector<Place>;

/// A place for every statement of kind S that `wanted` holds of, where f changes it.
template <typename S, typename Wanted, typename F>
Places at_statements(const TileProgram& program, const Wanted& wanted, const F& f) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const S* s = std::get_if<S>(&statement);
    if (s == nullptr || !wanted(*s)) return;
    places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                        f(mutant, std::get<S>(statement_of(mutant, number)));
                      }});
  });
  return places;
}

const auto any = [](const auto&) { return true; };

Var& var_of(TileProgram& program, int var) { return program.vars[static_cast<std::size_t>(var)]; }
const Var& var_of(const TileProgram& program, int var) {
  return program.vars[static_cast<std::size_t>(var)];
}

/// Whether a map of the loop brings a value on chip up to date: its turns come in an order then.
bool carries(const TileProgram& program, const For& loop) {
  bool found = false;
  visit_statements(loop.body, [&](const Statement& statement) {
    const MapTile* map = std::get_if<MapTile>(&statement);
    if (map == nullptr) return;
    for (const Access& written : map->destinations)
      for (const Access& read : map->operands)
        found = found ||
                (written.buffer == read.buffer &&
                 program.buffers[static_cast<std::size_t>(read.buffer)].space != Space::global);
  });
  return found;
}

Places turned_loops(const TileProgram& program) {
  return at_statements<For>(
      program, [&](const For& s) { return carries(program, s); },
      [](TileProgram&, For& s) { s.reverse = !s.reverse; });
}

Places loops_of(const TileProgram& program, std::int64_t more) {
  return at_statements<For>(
      program, [](const For& s) { return s.block_var < 0; },
      [=](TileProgram& mutant, For& s) {
        Extent& extent = var_of(mutant, s.var).extent;
        extent.offset += more * extent.divisor;
      });
}

Places shorter_sums(const TileProgram& program) {
  return at_statements<Mma>(
      program, [&](const Mma& s) { return var_of(program, s.sum.back()).extent.offset > 1; },
      [](TileProgram& mutant, Mma& s) { --var_of(mutant, s.sum.back()).extent.offset; });
}

/// Extents of what one statement computes.
Places tiles_of(const TileProgram& program, std::int64_t more) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const std::vector<int> own = own_variables(statement);
    for (const int var : own) {
      if (var_of(program, var).extent.offset < 2) continue;
      places.push_back({described(program, number, statement),
                        [=](TileProgram& mutant) { var_of(mutant, var).extent.offset += more; }});
    }
  });
  return places;
}

Places forgotten_fills(const TileProgram& program) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    if (!std::holds_alternative<Fill>(statement)) return;
    places.push_back(erasure(program, number, statement));
  });
  return places;
}

/// What a loop reads of the turn before is not brought up to date: statements of its body that
/// write what the body read above them, or write and read at once.
Places stale_states(const TileProgram& program) {
  Places places;
  std::set<int> inside;
  for_each_numbered(program, [&](int, const Statement& statement) {
    if (const For* loop = std::get_if<For>(&statement))
      visit_statements(loop->body, [&](const Statement& s) {
        for_each_access(s, [&](const Access& access, Use use) {
          if (use == Use::update &&
              program.buffers[static_cast<std::size_t>(access.buffer)].space != Space::global)
            inside.insert(memory_of(program, access.buffer));
        });
      });
  });
  for_each_numbered(program, [&](int number, const Statement& statement) {
    bool updates = false;
    for_each_access(statement, [&](const Access& access, Use use) {
      updates = updates || (use != Use::read && inside.count(memory_of(program, access.buffer)));
    });
    if (!updates || std::holds_alternative<Fill>(statement)) return;
    places.push_back(erasure(program, number, statement));
  });
  return places;
}

/// Reads of chip memory that has two dimensions of one extent: their indices change places.
Places turned_reads(const TileProgram& program) {
  Places places;
  const auto dims_of = [&](const Access& access) -> const std::vector<Dim>& {
    return program.buffers[static_cast<std::size_t>(access.buffer)].dims;
  };
  for_each_numbered_access(
      program,
      [&](const Access& access, Use use) {
        const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
        return use == Use::read && buffer.space != Space::global;
      },
      [&](const NumberedAccess& at, const Access& access) {
        const std::vector<Dim>& dims = dims_of(access);
        for (std::size_t d = 0; d + 1 < dims.size(); ++d) {
          if (!(dims[d].extent == dims[d + 1].extent) || access.index[d] == access.index[d + 1] ||
              dims[d].extent.offset < 2)
            continue;
          places.push_back({at.where, [=](TileProgram& mutant) {
                              Access& found = at.in(mutant);
                              std::swap(found.index[d], found.index[d + 1]);
                            }});
        }
      });
  return places;
}

}  // namespace

std::vector<Mutation> mutations_of_values() {
  return {
      {"a loop runs the other way", "simplify", turned_loops,
       "what it carries is a sum, in any order"},
      {"a loop has one turn too few", "simplify",
       [](const TileProgram& p) { return loops_of(p, -1); }},
      {"a loop has one turn too many", "guard", [](const TileProgram& p) { return loops_of(p, 1); },
       "a chunk past the end is all padding, which adds nothing"},
      {"a product sums one too few", "guard", shorter_sums},
      {"a tile is one too short", "guard", [](const TileProgram& p) { return tiles_of(p, -1); }},
      {"a tile is one too long", "guard", [](const TileProgram& p) { return tiles_of(p, 1); }},
      {"a product adds for sets, or sets for adds", "guard",
       [](const TileProgram& p) {
         return at_statements<Mma>(p, any,
                                   [](TileProgram&, Mma& s) { s.accumulate = !s.accumulate; });
       },
       "a state that one turn makes again from zero is what that turn adds"},
      {"a sum adds for sets, or sets for adds", "guard",
       [](const TileProgram& p) {
         return at_statements<ReduceTile>(
             p, any, [](TileProgram&, ReduceTile& s) { s.accumulate = !s.accumulate; });
       }},
      {"the largest for the sum", "guard",
       [](const TileProgram& p) {
         return at_statements<ReduceTile>(
             p,
             [&p](const ReduceTile& s) {
               return std::any_of(s.reduced.begin(), s.reduced.end(),
                                  [&](int var) { return var_of(p, var).extent.offset > 1; });
             },
             [](TileProgram&, ReduceTile& s) { s.kind = ReduceTile::Kind::max; });
       }},
      {"a fill is forgotten", "guard", forgotten_fills},
      {"a carried state is stale", "guard", stale_states},
      {"a tile is read transposed", "guard", turned_reads},
      {"a running sum goes the other way", "guard",
       [](const TileProgram& p) {
         return at_statements<ScanTile>(p, any,
                                        [](TileProgram&, ScanTile& s) { s.reverse = !s.reverse; });
       }},
      {"a running sum is exclusive for inclusive", "guard",
       [](const TileProgram& p) {
         return at_statements<ScanTile>(
             p, [](const ScanTile& s) { return s.destination.buffer >= 0; },
             [](TileProgram&, ScanTile& s) { s.exclusive = !s.exclusive; });
       }},
      {"a running sum forgets where it starts", "guard",
       [](const TileProgram& p) {
         return at_statements<ScanTile>(
             p, [](const ScanTile& s) { return s.initial.buffer >= 0; },
             [](TileProgram&, ScanTile& s) { s.initial = {}; });
       }},
      {"a running sum forgets its resets", "guard",
       [](const TileProgram& p) {
         return at_statements<ScanTile>(
             p, [](const ScanTile& s) { return s.reset.buffer >= 0; },
             [](TileProgram&, ScanTile& s) { s.reset = {}; });
       }},
      {"a running sum's end is not stored", "guard",
       [](const TileProgram& p) {
         return at_statements<ScanTile>(
             p, [](const ScanTile& s) { return s.last.buffer >= 0 && s.destination.buffer >= 0; },
             [](TileProgram&, ScanTile& s) { s.last = {}; });
       }},
  };
}

}  // namespace krait::mutants
