// Runs a tile program through the host passes, the emitter and the JIT, and beside it through the
// interpreter, on the same random numbers.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "codegen/llvm/vector_target.h"
#include "tests/codegen/interpret.h"

namespace krait::test {

/// Builds programs with few words. Variables and buffers are added to `program`.
struct Build {
  TileProgram program;
  std::vector<std::int64_t> sizes_of_pointers;  // elements
  std::mt19937 random{1};

  explicit Build(std::string name) {
    program.name = std::move(name);
    program.title = "a test";
  }
  int var(std::string name, std::int64_t extent, VarKind kind = VarKind::tile);
  int var(std::string name, Extent extent, VarKind kind);
  /// A tensor whose dimensions have the given extents; dense, in the order of `order` (outermost
  /// first; empty: as given), with `pad` elements more in its innermost but one stride.
  int global(std::string name, DType dtype, std::vector<std::int64_t> extents, bool written,
             std::vector<int> order = {}, std::int64_t pad = 0);
  /// Dense on chip, in the order of `order`.
  int chip(std::string name, DType dtype, std::vector<std::int64_t> extents,
           std::vector<int> order = {});
  Access indexed(int buffer, std::vector<Index> index) const {
    return {buffer, std::move(index), {}};
  }
  Access at(int buffer, std::vector<int> vars) const;
  /// Shuffles 0 .. n - 1.
  std::vector<int> order(int n);
};

/// Fills pointers with random numbers that their dtypes hold; i32: 0 .. 3.
World random_world(const Build& build, const Sizes& sizes = {}, unsigned seed = 1);

/// What one run gave, by pointer.
struct Ran {
  std::vector<std::vector<double>> pointers;
  TileProgram program;  // after the passes
  std::string text;
};
/// Runs on this machine's CPU with vectors of `target`. Fails the test where memory beside a
/// tensor was written, or where a second run differs in a bit.
Ran run_on_host(TileProgram program, const World& world, const VectorTarget& target);

/// Targets that every program is tried with.
std::vector<VectorTarget> targets();

/// run_on_host for every target, and compares each pointer with the interpreter: the largest
/// |difference| / max(1, |expected|) must be at most `tolerance`.
void compare(const Build& build, const World& world, double tolerance);

}  // namespace krait::test
