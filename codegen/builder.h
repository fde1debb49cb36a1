// What every part of build shares: variables, buffers and accesses of the program in the making.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/build.h"

namespace krait {

/// Where statements of a kernel go: level 0 stands outside of all loops, level d inside of the
/// first d. Each level has a part before and one after the next loop.
struct Place {
  int level = 0;
  bool after = false;
  bool operator==(const Place&) const = default;
};

class Builder {
 public:
  Builder(const Plan& plan, const PlannedKernel& kernel);
  /// For a loop inside of the first `levels` loops of `outer`, over the positions of a run of `run`
  /// that come before the one at which `outer` stands on the grid axis `axis`.
  Builder(Builder& outer, const PlannedKernel& kernel, int levels, const std::string& axis,
          bool reverse, std::int64_t run);

  const Graph& graph() const { return plan_.graph; }
  const Plan& plan() const { return plan_; }
  const PlannedKernel& kernel() const { return kernel_; }
  TileProgram& program() { return built_->program; }
  const TileProgram& program() const { return built_->program; }

  /// Declares the grid and the loops of a mapping, and the numbers that follow from them.
  void map_axes(const std::vector<AxisMapping>& mapping, const std::vector<Digit>& digits = {});
  bool is_mapped(const std::string& axis) const { return mapped_.count(axis) != 0; }
  /// Number of loops around a value with these axes: 0, or one more than the innermost it varies
  /// in.
  int level_of(const AxisNames& axes) const;
  /// Number of the loop over the axis, -1 where it is none.
  int loop_of(const std::string& axis) const;
  const std::vector<AxisMapping>& loops() const { return loops_; }
  /// The variable of an axis: of its grid or loop, or one of kind tile.
  int var(const std::string& axis);
  int size_var(const Extent& extent);
  AxisNames tile_axes(const AxisNames& axes) const;
  std::vector<int> vars(const AxisNames& axes);
  /// An axis is a grid axis in parts: the variable that counts the parts.
  int part_var(const std::string& axis) const { return part_vars_.at(axis); }
  bool has_parts(const std::string& axis) const { return part_vars_.count(axis) != 0; }

  Index index(const AxisIndex& affine);
  /// A global buffer that shows the object as the view does, and the access through it.
  Access access(const View& view, bool written);
  /// The same buffer, its indices left to the caller.
  Access shape_of(const View& view, bool written);
  /// The object itself, one index per dim.
  Access access(int object, const std::vector<Index>& index, bool written);
  /// A new buffer on chip over the tile axes of a value.
  int tile(const std::string& name, DType dtype, const AxisNames& axes);
  /// A buffer that shows a part of another one on chip: the view has a dim for each of its dims,
  /// and each of `axes` in at most one of them.
  int shown(const std::string& name, int buffer, const View& view, const AxisNames& axes);
  /// The element of such a buffer that the variables of its axes name.
  Access access(int buffer);

  void add(Place place, Statement statement) { body(place).push_back(std::move(statement)); }
  std::vector<Statement>& body(Place place) {
    return (place.after ? after_ : before_)[place.level];
  }
  /// Takes over what a builder for a loop inside has made, before the next loop of its own.
  void take(Builder inner);
  /// Nests the loops and hands the program over.
  BuiltKernel finish();

 private:
  /// The statements from this level on, its loops around those inside.
  std::vector<Statement> nested(std::size_t from);
  int pointer_of(int object);
  Buffer global(int object, bool written);

  const Plan& plan_;
  const PlannedKernel& kernel_;
  std::shared_ptr<BuiltKernel> built_;
  std::map<std::string, int> mapped_;     // axis to grid or loop variable
  std::map<std::string, int> part_vars_;  // axis to the variable of its parts
  std::map<std::string, int> tile_vars_;
  std::vector<AxisMapping> loops_;
  std::vector<std::vector<Statement>> before_, after_;
  int until_ = -1;        // of the innermost loop: the variable before which it ends
  std::int64_t run_ = 1;  // and the positions of its run
};

}  // namespace krait
