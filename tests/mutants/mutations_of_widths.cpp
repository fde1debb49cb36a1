// Accesses of several elements at once, where something says that they may not be.
#include "codegen/tile/access.h"
#include "tests/mutants/mutation.h"

namespace krait::mutants {
namespace {

using Places = std::vector<Place>;

/// A place for every access that `wanted` holds of, where f changes it or its buffer.
Places at_accesses(const TileProgram& program, const std::function<bool(const Access&)>& wanted,
                   const std::function<void(TileProgram&, Access&)>& f) {
  Places places;
  for_each_numbered_access(
      program, [&](const Access& access, Use) { return wanted(access); },
      [&](const NumberedAccess& at, const Access&) {
        places.push_back({at.where, [=](TileProgram& mutant) { f(mutant, at.in(mutant)); }});
      });
  return places;
}

bool is_wide(const Access& access) { return access.wide.elements > 1; }

}  // namespace

std::vector<Mutation> mutations_of_widths() {
  return {
      {"a wide access begins one element on", "vectorize",
       [](const TileProgram& p) {
         return at_accesses(
             p,
             [&](const Access& access) {
               return is_wide(access) &&
                      p.buffers[static_cast<std::size_t>(access.buffer)].space == Space::shared;
             },
             [](TileProgram& mutant, Access& access) {
               const int root = memory_of(mutant, access.buffer);
               mutant.buffers[static_cast<std::size_t>(root)].scratch_offset += 4;
             });
       }},
      {"an address is not tested for a wide access", "vectorize",
       [](const TileProgram& p) {
         return at_accesses(
             p, [](const Access& access) { return access.wide.address_tested; },
             [](TileProgram&, Access& access) { access.wide.address_tested = false; });
       }},
      {"a stride is not tested for a wide access", "vectorize",
       [](const TileProgram& p) {
         return at_accesses(
             p, [](const Access& access) { return !access.wide.strides_tested.empty(); },
             [](TileProgram&, Access& access) { access.wide.strides_tested.pop_back(); });
       }},
      {"an access is twice as wide", "vectorize",
       [](const TileProgram& p) {
         return at_accesses(p, is_wide,
                            [](TileProgram&, Access& access) { access.wide.elements *= 2; });
       }},
      {"a wide access runs along another variable", "vectorize",
       [](const TileProgram& p) {
         return at_accesses(
             p,
             [](const Access& access) {
               return is_wide(access) && access.index.size() > 1 &&
                      access.index[access.index.size() - 2].terms.size() == 1;
             },
             [](TileProgram&, Access& access) {
               access.wide.var = access.index[access.index.size() - 2].terms[0].var;
             });
       }},
  };
}

}  // namespace krait::mutants
