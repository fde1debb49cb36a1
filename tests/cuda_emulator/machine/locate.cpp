#include "tests/cuda_emulator/machine/locate.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/allocations.h"
#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/grid.h"
#include "tests/cuda_emulator/machine/program.h"
#include "tests/cuda_emulator/machine/spaces.h"

namespace emulator {
namespace {

struct Region {
  uint64_t base = 0, bytes = 0;
  std::string name;
};

std::string place_in(const std::vector<Region>& regions, uint64_t address, unsigned bytes) {
  const Region *before = nullptr, *after = nullptr;
  for (const Region& r : regions) {
    if (r.base <= address && (!before || r.base > before->base)) before = &r;
    if (r.base > address && (!after || r.base < after->base)) after = &r;
  }
  const auto text = [](const Region& r) {
    return "the " + std::to_string(r.bytes) + " bytes of " + r.name;
  };
  if (before && address < before->base + before->bytes) {
    const uint64_t offset = address - before->base;
    std::string where = "byte " + std::to_string(offset) + " of " + text(*before);
    if (offset + bytes > before->bytes)
      where += ", " + std::to_string(offset + bytes - before->bytes) + " past its end";
    return where;
  }
  const uint64_t past = before ? address - before->base - before->bytes : ~uint64_t{0};
  if (after && after->base - address <= past)
    return std::to_string(after->base - address) + " bytes before " + text(*after);
  if (!before) return "";
  return (past ? std::to_string(past) + " bytes" : "right") + " past the end of " + text(*before);
}

const Entry* entry_of(const Grid& grid) {
  for (const Entry& entry : grid.program.entries)
    if (&entry.info == grid.launch.entry) return &entry;
  return nullptr;
}

std::vector<Region> variables_of(const Program& program, ptx::Space space) {
  std::vector<Region> regions;
  for (const auto& [variable, place] : program.placements)
    if (place.space == space && variable->bytes)
      regions.push_back({place.offset, variable->bytes, variable->name});
  return regions;
}

// Those that the entry uses: others may lie at the same place.
std::vector<Region> shared_regions(const Block& block) {
  const Entry* entry = entry_of(block.grid);
  if (!entry) return {};
  std::vector<Region> regions;
  for (const Region& r : variables_of(block.grid.program, ptx::Space::shared)) {
    const bool used = std::any_of(entry->shared.begin(), entry->shared.end(), [&](const Range& u) {
      return u.offset == r.base && u.bytes == r.bytes;
    });
    if (used) regions.push_back(r);
  }
  const unsigned dynamic = block.grid.launch.dynamic_shared;
  if (dynamic) regions.push_back({entry->dynamic, dynamic, "dynamic shared memory"});
  return regions;
}

}  // namespace

std::string locate(const Warp& warp, ptx::Space space, uint64_t address, unsigned bytes) {
  const Grid& grid = warp.block->grid;
  if (space == ptx::Space::generic) {
    space = space_of(address);
    address -= window_of(space);
  }
  switch (space) {
    case ptx::Space::global: {
      bool freed = false;
      return grid.memory.impl->describe(address, bytes, &freed);
    }
    case ptx::Space::shared: return place_in(shared_regions(*warp.block), address, bytes);
    case ptx::Space::constant:
      return place_in(variables_of(grid.program, ptx::Space::constant), address, bytes);
    default: return "";
  }
}

}  // namespace emulator
