// What an affine index can be, by the ranges of its variables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "codegen/tile/tile.h"

namespace krait {

/// constant + sum of factor * atom, where an atom is a symbol of the graph, or ceil((symbol +
/// offset) / divisor): numbers that are known only when the program runs, none below 0.
struct SizeSum {
  std::int64_t constant = 0;
  std::map<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>, std::int64_t> atoms;

  void add(const Extent& extent, std::int64_t factor);
  /// True only if it is >= 0 whatever the sizes.
  bool provably_nonnegative() const;
};

/// Smallest and largest value of an index; of a loop or tile variable all its values are taken.
struct IndexRange {
  SizeSum low, high;
};
IndexRange range_of(const TileProgram& program, const Index& index);

/// Whether dimension `dim` of an access can leave [0, extent) on either side.
struct Leaves {
  bool below = false, above = false;
  bool any() const { return below || above; }
};
Leaves leaves(const TileProgram& program, const Access& access, int dim);

}  // namespace krait
