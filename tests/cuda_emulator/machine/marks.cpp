#include "tests/cuda_emulator/machine/marks.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/report_place.h"

namespace emulator {

Actor::Actor(Warp& warp, const Op& op, const Access& access)
    : warp(warp), op(op), access(access), block(static_cast<uint32_t>(warp.block->linear)) {
  const Clocks::Impl& clocks = *warp.block->clocks.impl;
  clock = clocks.warps[warp.index].clock;
  met = clocks.warps[warp.index].met;
  strong = access.order.semantics != Semantics::weak;
  wide = access.order.scope == Scope::gpu || access.order.scope == Scope::sys;
  const auto line = static_cast<uint32_t>(op.source ? op.source->line : 0);
  info = warp.index << Mark::kWarpShift |
         (line < 1u << (32 - Mark::kLineShift) ? line << Mark::kLineShift : 0);
  if (strong) info |= Mark::kStrong | (wide ? Mark::kWide : 0u);
  if (access.compares) info |= Mark::kCompares;
  clocks.knowledge(warp.index, access.lanes, known);
  if (strong)
    for (const auto& group : clocks.warps[warp.index].groups) kept_.push_back(group.known);
}

Mask conflicting(const Mark& mark, uint32_t block, bool mark_writes, const Actor& actor, int lane,
                 unsigned bytes, bool writes) {
  if (!(mark.bytes() & bytes) || mark.clock == 0) return 0;
  const bool mark_strong = mark.info & Mark::kStrong, same_block = block == actor.block;
  if (mark_strong && actor.strong && (same_block || (mark.info & Mark::kWide && actor.wide)))
    return 0;
  const auto compares = [](bool wrote, uint32_t info) { return wrote && (info & Mark::kCompares); };
  if ((!actor.strong && !writes && compares(mark_writes, mark.info)) ||
      (!mark_strong && !mark_writes && compares(writes, actor.info)))
    return 0;
  Mask unknown = actor.known[lane]->unknown(block, mark.warp(), mark.clock, mark.lanes);
  const Mask self = same_block && mark.warp() == actor.warp.index ? Mask{1} << lane : 0;
  // Which of the lanes touched these bytes is not known: all of them must be others.
  if ((mark.info & Mark::kMixed) && ((mark.lanes & self) || unknown != mark.lanes)) return 0;
  return unknown & ~self;
}

void fail_race(const Actor& actor, int lane, bool writes, uint64_t word, const Mark& mark,
               uint32_t block, bool mark_writes, Mask lanes) {
  const Warp& warp = actor.warp;
  const int other_lane = std::countr_zero(lanes);
  const Place other = place_of(warp, mark.line(), block, mark.warp(), other_lane);
  std::string what = writes ? "a write" : "a read";
  what += mark_writes ? " and an earlier write" : " and an earlier read";
  if (block != actor.block)
    what += " by another block";
  else if (mark.warp() != warp.index)
    what += " by another warp";
  else
    what += " by another lane of the warp";
  what += " are not ordered by any synchronisation";
  const bool scopes = actor.strong && (mark.info & Mark::kStrong);
  if (scopes) what += ": their scopes do not include one another";
  const uint64_t start = std::max(word, actor.access.address[lane]);
  fail_at(warp, actor.op, lane, Fault::race, actor.access.space, start,
          std::min(actor.access.bytes, 4u), what, &other);
}

}  // namespace emulator
