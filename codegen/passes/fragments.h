// What stands in registers: the second half of the pass place.
#pragma once

#include <functional>

#include "codegen/cuda/cuda_target.h"
#include "codegen/tile/tile.h"

namespace krait {

/// The layout that a statement would have if it were alone; products have theirs already.
using OwnLayout = std::function<Layout(const Statement&)>;

/// Makes fragments of buffers whose elements no thread but their own touches, and gives the
/// statements that touch them their layouts; see fragments.cpp.
void make_fragments(TileProgram& program, const CudaTarget& target, const OwnLayout& own);

/// How an access of a statement walks a buffer on chip: each variable from end to end along a
/// dimension of its own, or at one position of a dimension.
struct Walked {
  std::vector<int> dim_of;       // by variable of the statement's layout; -1: along none
  std::vector<std::int64_t> at;  // by dimension: its position, or -1 where a variable walks it
};
/// None where the access is guarded or runs otherwise.
std::optional<Walked> walked(const TileProgram& program, const Access& access,
                             const std::vector<int>& vars);

/// Of a statement's layout what an access sees, along the buffer's dimensions: variables along none
/// of these must stay within a thread. Of a buffer's layout what an access at one position of some
/// dimensions sees. None where several threads, or lanes, would hold one element.
std::optional<Layout> seen_by(const Layout& statement, const Walked& walked, std::size_t rank);
std::optional<Layout> seen_of(const Layout& buffer, const Walked& walked);
/// Registers, lanes and warps alike; extents aside.
bool same_threads(const Layout& a, const Layout& b);

}  // namespace krait
