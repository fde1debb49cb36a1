// How a product is blocked into registers on the host: plain values, no rewriting.
#pragma once

#include <cstdint>

#include "codegen/llvm/vector_target.h"
#include "codegen/tile/tile.h"

namespace krait {

/// A block of the result that stays in registers during the sum: rows x (vectors of columns).
struct MmaBlocking {
  int rows = 1;
  int vectors = 1;
};

/// The cheapest block by a model of one core: two fused multiply-adds and two loads a cycle, four
/// cycles from one addition to the next into the same register. `lanes` elements a vector.
MmaBlocking choose_blocking(std::int64_t rows, std::int64_t columns, std::int64_t sum, int lanes,
                            const VectorTarget& target);

/// The variable that vectors run along.
struct MmaAxis {
  int var = -1;
  bool in_rows = false;  // a row variable: left and right change roles
  bool packed = false;   // the operand is contiguous along it as it stands
  double cost = 0;       // in vector instructions
};

/// Chooses it among rows and columns. An operand that is not contiguous costs its transposition
/// when `may_pack`, and rules the variable out otherwise; a result that is not costs its strided
/// loads and stores. var is -1 where nothing fits.
MmaAxis choose_axis(const TileProgram& program, const Mma& mma, const VectorTarget& target,
                    bool may_pack);

}  // namespace krait
