#include "codegen/tile/range.h"

#include "dsl/error.h"

namespace krait {

void SizeSum::add(const Extent& extent, std::int64_t factor) {
  if (extent.is_constant()) {
    constant += factor * extent.offset;
    return;
  }
  // An undivided size is its symbol and a number, so that t + 3 and t differ by 3.
  const bool whole = extent.divisor == 1;
  if (whole) constant += factor * extent.offset;
  auto& count = atoms[{extent.symbol, {whole ? 0 : extent.offset, extent.divisor}}];
  count += factor;
}

bool SizeSum::provably_nonnegative() const {
  for (const auto& [atom, factor] : atoms)
    if (factor < 0) return false;
  return constant >= 0;
}

IndexRange range_of(const TileProgram& program, const Index& index) {
  IndexRange range;
  range.low.constant = range.high.constant = index.constant;
  for (const auto& [var, factor] : index.terms) {
    const Var& variable = program.vars.at(var);
    if (variable.kind == VarKind::size) {
      range.low.add(variable.extent, factor);
      range.high.add(variable.extent, factor);
      continue;
    }
    SizeSum& moved = factor > 0 ? range.high : range.low;
    moved.add(variable.extent, factor);
    moved.constant -= factor;
  }
  return range;
}

Leaves leaves(const TileProgram& program, const Access& access, int dim) {
  const Index& index = access.index.at(dim);
  const Extent& extent = program.buffers.at(access.buffer).dims.at(dim).extent;
  std::int64_t low = index.constant, high = index.constant;
  bool known = extent.is_constant();
  for (const auto& [var, factor] : index.terms) {
    const Var& variable = program.vars.at(var);
    known = known && variable.kind != VarKind::size && variable.extent.is_constant();
    (factor > 0 ? high : low) += factor * (variable.extent.offset - 1);
  }
  if (known) return {low < 0, high >= extent.offset};
  IndexRange range = range_of(program, index);
  SizeSum room;  // extent - 1 - high
  room.add(extent, 1);
  room.constant -= 1 + range.high.constant;
  for (const auto& [atom, factor] : range.high.atoms) room.atoms[atom] -= factor;
  return {!range.low.provably_nonnegative(), !room.provably_nonnegative()};
}

}  // namespace krait
