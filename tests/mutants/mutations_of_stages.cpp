// Copies that run a turn ahead: their groups, waits, slots and barriers.
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
    places.push_back({described(program, number, statement), [=](TileProgram& mutant) {
                        const Standing standing = standing_of(mutant, number);
                        standing.body->erase(standing.body->begin() + standing.at);
                      }});
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

/// What follows a wait and its barrier comes before both: other threads may still read the slot.
Places early_prefetches(const TileProgram& program) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    const Prefetch* prefetch = std::get_if<Prefetch>(&statement);
    if (prefetch == nullptr || prefetch->first) return;
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
