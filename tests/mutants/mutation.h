// Mutations: small faults that a pass of a GPU could have, as edits of a tile program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/tile/access.h"
#include "codegen/tile/tile.h"

namespace krait::mutants {

/// One place of a program where a mutation can be made.
struct Place {
  std::string where;
  std::function<void(TileProgram&)> apply;
};

struct Mutation {
  std::string name;
  std::string after;  // the pass that is followed, by name
  std::function<std::vector<Place>(const TileProgram&)> places;
  /// Why some places change nothing that could be seen; "" where every mutant must be caught.
  std::string equivalent = "";
};

/// Of all files of mutations, in the order of the passes they follow.
std::vector<Mutation> all_mutations();

std::vector<Mutation> mutations_of_guards();    // bounds, fills and masks of global memory
std::vector<Mutation> mutations_of_values();    // loops, sums, running sums, carried states
std::vector<Mutation> mutations_of_layouts();   // which thread holds what
std::vector<Mutation> mutations_of_barriers();  // their places
std::vector<Mutation> mutations_of_memory();    // strides and places of shared memory
std::vector<Mutation> mutations_of_stages();    // copies that run ahead
std::vector<Mutation> mutations_of_widths();    // accesses of several elements at once

// ------------------------------------------------------------------------- statements by number
/// Statements are numbered outer ones first, as visit_statements meets them.
Statement& statement_of(TileProgram& program, int number);
/// Calls f(number, statement) for all of them.
void for_each_numbered(const TileProgram& program,
                       const std::function<void(int, const Statement&)>& f);
/// The list that the statement stands in, and where.
struct Standing {
  std::vector<Statement>* body = nullptr;
  std::ptrdiff_t at = 0;
};
Standing standing_of(TileProgram& program, int number);

/// The place where the statement is left out.
Place erasure(const TileProgram& program, int number, const Statement& statement);

/// Accesses of a statement by number, in the order of for_each_access.
Access& access_of(Statement& statement, int number);

/// One access of a program, by the numbers of its statement and in it.
struct NumberedAccess {
  int statement = 0, number = 0;
  std::string where;  // as `described` tells
  Access& in(TileProgram& program) const;
};
/// Calls f for all accesses for which `wanted` holds.
void for_each_numbered_access(const TileProgram& program,
                              const std::function<bool(const Access&, Use)>& wanted,
                              const std::function<void(const NumberedAccess&, const Access&)>& f);

/// "3: fill (q:16) ..."; the first line of a statement's text.
std::string described(const TileProgram& program, int number, const Statement& statement);

}  // namespace krait::mutants
