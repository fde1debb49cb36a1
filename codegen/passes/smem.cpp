// smem: gives buffers in shared memory their rows' distance and their place.
//
// What: a row may be followed by 16, 32 or 64 bytes that nothing uses, if the accesses of the whole
// kernel to the buffer then take fewer wavefronts, counted by their layouts; the fewest bytes win
// where wavefronts are the same. Then buffers that never live at once share bytes (scratch.cpp),
// where time is counted in barriers.
// Why here: after sync, whose barriers are that time; before vectorize, which needs places. Rows
// move by multiples of 16 bytes, so that what may be taken at once stays the same.
// Limits: one distance, that of the last dimension but one; a buffer that others show parts of is
// moved only where they have its strides; every statement counts once, however often it runs.
#include <algorithm>

#include "codegen/passes/conflicts.h"
#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"

namespace krait {
namespace {

/// The buffer and all that show it, where they have one dtype and one set of strides; else empty.
std::vector<int> alike(const TileProgram& program, int root) {
  const Buffer& first = program.buffers[static_cast<std::size_t>(root)];
  std::vector<int> group;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    if (memory_of(program, i) != root) continue;
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(i)];
    bool same = buffer.dims.size() == first.dims.size() && buffer.alias_offset == 0 &&
                buffer.dtype == first.dtype;
    for (std::size_t d = 0; same && d < first.dims.size(); ++d)
      same = buffer.dims[d].stride == first.dims[d].stride;
    if (!same) return {};
    group.push_back(i);
  }
  return group;
}

/// Rows of neighbours, one after the other, and dimensions outside of them by whole rows.
bool has_rows(const Buffer& buffer) {
  const std::size_t rank = buffer.dims.size();
  if (rank < 2 || buffer.dims[rank - 2].extent == Extent::constant(1)) return false;
  const std::int64_t stride = buffer.dims[rank - 2].stride.constant;
  bool whole =
      buffer.dims[rank - 1].stride.constant * buffer.dims[rank - 1].extent.offset <= stride;
  for (const Dim& dim : buffer.dims)
    whole = whole && (&dim == &buffer.dims.back() || dim.stride.constant % stride == 0);
  return whole;
}

/// Rows lie `bytes` further apart than they do, or closer where it is below 0; dimensions outside
/// of them as many rows as before.
void move_apart(TileProgram& program, const std::vector<int>& group, std::int64_t bytes) {
  if (bytes == 0) return;
  for (const int number : group) {
    Buffer& buffer = program.buffers[static_cast<std::size_t>(number)];
    const std::size_t row = buffer.dims.size() - 2;
    const std::int64_t stride = buffer.dims[row].stride.constant;
    for (std::size_t d = 0; d <= row; ++d)
      buffer.dims[d].stride.constant +=
          buffer.dims[d].stride.constant / stride * (bytes / size_in_bytes(buffer.dtype));
  }
}

}  // namespace

RowsApart rows_apart(const TileProgram& program) {
  TileProgram wide = program;  // with the widths that accesses will have
  for (Buffer& buffer : wide.buffers)
    if (buffer.space == Space::shared && buffer.alias_of < 0) buffer.scratch_offset = 0;
  vectorize(wide);
  const int count = static_cast<int>(program.buffers.size());
  std::vector<std::vector<const Statement*>> touching(static_cast<std::size_t>(count));
  visit_statements(wide.body, [&](const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use) {
      auto& list = touching[static_cast<std::size_t>(memory_of(wide, access.buffer))];
      if (list.empty() || list.back() != &statement) list.push_back(&statement);
    });
  });
  RowsApart apart;
  for (int root = 0; root < count; ++root) {
    const Buffer& first = program.buffers[static_cast<std::size_t>(root)];
    if (first.space != Space::shared || first.alias_of >= 0 || !has_rows(first)) continue;
    const std::vector<int> group = alike(program, root);
    if (group.empty()) continue;
    std::int64_t now = 0;
    const auto traffic_with = [&](std::int64_t bytes) {
      move_apart(wide, group, bytes - now);
      now = bytes;
      SharedTraffic sum;
      for (const Statement* statement : touching[static_cast<std::size_t>(root)])
        sum += shared_traffic(wide, *statement, {root});
      return sum;
    };
    SharedTraffic best = traffic_with(0);
    RowsApart::value_type chosen{group, 0};
    for (const std::int64_t bytes : {16, 32, 64}) {
      if (best.wavefronts == best.ideal) break;
      const SharedTraffic moved = traffic_with(bytes);
      if (moved.wavefronts >= best.wavefronts) continue;
      best = moved;
      chosen.second = bytes;
    }
    if (chosen.second > 0) apart.push_back(std::move(chosen));
  }
  return apart;
}

void place_shared(TileProgram& program, const RowsApart& apart, std::int64_t most) {
  for (const auto& [group, bytes] : apart) move_apart(program, group, bytes);
  place_scratch(program, true);
  if (program.scratch_bytes <= most) return;
  for (const auto& [group, bytes] : apart) move_apart(program, group, -bytes);
  for (Buffer& buffer : program.buffers) buffer.scratch_offset = -1;
  place_scratch(program, true);
}

void place_shared(TileProgram& program, std::int64_t most) {
  place_shared(program, rows_apart(program), most);
}

}  // namespace krait
