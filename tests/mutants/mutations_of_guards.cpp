// Guards, bounds and fills of global memory, and masks.
#include <algorithm>
#include <limits>
#include <set>

#include "codegen/tile/access.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using Places = std::vector<Place>;

/// A place for every access that `wanted` holds of, where f changes it.
Places at_accesses(const TileProgram& program,
                   const std::function<bool(const Statement&, const Access&, Use)>& wanted,
                   const std::function<void(TileProgram&, Access&)>& f) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    int access_number = 0;
    for_each_access(statement, [&](const Access& access, Use use) {
      const int at = access_number++;
      if (!wanted(statement, access, use)) return;
      places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                          f(mutant, access_of(statement_of(mutant, number), at));
                        }});
    });
  });
  return places;
}

const Buffer& buffer_of(const TileProgram& program, const Access& access) {
  return program.buffers[static_cast<std::size_t>(access.buffer)];
}

/// The guarded dimensions along which tiles really end in the middle: sizes of the run.
bool guarded(const Access& access) { return !access.guarded.empty(); }

Places dropped_guards(const TileProgram& program) {
  return at_accesses(
      program, [](const Statement&, const Access& access, Use) { return guarded(access); },
      [](TileProgram&, Access& access) { access.guarded.pop_back(); });
}

/// The bound of a tensor itself is moved, for all that touches it.
Places moved_bounds(const TileProgram& program, std::int64_t by) {
  Places places;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    int dim = -1;
    visit_statements(program.body, [&](const Statement& statement) {
      for_each_access(statement, [&](const Access& access, Use) {
        if (access.buffer == static_cast<int>(i) && guarded(access)) dim = access.guarded.back();
      });
    });
    if (dim < 0) continue;
    places.push_back({"tensor " + program.buffers[i].name, [=](TileProgram& mutant) {
                        mutant.buffers[i].dims[static_cast<std::size_t>(dim)].extent.offset += by;
                      }});
  }
  return places;
}

Places moved_guarded_reads(const TileProgram& program) {
  return at_accesses(
      program,
      [](const Statement&, const Access& access, Use use) {
        return guarded(access) && use == Use::read;
      },
      [](TileProgram&, Access& access) {
        access.index[static_cast<std::size_t>(access.guarded.back())].constant += 1;
      });
}

Places moved_writes(const TileProgram& program) {
  return at_accesses(
      program,
      [&](const Statement&, const Access& access, Use use) {
        return use != Use::read && buffer_of(program, access).space == Space::global &&
               !access.index.empty();
      },
      [](TileProgram&, Access& access) { access.index.back().constant += 1; });
}

/// Every block of the grid writes where the first one does.
Places partials_in_one_place(const TileProgram& program) {
  const auto by_grid = [&](const Index& index) {
    return std::any_of(index.terms.begin(), index.terms.end(), [&](const Index::Term& term) {
      const Var& var = program.vars[static_cast<std::size_t>(term.var)];
      return var.kind == VarKind::grid && !(var.extent == Extent::constant(1)) &&
             var.extent.symbol != "b";
    });
  };
  const auto is_grid = [](const TileProgram& mutant, const Index::Term& term) {
    return mutant.vars[static_cast<std::size_t>(term.var)].kind == VarKind::grid;
  };
  return at_accesses(
      program,
      [&](const Statement&, const Access& access, Use use) {
        return use != Use::read && buffer_of(program, access).space == Space::global &&
               std::any_of(access.index.begin(), access.index.end(), by_grid);
      },
      [=](TileProgram& mutant, Access& access) {
        for (Index& index : access.index)
          std::erase_if(index.terms,
                        [&](const Index::Term& term) { return is_grid(mutant, term); });
      });
}

/// A copy whose source is guarded: what lies outside is left as it was, or filled with another
/// number.
Places at_filled_copies(const TileProgram& program, const std::function<void(Copy&)>& f) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const Copy* copy = std::get_if<Copy>(&statement);
    if (copy == nullptr || copy->keep || copy->source.guarded.empty()) return;
    places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                        f(std::get<Copy>(statement_of(mutant, number)));
                      }});
  });
  return places;
}

std::vector<std::pair<std::string, Index>>* positions_of(Statement& statement) {
  if (MapTile* map = std::get_if<MapTile>(&statement)) return &map->positions;
  if (ReduceTile* sum = std::get_if<ReduceTile>(&statement)) return &sum->positions;
  return nullptr;
}

/// Masks compare positions along two axes: one of them is moved, in all of them, since some masks
/// are applied twice.
Places moved_masks(const TileProgram& program) {
  std::set<std::string> axes;
  TileProgram copy = program;
  for_each_numbered(program, [&](int number, const Statement&) {
    const auto* positions = positions_of(statement_of(copy, number));
    if (positions == nullptr || positions->size() < 2) return;
    for (const auto& [axis, index] : *positions) axes.insert(axis);
  });
  Places places;
  for (const std::string& axis : axes)
    for (const std::int64_t by : {1, -1})
      places.push_back({"axis " + axis, [=](TileProgram& mutant) {
                          int count = 0;
                          for_each_numbered(mutant, [&](int, const Statement&) { ++count; });
                          for (int number = 0; number < count; ++number)
                            if (auto* positions = positions_of(statement_of(mutant, number));
                                positions != nullptr && positions->size() >= 2)
                              for (auto& [of, index] : *positions)
                                if (of == axis) index.constant += by;
                        }});
  return places;
}

}  // namespace

std::vector<Mutation> mutations_of_guards() {
  return {
      {"a guard is dropped", "guard", dropped_guards},
      {"a bound is one too far", "guard", [](const TileProgram& p) { return moved_bounds(p, 1); }},
      {"a bound is one too near", "guard",
       [](const TileProgram& p) { return moved_bounds(p, -1); }},
      {"a guarded read is off by one", "guard", moved_guarded_reads},
      {"a result is stored one too far", "guard", moved_writes},
      {"all blocks store in one place", "guard", partials_in_one_place},
      {"a tail is not zeroed", "guard",
       [](const TileProgram& p) {
         return at_filled_copies(p, [](Copy& copy) { copy.keep = true; });
       }},
      {"a tail is filled with infinities", "guard",
       [](const TileProgram& p) {
         return at_filled_copies(
             p, [](Copy& copy) { copy.fill = std::numeric_limits<double>::infinity(); });
       },
       "nobody reads what the last chunk adds"},
      {"a mask is off by one", "guard", moved_masks, "nobody reads what the last chunk adds"},
  };
}

}  // namespace krait::mutants
