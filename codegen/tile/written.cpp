#include "codegen/tile/written.h"

#include <algorithm>

#include "codegen/tile/access.h"

namespace krait {
namespace {

struct Positions {
  std::int64_t low = 0, high = 0;
};

/// Of an index within [0, extent): sizes that are known only when it runs may be anything.
Positions positions_of(const TileProgram& program, const Index& index, std::int64_t extent) {
  Positions all{index.constant, index.constant};
  for (const auto& [var, factor] : index.terms) {
    const Var& variable = program.vars[static_cast<std::size_t>(var)];
    if (variable.kind == VarKind::size || !variable.extent.is_constant()) return {0, extent - 1};
    (factor > 0 ? all.high : all.low) += factor * (variable.extent.offset - 1);
  }
  return {std::max<std::int64_t>(all.low, 0), std::min(all.high, extent - 1)};
}

}  // namespace

bool Written::Box::holds(const Box& other) const {
  for (std::size_t d = 0; d < low.size(); ++d)
    if (other.low[d] < low[d] || other.high[d] > high[d]) return false;
  return true;
}

bool Written::Box::meets(const Box& other) const {
  for (std::size_t d = 0; d < low.size(); ++d)
    if (other.low[d] > high[d] || other.high[d] < low[d]) return false;
  return true;
}

Written::Written(const TileProgram& program) : program_(program) {
  const std::size_t count = program.buffers.size();
  memories_.resize(count);
  neighbours_.resize(count);
  const auto placed = [&](std::size_t i) {
    const Buffer& buffer = program.buffers[i];
    return buffer.space == Space::shared && buffer.alias_of < 0 && buffer.scratch_offset >= 0;
  };
  for (std::size_t a = 0; a < count; ++a) {
    if (!placed(a)) continue;
    const std::int64_t begin = program.buffers[a].scratch_offset;
    const std::int64_t end = begin + bytes_of(program.buffers[a]);
    for (std::size_t b = 0; b < a; ++b) {
      if (!placed(b)) continue;
      const std::int64_t other = program.buffers[b].scratch_offset;
      if (other >= end || begin >= other + bytes_of(program.buffers[b])) continue;
      neighbours_[a].push_back(static_cast<int>(b));
      neighbours_[b].push_back(static_cast<int>(a));
      gives_way_ = true;
    }
  }
}

Written::Box Written::whole(int memory) const {
  Box box;
  for (const Dim& dim : program_.buffers[static_cast<std::size_t>(memory)].dims) {
    box.low.push_back(0);
    box.high.push_back(dim.extent.offset - 1);
  }
  return box;
}

std::optional<Written::Box> Written::box_of(const Access& access) const {
  const Buffer& view = program_.buffers[static_cast<std::size_t>(access.buffer)];
  const int number = memory_of(program_, access.buffer);
  const Buffer& root = program_.buffers[static_cast<std::size_t>(number)];
  if (size_in_bytes(view.dtype) != size_in_bytes(root.dtype)) return std::nullopt;
  // The offset of a view, and each of its dimensions, along the dimensions of the memory.
  Box box;
  std::int64_t rest = memory_offset(program_, access.buffer);
  std::vector<char> followed(access.index.size(), 0);
  for (const Dim& dim : root.dims) {
    const std::int64_t extent = dim.extent.offset, stride = dim.stride.constant;
    std::int64_t low = extent == 1 ? 0 : rest / stride;
    if (extent != 1) rest -= low * stride;
    std::int64_t high = low;
    for (std::size_t d = 0; d < access.index.size() && extent != 1; ++d) {
      const Dim& along = view.dims[d];
      if (followed[d] != 0 || along.stride.constant != stride || along.extent.offset == 1) continue;
      const Positions moved = positions_of(program_, access.index[d], along.extent.offset);
      low += moved.low;
      high += moved.high;
      followed[d] = 1;
      break;
    }
    if (high >= extent) return std::nullopt;
    box.low.push_back(low);
    box.high.push_back(high);
  }
  for (std::size_t d = 0; d < access.index.size(); ++d)
    if (followed[d] == 0 && view.dims[d].extent.offset != 1) return std::nullopt;
  return rest == 0 ? std::optional(box) : std::nullopt;
}

void Written::write(const Access& access) {
  const int number = memory_of(program_, access.buffer);
  for (const int other : neighbours_[static_cast<std::size_t>(number)]) {
    Memory& theirs = memories_[static_cast<std::size_t>(other)];
    theirs.boxes.clear();
    theirs.taken_by = access.buffer;
  }
  Memory& memory = memories_[static_cast<std::size_t>(number)];
  memory.some = true;
  const Box box = box_of(access).value_or(whole(number));
  if (std::any_of(memory.boxes.begin(), memory.boxes.end(),
                  [&](const Box& known) { return known.holds(box); }))
    return;
  std::erase_if(memory.boxes, [&](const Box& known) { return box.holds(known); });
  memory.boxes.push_back(box);
}

bool Written::covered(const Box& box, const std::vector<Box>& by, std::size_t from) {
  while (from < by.size() && !by[from].meets(box)) ++from;
  if (from == by.size()) return false;
  // What sticks out of that one, side by side, must lie in the others.
  Box rest = box;
  for (std::size_t d = 0; d < box.low.size(); ++d) {
    if (rest.low[d] < by[from].low[d]) {
      Box below = rest;
      below.high[d] = by[from].low[d] - 1;
      if (!covered(below, by, from + 1)) return false;
      rest.low[d] = by[from].low[d];
    }
    if (rest.high[d] > by[from].high[d]) {
      Box above = rest;
      above.low[d] = by[from].high[d] + 1;
      if (!covered(above, by, from + 1)) return false;
      rest.high[d] = by[from].high[d];
    }
  }
  return true;
}

std::string Written::fault(const Access& access) const {
  const int number = memory_of(program_, access.buffer);
  const Memory& memory = memories_[static_cast<std::size_t>(number)];
  if (!memory.some) return "is read before it is written";
  const auto gone = [&] {
    return memory.taken_by < 0
               ? std::string("is read where it was not written")
               : "is read, but its bytes are taken by " +
                     program_.buffers[static_cast<std::size_t>(memory.taken_by)].name;
  };
  const std::optional<Box> box = box_of(access);
  if (!box) return memory.boxes.empty() ? gone() : "";
  return covered(*box, memory.boxes, 0) ? "" : gone();
}

}  // namespace krait
