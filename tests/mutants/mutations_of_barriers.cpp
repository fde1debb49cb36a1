// Barriers that are missing, early or late.
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using Places = std::vector<Place>;

/// The statements around a barrier, as text.
std::string around(const TileProgram& program, int number) {
  TileProgram copy = program;
  const Standing standing = standing_of(copy, number);
  const auto at = static_cast<std::size_t>(standing.at);
  const auto line = [&](std::size_t i) {
    const std::string all = to_text(copy, (*standing.body)[i]);
    return all.substr(0, all.find('\n'));
  };
  return "before " +
         (at + 1 < standing.body->size() ? line(at + 1) : std::string("the end of the turn"));
}

Places at_barriers(const TileProgram& program,
                   const std::function<bool(std::vector<Statement>&, std::ptrdiff_t)>& f) {
  Places places;
  for_each_numbered(program, [&](int number, const Statement& statement) {
    if (!std::holds_alternative<Barrier>(statement)) return;
    TileProgram tried = program;
    const Standing standing = standing_of(tried, number);
    if (!f(*standing.body, standing.at)) return;
    places.push_back({around(program, number), [=](TileProgram& mutant) {
                        const Standing found = standing_of(mutant, number);
                        f(*found.body, found.at);
                      }});
  });
  return places;
}

bool drop(std::vector<Statement>& body, std::ptrdiff_t at) {
  body.erase(body.begin() + at);
  return true;
}

/// Changes places with a neighbour that is no loop: a barrier has nothing to say of what moved.
bool change_places(std::vector<Statement>& body, std::ptrdiff_t at, std::ptrdiff_t with) {
  if (with < 0 || with >= static_cast<std::ptrdiff_t>(body.size())) return false;
  const Statement& other = body[static_cast<std::size_t>(with)];
  if (std::holds_alternative<For>(other) || std::holds_alternative<Barrier>(other)) return false;
  body.erase(body.begin() + at);
  body.insert(body.begin() + with, Barrier{});
  return true;
}

}  // namespace

std::vector<Mutation> mutations_of_barriers() {
  return {
      {"a barrier is dropped", "sync", [](const TileProgram& p) { return at_barriers(p, drop); }},
      {"a barrier is late", "sync",
       [](const TileProgram& p) {
         return at_barriers(p, [](std::vector<Statement>& body, std::ptrdiff_t at) {
           return change_places(body, at, at + 1);
         });
       },
       "what changes places with it touches other memory"},
      {"a barrier is early", "sync",
       [](const TileProgram& p) {
         return at_barriers(p, [](std::vector<Statement>& body, std::ptrdiff_t at) {
           return change_places(body, at, at - 1);
         });
       },
       "what changes places with it touches other memory"},
      {"a barrier is dropped, memory is shared", "smem",
       [](const TileProgram& p) { return at_barriers(p, drop); }},
  };
}

}  // namespace krait::mutants
