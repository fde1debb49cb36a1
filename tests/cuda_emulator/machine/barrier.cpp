// Barriers of a block. A warp arrives as a whole, when all its lanes that have not exited did; it
// then counts as 32 threads.

#include "tests/cuda_emulator/isa/barrier.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/state.h"

namespace emulator {
namespace {

constexpr unsigned kWarp = kLanes;

uint32_t uniform(Warp& warp, const Op& op, Arg arg, Mask lanes, const char* what) {
  const auto* values = warp.registers.in<uint32_t>(arg);
  const uint8_t* defined = warp.registers.defined_in(arg);
  const int first = std::countr_zero(lanes);
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (defined[lane] != 0xff) {
      fail(warp, op, lane, Fault::undefined, std::string("the ") + what + " is undefined");
    }
    if (values[lane] != values[first]) {
      fail(warp, op, lane, Fault::barrier,
           std::string("the ") + what + " differs within the warp: " +
               std::to_string(values[first]) + " and " + std::to_string(values[lane]));
    }
  }
  return values[first];
}

void reset(Barrier& barrier, const Block& block) {
  const size_t warps = block.warps.size();
  barrier = Barrier();
  barrier.gathered.assign(warps, 0);
  barrier.waiting.assign(warps, 0);
  barrier.warps.assign(warps, 0);
}

// True where everyone has come who is expected.
bool complete(const Block& block, const Barrier& barrier) {
  if (barrier.expected) return barrier.arrived == barrier.expected;
  for (const Warp& warp : block.warps) {
    if (alive(warp) && !barrier.warps[warp.index]) return false;
  }
  return true;
}

void write_result(const Group& group, const Barrier& barrier) {
  const Mask lanes = group.lanes;
  const Op& op = group.frame->code->ops[group.at];
  const Registers& r = group.frame->registers;
  switch (static_cast<BarrierKind>(op.mode[0])) {
    case BarrierKind::popc: {
      auto* to = r.out<uint32_t>(op.args[0]);
      uint8_t* defined = r.defined_out(op.args[0]);
      each_lane(lanes, [&](int lane) {
        to[lane] = barrier.count;
        defined[lane] = barrier.defined ? 0xff : 0xf0;
      });
      break;
    }
    case BarrierKind::all:
    case BarrierKind::any: {
      const bool all = static_cast<BarrierKind>(op.mode[0]) == BarrierKind::all;
      const bool value = all ? barrier.count == barrier.threads : barrier.count > 0;
      r.set_predicate(op.args[0], lanes, value ? kAll : 0, barrier.defined ? kAll : 0);
      break;
    }
    default: break;
  }
}

// Those who wait go on and know what all did.
void finish(Block& block, unsigned id) {
  Barrier& barrier = block.state->barriers[id];
  bool anyone = false;
  for (Warp& warp : block.warps) {
    const Mask lanes = barrier.waiting[warp.index];
    if (!lanes) continue;
    anyone = true;
    if (barrier.released) block.clocks.acquire(warp.index, lanes, barrier.released);
    for (Group& group : warp.state->groups) {
      if (group.wait != Wait::barrier || group.barrier != id) continue;
      write_result(group, barrier);
      ++group.at;
      group.wait = Wait::none;
    }
    wake(block, warp.index);
  }
  // Whoever has exited and would have taken part did so before.
  for (const Warp& warp : block.warps) {
    const bool takes_part = barrier.expected == 0 || barrier.waiting[warp.index];
    if (takes_part) barrier.waiting[warp.index] |= warp.exited;
  }
  if (anyone) block.clocks.join(barrier.waiting);
  reset(barrier, block);
  ++block.counters.barriers;
  ++block.progress;
}

void reduce(Warp& warp, const Op& op, Barrier& barrier, Mask lanes) {
  const Arg c = op.args[op.arg_count - 1];
  const Mask value = warp.registers.predicate(c);
  if (lanes & ~warp.registers.predicate_defined(c)) barrier.defined = false;
  barrier.count += static_cast<unsigned>(std::popcount(value & lanes));
  barrier.threads += static_cast<unsigned>(std::popcount(lanes));
}

struct Arrival {
  unsigned id = 0, expected = 0;
};

// Which barrier, and whether those who are there agree.
Arrival arrival(Warp& warp, const Op& op, Mask lanes) {
  Block& block = *warp.block;
  const auto& how = *static_cast<const BarrierOp*>(op.extra);
  const int first = std::countr_zero(lanes);
  Arrival result;
  result.id = uniform(warp, op, op.args[how.id], lanes, "number of the barrier");
  if (result.id >= block.state->barriers.size()) {
    fail(warp, op, first, Fault::barrier,
         "there is no barrier " + std::to_string(result.id) + ", only 0 to 15");
  }
  if (how.has_count) {
    result.expected = uniform(warp, op, op.args[how.count], lanes, "number of threads");
    if (result.expected == 0 || result.expected % kWarp) {
      fail(warp, op, first, Fault::barrier,
           std::to_string(result.expected) + " threads are not a multiple of the warp size");
    }
    if (result.expected > block.warps.size() * kWarp) {
      fail(warp, op, first, Fault::barrier,
           "a barrier for " + std::to_string(result.expected) + " threads in a block of " +
               std::to_string(block.threads));
    }
  }
  return result;
}

void open(Warp& warp, const Op& op, Barrier& barrier, const Arrival& arrival, int lane) {
  const bool reduces = static_cast<BarrierKind>(op.mode[0]) >= BarrierKind::popc;
  const auto all = static_cast<unsigned>(warp.block->warps.size()) * kWarp;
  if (!barrier.active) {
    reset(barrier, *warp.block);
    barrier.active = true;
    barrier.reduces = reduces;
    barrier.expected = arrival.expected;
    barrier.first = &op;
    return;
  }
  const auto threads = [&](unsigned expected) { return expected ? expected : all; };
  const std::string there = " since line " + std::to_string(barrier.first->source->line);
  if (threads(barrier.expected) != threads(arrival.expected)) {
    fail(warp, op, lane, Fault::barrier,
         "barrier " + std::to_string(arrival.id) + " is for " +
             std::to_string(threads(barrier.expected)) + " threads" + there + ", not for " +
             std::to_string(threads(arrival.expected)));
  }
  if (barrier.reduces != reduces || (reduces && barrier.first->mode[0] != op.mode[0])) {
    fail(warp, op, lane, Fault::barrier,
         "barrier " + std::to_string(arrival.id) + " is used by another kind of instruction" +
             there);
  }
}

// All lanes of the warp are here, some maybe at other instructions for the same barrier.
void arrive(Warp& warp, unsigned id, const Op& op) {
  Block& block = *warp.block;
  Barrier& barrier = block.state->barriers[id];
  barrier.gathered[warp.index] = 0;
  if (barrier.warps[warp.index]) {
    fail(warp, op, std::countr_zero(alive(warp)), Fault::barrier,
         "the warp comes to barrier " + std::to_string(id) + " again before it is complete");
  }
  barrier.arrived += kWarp;
  barrier.warps[warp.index] = 1;
  if (barrier.expected && barrier.arrived > barrier.expected) {
    fail(warp, op, std::countr_zero(alive(warp)), Fault::barrier,
         "more than the " + std::to_string(barrier.expected) + " threads of barrier " +
             std::to_string(id) + " arrive");
  }
  for (Group& group : warp.state->groups) {
    if (group.wait != Wait::gather || group.barrier != id) continue;
    const Op& theirs = group.frame->code->ops[group.at];
    if (static_cast<BarrierKind>(theirs.mode[0]) == BarrierKind::arrive) {
      barrier.released =
          Clocks::merge(barrier.released, block.clocks.release(warp.index, group.lanes));
      ++block.progress;
      group.wait = Wait::none;
      ++group.at;
    } else {
      barrier.waiting[warp.index] |= group.lanes;
      group.wait = Wait::barrier;
    }
  }
  if (complete(block, barrier)) finish(block, id);
}

}  // namespace

