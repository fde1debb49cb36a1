// Copies that run a turn ahead: their groups, waits, slots and barriers.
#include <algorithm>

#include "codegen/tile/access.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using Places = std::vector<Place>;

/// A place for every statement of kind S that `wanted` holds of, where it is erased.
template <typename S, typename Wanted>
Places erased(const TileProgram& program, const Wanted& wanted) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const S* s = std::get_if<S>(&statement);
    if (s == nullptr || !wanted(*s)) return;
    places.push_back(erasure(program, number, statement));
  });
  return places;
}

const auto any = [](const auto&) { return true; };

Places early_waits(const TileProgram& program) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    if (!std::holds_alternative<Wait>(statement)) return;
    places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                        ++std::get<Wait>(statement_of(mutant, number)).pending;
                      }});
  });
  return places;
}

/// Whether the loop around the statement has a barrier behind the last that reads a slot of it.
bool ends_in_barrier(const TileProgram& program, const Statement& inside) {
  bool ends = false;
  visit_statements(program.body, [&](const Statement& statement) {
    const For* loop = std::get_if<For>(&statement);
    if (loop == nullptr) return;
    const auto is_it = [&](const Statement& s) { return &s == &inside; };
    if (std::none_of(loop->body.begin(), loop->body.end(), is_it)) return;
    for (const Statement& s : loop->body) {
      ends = ends || std::holds_alternative<Barrier>(s);
      visit_statements({s}, [&](const Statement& reader) {
        for_each_access(reader, [&](const Access& access, Use use) {
          const int memory = memory_of(program, access.buffer);
          if (use != Use::write && program.buffers[static_cast<std::size_t>(memory)].stages > 1)
            ends = false;
        });
      });
    }
  });
  return ends;
}

/// What follows a wait and its barrier comes before both: other threads may still read the slot,
/// in loops of more turns than slots.
Places early_prefetches(const TileProgram& program) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const Prefetch* prefetch = std::get_if<Prefetch>(&statement);
    if (prefetch == nullptr || prefetch->first) return;
    const Extent& turns = program.vars[static_cast<std::size_t>(prefetch->var)].extent;
    if ((turns.is_constant() && turns.offset <= 2) || ends_in_barrier(program, statement)) return;
    places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                        const Standing standing = standing_of(mutant, number);
                        const Prefetch moved = std::get<Prefetch>(
                            (*standing.body)[static_cast<std::size_t>(standing.at)]);
                        standing.body->erase(standing.body->begin() + standing.at);
                        standing.body->insert(standing.body->begin(), moved);
                      }});
  });
  return places;
}

Places lost_slots(const TileProgram& program) {
  Places places;
  for (std::size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].stages > 1)
      places.push_back({"buffer " + program.buffers[i].name,
                        [=](TileProgram& mutant) { mutant.buffers[i].stages = 1; }});
  return places;
}

}  // namespace

std::vector<Mutation> mutations_of_stages() {
  return {
      {"a wait is forgotten", "sync", [](const TileProgram& p) { return erased<Wait>(p, any); }},
      {"a wait is early", "sync", early_waits},
      {"a commit is forgotten", "sync",
       [](const TileProgram& p) { return erased<Commit>(p, any); }},
      {"a prefetch of the first turn is forgotten", "sync",
       [](const TileProgram& p) {
         return erased<Prefetch>(p, [](const Prefetch& s) { return s.first; });
       }},
      {"a prefetch of the next turn is forgotten", "sync",
       [](const TileProgram& p) {
         return erased<Prefetch>(p, [](const Prefetch& s) { return !s.first; });
       }},
      {"a slot is overwritten while it is read", "sync", early_prefetches},
      {"a buffer has one slot for two turns", "stage", lost_slots},
  };
}

}  // namespace krait::mutants
