// Layout: how the points of a tile lie on the threads of a block.
//
// A point is found from a register number, a lane (0 to 31) and a warp. Each bit of the lane and of
// the warp moves along one dimension by a stride, or is a replica: threads that differ in it alone
// hold the same points. Registers are nested loops, each of so many positions a stride apart. All
// of these add up without carries where strides are powers of two, so that a coordinate is the OR
// of what the bits give: the layouts of fragments of tensor core instructions are of this kind too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace krait {

/// Who holds a point; where there are replicas, the lowest.
struct Holder {
  std::int64_t reg = 0;
  int lane = 0, warp = 0;
};

struct Layout {
  struct Bit {
    int dim = -1;  // -1: a replica
    std::int64_t stride = 0;
    bool operator==(const Bit&) const = default;
  };
  struct Loop {
    int dim = 0;
    std::int64_t stride = 1, count = 1;
    bool operator==(const Loop&) const = default;
  };
  /// Of the tile. Points at or past an extent are padding: no one computes them.
  std::vector<std::int64_t> extents;
  std::vector<Loop> registers;  // innermost first
  std::vector<Bit> lanes;       // five, lowest first
  std::vector<Bit> warps;       // as many as the number of warps has bits

  bool operator==(const Layout&) const = default;

  std::int64_t registers_per_thread() const;
  /// Positions along registers[0].dim that a thread holds side by side and that one access may
  /// take at once: 2 or 4, none of them padding; else 1.
  int neighbours() const;
  /// The register loop that gives a thread 2 or 4 positions side by side along the dimension, none
  /// of them padding; -1: none.
  int side_by_side(int dim) const;
  std::vector<std::int64_t> point(std::int64_t reg, int lane, int warp) const;
  /// The way back from `point`; none where nobody holds it.
  std::optional<Holder> holder(const std::vector<std::int64_t>& point) const;
  /// Every point of the tile is held by somebody.
  bool surjective() const;
  /// Past the last coordinate that some thread stands at along the dimension.
  std::int64_t span(int dim) const;
  bool padded(int dim) const { return span(dim) > extents[static_cast<std::size_t>(dim)]; }
  /// Bits of lanes and of warps that are replicas.
  std::uint32_t replica_lanes() const;
  std::uint32_t replica_warps() const;
  bool has_replicas() const { return replica_lanes() != 0 || replica_warps() != 0; }
  /// Every point of the tile belongs to a thread, and to one register of one set of replicas only.
  bool covers_once() const;
};

/// "q 16x8 ... " for comments and dumps; `names`: of the dimensions.
std::string to_text(const Layout& layout, const std::vector<std::string>& names);

/// An extent as `odd` times a power of two that threads can share out: 96 is 3 x 32, 24 is 3 x 8;
/// others are padded to the next power of two (20 to 32).
struct PowerSplit {
  std::int64_t odd = 1, power = 1;
};
PowerSplit split_extent(std::int64_t extent);

/// Deals the points of a tile out. `order`: the dimensions, the one that changes fastest first.
/// First `vector` positions of order[0] (a power of two that divides its power) in registers, then
/// lanes, then warps (a power of two), and what is left in registers. `first`: loops that every
/// thread keeps for itself before lanes are dealt out, innermost first, by dimension and count.
/// `within_warp`: dimensions that warps do not share out.
Layout deal(const std::vector<std::int64_t>& extents, const std::vector<int>& order,
            std::int64_t vector, int warps, const std::vector<Layout::Loop>& first = {},
            const std::vector<int>& within_warp = {});

/// The layout of another tile, in which dimension d of this one is number dims[d]; `extents`: of
/// the other. With the way back for `dims` it gives the layout back.
Layout compose(const Layout& layout, std::vector<std::int64_t> extents,
               const std::vector<int>& dims);

// ----------------------------------------------------------------------------- shared memory
/// Wavefronts of one access of a warp to shared memory: the most different words in one of 32 banks
/// of four bytes, summed over the half-warps (8 bytes a lane) or quarter-warps (16) that are served
/// together. addresses: a byte a lane; below 0: the lane has no access. Without conflicts it is 1,
/// 2 or 4.
int wavefronts(const std::vector<std::int64_t>& addresses, int bytes);

/// Moves 16-byte pieces of rows about, so that rows that start in one bank do not meet there: in an
/// offset, the `bits` bits from `from` up are XORed into those from `to` up. Its own inverse.
struct Swizzle {
  int bits = 0, from = 0, to = 0;
  std::int64_t operator()(std::int64_t offset) const {
    const std::int64_t mask = (std::int64_t{1} << bits) - 1;
    return offset ^ (offset >> from & mask) << to;
  }
};

// ------------------------------------------------------------------------------- tensor cores
/// Operands of mma.sync m16n8k16 of 16-bit floats, as the PTX manual lays them out: A is (row 16, k
/// 16), B (k 16, column 8), the accumulator (row 16, column 8). Two accumulators side by side are
/// register for register an A.
enum class MmaPart : std::uint8_t { a, b, accumulator };
Layout mma_fragment(MmaPart part);
/// The layout again and again over a larger tile, in registers: along order[0] first.
Layout repeated(Layout layout, const std::vector<std::int64_t>& extents,
                const std::vector<int>& order);

/// Whether ldmatrix loads a two-dimensional tile of 16-bit elements in that layout, eight by eight
/// at a time, from rows that are contiguous along dimension `contiguous`: as it is, or with .trans.
enum class Ldmatrix : std::uint8_t { no, plain, transposed };
Ldmatrix can_ldmatrix(const Layout& layout, int contiguous);

}  // namespace krait