void block_barrier(Warp& warp, size_t index, const Op& op, Mask lanes) {
  std::vector<Group>& groups = warp.state->groups;
  const auto& how = *static_cast<const BarrierOp*>(op.extra);
  if (!lanes) {
    ++warp.block->counters.skipped;
    ++groups[index].at;
    return;
  }
  if (how.aligned && lanes != groups[index].lanes) {
    fail(warp, op, std::countr_zero(groups[index].lanes & ~lanes), Fault::divergence,
         "the guard of a barrier for the whole warp is false in " +
             lanes_in_words(groups[index].lanes & ~lanes));
  }
  if (how.aligned && lanes != alive(warp)) {
    groups[index].wait = Wait::aligned;
    return;
  }
  const Arrival came = arrival(warp, op, lanes);
  Barrier& barrier = warp.block->state->barriers[came.id];
  open(warp, op, barrier, came, std::countr_zero(lanes));
  count(warp, op, lanes);
  if (lanes != groups[index].lanes) split(warp, index, lanes, groups[index].at + 1);
  groups[index].wait = Wait::gather;
  groups[index].barrier = static_cast<uint8_t>(came.id);
  if (barrier.reduces) reduce(warp, op, barrier, lanes);
  Mask& gathered = barrier.gathered[warp.index];
  gathered |= lanes;
  if (gathered != alive(warp)) return;
  arrive(warp, came.id, op);
}

void barriers_after_exit(Warp& warp) {
  Block& block = *warp.block;
  for (unsigned id = 0; id < block.state->barriers.size(); ++id) {
    Barrier& barrier = block.state->barriers[id];
    if (!barrier.active) continue;
    const Mask gathered = barrier.gathered[warp.index] & alive(warp);
    if (gathered && gathered == alive(warp)) {
      for (const Group& group : warp.state->groups) {
        if (group.wait != Wait::gather || group.barrier != id) continue;
        arrive(warp, id, group.frame->code->ops[group.at]);
        break;
      }
    } else if (!alive(warp) && !barrier.expected && complete(block, barrier)) {
      finish(block, id);
    }
  }
}

}  // namespace emulator
