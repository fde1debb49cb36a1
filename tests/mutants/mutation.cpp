#include "tests/mutants/mutation.h"

#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait::mutants {
namespace {

/// Counts down to the statement that is wanted.
Standing find(std::vector<Statement>& body, int& left) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (left-- == 0) return {&body, static_cast<std::ptrdiff_t>(i)};
    if (auto* inside = body_of(body[i]))
      if (const Standing found = find(*inside, left); found.body != nullptr) return found;
  }
  return {};
}

}  // namespace

Standing standing_of(TileProgram& program, int number) {
  int left = number;
  const Standing found = find(program.body, left);
  KRAIT_ASSERT(found.body != nullptr, "there is no statement ", number);
  return found;
}

Statement& statement_of(TileProgram& program, int number) {
  const Standing standing = standing_of(program, number);
  return (*standing.body)[static_cast<std::size_t>(standing.at)];
}

void for_each_numbered(const TileProgram& program,
                       const std::function<void(int, const Statement&)>& f) {
  int number = 0;
  visit_statements(program.body, [&](const Statement& statement) { f(number++, statement); });
}

Access& access_of(Statement& statement, int number) {
  Access* found = nullptr;
  int at = 0;
  for_each_access(statement, [&](Access& access, Use) {
    if (at++ == number) found = &access;
  });
  KRAIT_ASSERT(found != nullptr, "there is no access ", number);
  return *found;
}

Access& NumberedAccess::in(TileProgram& program) const {
  return access_of(statement_of(program, statement), number);
}

void for_each_numbered_access(const TileProgram& program,
                              const std::function<bool(const Access&, Use)>& wanted,
                              const std::function<void(const NumberedAccess&, const Access&)>& f) {
  for_each_numbered(program, [&](int number, const Statement& statement) {
    int at = 0;
    for_each_access(statement, [&](const Access& access, Use use) {
      const int access_number = at++;
      if (wanted(access, use))
        f({number, access_number, described(program, number, statement)}, access);
    });
  });
}

std::string described(const TileProgram& program, int number, const Statement& statement) {
  std::string line = to_text(program, statement);
  if (std::holds_alternative<MapTile>(statement) || std::holds_alternative<ReduceTile>(statement)) {
    const std::size_t first = line.find('\n');
    line = line.substr(0, first) + line.substr(first + 1);
  }
  return std::to_string(number) + ": " + line.substr(0, line.find('\n'));
}

Place erasure(const TileProgram& program, int number, const Statement& statement) {
  return {described(program, number, statement), [number](TileProgram& mutant) {
            const Standing standing = standing_of(mutant, number);
            standing.body->erase(standing.body->begin() + standing.at);
          }};
}

std::vector<Mutation> all_mutations() {
  std::vector<Mutation> all;
  for (const auto& some : {mutations_of_guards(), mutations_of_values(), mutations_of_layouts(),
                           mutations_of_barriers(), mutations_of_memory(), mutations_of_stages(),
                           mutations_of_widths()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace krait::mutants
