// Plan: the kernels of one pass, what each reads, computes and writes, and where it stands in
// memory. The one truth: sizes, legality and placement are judged on it, code is generated from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dsl/graph.h"
#include "schedules/schedule.h"

namespace krait {

// ------------------------------------------------------------------------------------------ memory
/// A tensor in memory. Inputs and outputs belong to the caller, who may give any strides; a
/// temporary is dense in the order of its dims and stands in the arena.
struct MemoryObject {
  enum class Kind : std::uint8_t { input, output, temporary };
  Kind kind = Kind::temporary;
  std::string name;
  DType dtype = DType::f32;
  std::vector<Axis> dims;  // storage order, outermost first
  /// Stride of each dim in elements as compiled in, 0 where it is given at launch: compiled in are
  /// the dims of constant size with only such inside them.
  std::vector<std::int64_t> strides;
  /// Of a temporary: the first kernel that writes it and the last that reads it.
  int first_kernel = -1, last_kernel = -1;

  /// Elements times the size of one: the only size rule.
  std::int64_t bytes(const Sizes& sizes) const;
};

/// constant + sum of factor * position along an axis of the value (or a digit of it) + sum of
/// extents.
struct AxisIndex {
  std::int64_t constant = 0;
  std::vector<std::pair<std::string, std::int64_t>> terms;  // axis, factor
  std::vector<std::pair<Extent, std::int64_t>> sizes;       // run-time sizes, factor
};

/// How a value lies in an object: an index for each dimension of the view. A dimension of a view is
/// one dimension of the object or adjacent ones merged (which asks the object to be dense there),
/// or none (first is -1): it moves nowhere and only says which positions count. A position out of
/// bounds reads `fill`, or leaves what an earlier view of the same value gave
/// (`keep`); it is not written.
struct View {
  struct Dim {
    int first = 0, last = 0;  // dims of the object, inclusive
    Extent extent;
    AxisIndex index;
  };
  int object = -1;
  std::vector<Dim> dims;
  double fill = 0;
  bool keep = false;
};

// ----------------------------------------------------------------------------------------- kernels
/// grid: every position is a grid point. serial: a loop inside. blocked: a grid of `blocks` parts,
/// and a loop over the positions of a part inside. Every axis that is not mapped is a tile axis:
/// its positions are on chip together.
struct AxisMapping {
  enum class Kind : std::uint8_t { grid, serial, blocked };
  std::string axis;
  Kind kind = Kind::grid;
  bool reverse = false;     // of the loop
  std::int64_t blocks = 1;  // blocked
  std::string block_axis;   // blocked: the axis along which the parts are counted
};

/// A sum over grid axes, kept per grid point until a second stage: `object` has a dimension for
/// each of `over` (grid axes, blocks of a blocked axis) and then the axes of the value.
struct Partial {
  Value value;
  int object = -1;
  AxisNames over;
};

/// A number that goes with the position along a mapped axis, counted from the end where `reverse`:
/// into which run of `base` positions it falls, or as the how manyth of them (`rest`). Views of the
/// kernel may be indexed by `name`.
struct Digit {
  std::string name, axis;
  std::int64_t base = 1;
  bool rest = false, reverse = false;
};

/// A state that a kernel needs at its own position of a grid axis, of which memory has every
/// `every`th: what enters `scan` there. The load of that value gives the last one kept before, and
/// a loop runs on from it; it computes `nodes`, what the scan runs over, in order, at each position
/// between, from `loads`.
struct Remade {
  int scan = -1;
  std::int64_t every = 1;
  std::vector<int> nodes;
  std::map<Value, std::vector<View>> loads;
};

/// fused: a tile program. product: a GEMM, a Contract and perhaps a bias. finish: adds up
/// partials in the order of their axes, or takes the largest; partials of one kernel that differ in
/// nothing but their values.
struct PlannedKernel {
  enum class Kind : std::uint8_t { fused, product, finish };
  Kind kind = Kind::fused;
  std::string name;
  bool rows = false;  // fused, with neither products nor anything that runs along a loop
  /// Computed here, in order. A product has one, or the Contract and the Map that adds a bias.
  std::vector<int> nodes;
  std::vector<AxisMapping> mapping;  // grid first, then loops, outermost first
  std::vector<Digit> digits;
  std::vector<Remade> remade;
  /// Values read from memory: one view, or several that complete each other, in order (the first
  /// fills, the others keep). Values written to memory; one may be written to several places.
  std::map<Value, std::vector<View>> loads;
  std::vector<std::pair<Value, View>> stores;
  /// fused: written instead of the value. finish: read.
  std::vector<Partial> partials;
};

/// Calls f(value, views) for everything that the kernel reads, partials aside.
template <typename Function>
void for_each_load(const PlannedKernel& kernel, const Function& f) {
  for (const auto& [value, views] : kernel.loads) f(value, views);
  for (const Remade& remade : kernel.remade)
    for (const auto& [value, views] : remade.loads) f(value, views);
}

struct Plan {
  std::string name;  // of the layer, before the names of files; "" without
  Pass pass = Pass::forward;
  Schedule schedule;
  Graph graph;      // the rewritten graph that the kernels' nodes number
  AxisNames tiles;  // of the graph: those that count tiles of a state
  std::vector<MemoryObject> objects;
  std::vector<PlannedKernel> kernels;
  int find_object(MemoryObject::Kind kind, const std::string& name) const;  // -1: none
};

/// Whether partials of the value are combined by the largest; by their sum else.
bool is_maximum(const Graph& graph, Value value);

/// Readable text, stable.
std::string to_text(const Plan& plan);
/// Every value is computed before it is read, objects' lifetimes hold, views fit, no axis is mapped
/// twice; throws InternalError.
void verify(const Plan& plan);

/// Offsets of the temporaries in one arena, by lifetime, 64-byte aligned.
struct Arena {
  std::vector<std::int64_t> offset;  // per object, -1 where it is no temporary
  std::int64_t bytes = 0;
};
Arena arena(const Plan& plan, const Sizes& sizes);

}  // namespace krait
