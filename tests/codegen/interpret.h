// A plain interpreter of tile programs over doubles: what a program means, statement by statement.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/tile/tile.h"
#include "dsl/axis.h"

namespace krait::test {

/// Memory by pointer number, as doubles; sizes of the symbols.
struct World {
  Sizes sizes;
  std::vector<std::vector<double>> pointers;
  /// Strides that are launch arguments: (pointer, dim) to elements.
  std::map<std::pair<int, int>, std::int64_t> strides;

  std::vector<std::int64_t> arguments(const TileProgram& program) const;
  std::int64_t grid_points(const TileProgram& program) const;
};

/// Runs every grid point. Numbers stored to a buffer are rounded to its dtype when `round`; sums
/// and expressions are in double. Scratch starts as NaN for every grid point.
void interpret(const TileProgram& program, World& world, bool round = true);

/// The nearest value of that dtype.
double rounded(double value, DType dtype);

}  // namespace krait::test
