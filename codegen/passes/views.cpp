// Views on a GPU: what shows a part of another buffer is read and written as that part.
//
// What: an access to a view becomes one to the memory that it shows, with the positions along the
// dimensions that the view leaves out, or starts at, in its indices; so that passes see who touches
// what, and a view does not keep its memory from standing in registers.
// Limits: a view runs along dimensions of the memory, stride by stride; others stay as they are.
#include <algorithm>
#include <numeric>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

/// The access as one of the memory's own buffer; none where the view is more than a part of it.
std::optional<Access> seen_through(const TileProgram& program, const Access& access) {
  const Buffer& view = program.buffers[static_cast<std::size_t>(access.buffer)];
  const int number = memory_of(program, access.buffer);
  const Buffer& memory = program.buffers[static_cast<std::size_t>(number)];
  if (!access.guarded.empty() || view.dtype != memory.dtype) return std::nullopt;
  Access seen{number, std::vector<Index>(memory.dims.size()), {}};
  std::vector<std::int64_t> taken(memory.dims.size(), 0);  // positions that the view runs along
  for (std::size_t d = 0; d < view.dims.size(); ++d) {
    const Dim& dim = view.dims[d];
    if (dim.extent == Extent::constant(1)) continue;
    std::size_t to = 0;
    while (to < memory.dims.size() &&
           (taken[to] > 0 || memory.dims[to].extent == Extent::constant(1) ||
            !(memory.dims[to].stride == dim.stride)))
      ++to;
    if (to == memory.dims.size()) return std::nullopt;
    taken[to] = dim.extent.offset;
    seen.index[to] = access.index[d];
  }
  // Where it starts, the largest steps first.
  std::vector<std::size_t> order(memory.dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return memory.dims[a].stride.constant > memory.dims[b].stride.constant;
  });
  std::int64_t rest = memory_offset(program, access.buffer);
  for (const std::size_t d : order) {
    const Dim& dim = memory.dims[d];
    const std::int64_t most = dim.extent.offset - std::max<std::int64_t>(1, taken[d]);
    const std::int64_t start = std::min(most, rest / dim.stride.constant);
    if (start < 0) return std::nullopt;
    rest -= start * dim.stride.constant;
    seen.index[d].constant += start;
  }
  return rest == 0 ? std::optional(seen) : std::nullopt;
}

void see_through(const TileProgram& program, std::vector<Statement>& body) {
  for (Statement& statement : body) {
    for_each_access(statement, [&](Access& access, Use) {
      if (program.buffers[static_cast<std::size_t>(access.buffer)].alias_of < 0) return;
      if (const std::optional<Access> seen = seen_through(program, access)) access = *seen;
    });
    if (auto* inside = body_of(statement)) see_through(program, *inside);
  }
}

}  // namespace

void see_through_views(TileProgram& program) {
  see_through(program, program.body);
  drop_buffers(program);
}

}  // namespace krait
