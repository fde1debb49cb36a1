#include "tests/cuda_emulator/machine/releases.h"

namespace emulator {

std::pair<Releases::Map::iterator, Releases::Map::iterator> Releases::range(uint64_t address,
                                                                            unsigned bytes) {
  auto first = all_.lower_bound(address);
  while (first != all_.begin()) {
    const auto before = std::prev(first);
    if (before->first + before->second.bytes <= address) break;
    first = before;
  }
  return {first, all_.lower_bound(address + bytes)};
}

void Releases::read(const Actor& actor, int lane) {
  Clocks::Impl& clocks = *actor.warp.block->clocks.impl;
  const unsigned warp = actor.warp.index;
  const Semantics semantics = actor.access.order.semantics;
  const bool acquires = semantics == Semantics::acquire || semantics == Semantics::acq_rel;
  const auto take = [&](const Known& known, bool needs_wide) {
    if (acquires)
      clocks.acquire(warp, Mask{1} << lane, known);
    else
      clocks.see(warp, Mask{1} << lane, needs_wide, known);
  };
  const auto [first, end] = range(actor.access.address[lane], actor.access.bytes);
  for (auto it = first; it != end; ++it) {
    const Entry& entry = it->second;
    const bool own = entry.wide_block == clocks.block;
    if (entry.wide && (own || actor.wide)) take(entry.wide, !own);
    for (const auto& [block, known] : entry.narrow)
      if (block == clocks.block) take(known, false);
  }
}

void Releases::write(const Actor& actor, int lane, bool update) {
  Clocks::Impl& clocks = *actor.warp.block->clocks.impl;
  const unsigned warp = actor.warp.index;
  const Semantics semantics = actor.access.order.semantics;
  const uint64_t address = actor.access.address[lane];
  Known narrow, wide;
  if (semantics == Semantics::release || semantics == Semantics::acq_rel) {
    narrow = clocks.gather({{warp, Mask{1} << lane}});
    if (actor.wide) wide = narrow;
  } else if (clocks.any_fence) {
    narrow = clocks.fenced(warp, lane, false);
    if (actor.wide) wide = clocks.fenced(warp, lane, true);
  }
  if (!update) erase(address, actor.access.bytes);
  if (!narrow && !wide) return;
  Entry& entry = all_[address];
  entry.bytes = std::max(entry.bytes, actor.access.bytes);
  if (wide) {
    entry.wide = merged(clocks.block, entry.wide, wide);
    entry.wide_block = clocks.block;
  }
  if (!narrow || (wide && wide->covers(*narrow))) return;
  for (auto& [block, known] : entry.narrow) {
    if (block != clocks.block) continue;
    known = merged(block, known, narrow);
    return;
  }
  entry.narrow.emplace_back(clocks.block, narrow);
}

void Releases::erase(uint64_t address, unsigned bytes) {
  const auto [first, end] = range(address, bytes);
  all_.erase(first, end);
}

}  // namespace emulator
