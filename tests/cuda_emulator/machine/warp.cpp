#include "tests/cuda_emulator/machine/warp.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/state.h"
#include "tests/cuda_emulator/machine/text.h"

namespace emulator {
namespace {

constexpr uint32_t kNoLimit = UINT32_MAX;
// Branches back that a group takes while others of its warp could run: without any change of memory
// in the block, and at all.
constexpr uint32_t kIdleTurns = 256, kTurns = 8192;

bool mergeable(Wait wait) {
  return wait == Wait::none || wait == Wait::aligned || wait == Wait::collective;
}

// Groups at the same place become one, which looks at the instruction again.
void merge(std::vector<Group>& groups) {
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = i + 1; j < groups.size();) {
      Group& a = groups[i];
      const Group& b = groups[j];
      const bool same = a.frame == b.frame && a.at == b.at && mergeable(a.wait) &&
                        mergeable(b.wait) && (a.wait == Wait::none || b.wait == Wait::none);
      if (!same) {
        ++j;
        continue;
      }
      a.lanes |= b.lanes;
      a.wait = Wait::none;
      a.tired = false;
      a.turns = 0;
      groups[j] = groups.back();
      groups.pop_back();
    }
  }
}

bool before(const Group& a, const Group& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  if (a.at != b.at) return a.at < b.at;
  return a.lanes < b.lanes;  // of different frames
}

// The group that runs next, or -1.
int choose(std::vector<Group>& groups) {
  if (groups.size() == 1) return groups[0].wait == Wait::none ? 0 : -1;
  merge(groups);
  for (int attempt = 0; attempt < 2; ++attempt) {
    int best = -1;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].wait != Wait::none || groups[i].tired) continue;
      if (best < 0 || before(groups[i], groups[static_cast<size_t>(best)])) {
        best = static_cast<int>(i);
      }
    }
    if (best >= 0) return best;
    for (Group& group : groups) {  // all had their turn
      group.tired = false;
      group.turns = 0;
    }
  }
  return -1;
}

// Where the group may meet others.
uint32_t limit_of(const std::vector<Group>& groups, const Group& group) {
  uint32_t limit = kNoLimit;
  for (const Group& other : groups) {
    if (other.frame == group.frame && other.at > group.at) limit = std::min(limit, other.at);
  }
  return limit;
}

// Lanes whose guard is true.
Mask guarded(Warp& warp, const Op& op, Mask lanes) {
  const Mask undefined = lanes & ~warp.registers.predicate_defined(op.guard);
  if (undefined) [[unlikely]] {
    fail(warp, op, std::countr_zero(undefined), Fault::undefined, "the guard is undefined");
  }
  return lanes & warp.registers.predicate(op.guard);
}

// After a branch back while there are other groups.
void turn(Warp& warp, Group& group) {
  const uint64_t now = warp.block->progress;
  if (group.turns == 0) group.progress = now;
  ++group.turns;
  if (group.turns < kIdleTurns) return;
  if (group.turns >= kTurns || group.progress == now) {
    group.tired = true;
  } else if (group.turns % kIdleTurns == 0) {
    group.progress = now;
  }
}

void branch_indirect(Warp& warp, size_t index, const Op& op, Mask lanes) {
  Group group = warp.state->groups[index];
  count(warp, op, lanes);
  ++warp.block->counters.branches;
  const Registers& r = warp.registers;
  const auto& table = group.frame->code->tables[static_cast<size_t>(op.imm[1])];
  const auto* choice = r.in<uint32_t>(op.args[0]);
  const uint8_t* defined = r.defined_in(op.args[0]);
  std::vector<Group> fresh;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (defined[lane] != 0xff) {
      fail(warp, op, lane, Fault::undefined, "the index of the branch is undefined");
    }
    if (choice[lane] >= table.size()) {
      fail(warp, op, lane, Fault::illegal,
           "index " + std::to_string(choice[lane]) + " of a branch with " +
               std::to_string(table.size()) + " targets");
    }
    const uint32_t to = table[choice[lane]];
    const auto same =
        std::find_if(fresh.begin(), fresh.end(), [&](const Group& g) { return g.at == to; });
    if (same != fresh.end()) {
      same->lanes |= Mask{1} << lane;
      continue;
    }
    fresh.push_back(group);
    fresh.back().at = to;
    fresh.back().lanes = Mask{1} << lane;
  }
  if (const Mask stay = group.lanes & ~lanes) {
    group.lanes = stay;
    ++group.at;
    fresh.push_back(group);
  }
  if (fresh.size() > 1) {
    ++warp.block->counters.divergent_branches;
    if (op.mode[0]) {
      fail(warp, op, std::countr_zero(lanes), Fault::divergence,
           "lanes of a .uni branch go to different places");
    }
  }
  warp.state->groups[index] = fresh[0];
  warp.state->groups.insert(warp.state->groups.end(), fresh.begin() + 1, fresh.end());
}

// Instructions that all lanes of the warp execute together.
void aligned(Warp& warp, size_t index, const Op& op, Mask lanes) {
  Group& group = warp.state->groups[index];
  if (!lanes) {
    ++warp.block->counters.skipped;
    ++group.at;
    return;
  }
  if (lanes != group.lanes) {
    fail(warp, op, std::countr_zero(group.lanes & ~lanes), Fault::divergence,
         "the guard of an instruction for the whole warp is false in " +
             lanes_in_words(group.lanes & ~lanes));
  }
  if (lanes != alive(warp)) {
    group.wait = Wait::aligned;
    return;
  }
  if (lanes != kAll) {
    const std::string missing = lanes_in_words(~lanes);
    fail(warp, op, std::countr_zero(lanes), Fault::divergence,
         "an instruction for the whole warp is executed while " + missing +
             (warp.exited ? " have exited" : " do not exist"));
  }
  count(warp, op, lanes);
  op.run(warp, op, lanes);
  warp.block->clocks.meet(warp.index);
  ++group.at;
}

// Everything that is neither plain nor a direct branch.
void special_flow(Warp& warp, size_t index, const Op& op, Mask lanes) {
  Group& group = warp.state->groups[index];
  const bool skips = op.flow != Flow::aligned && op.flow != Flow::block_barrier;
  if (!lanes && skips) {
    ++warp.block->counters.skipped;
    ++group.at;
    return;
  }
  switch (op.flow) {
    case Flow::aligned: return aligned(warp, index, op, lanes);
    case Flow::collective: return collective(warp, index, op, lanes);
    case Flow::branch_indirect: return branch_indirect(warp, index, op, lanes);
    case Flow::call: return call(warp, index, op, lanes);
    case Flow::call_indirect: return call_indirect(warp, index, op, lanes);
    case Flow::ret: return ret(warp, index, op, lanes);
    case Flow::exit: return leave(warp, index, op, lanes);
    case Flow::block_barrier: return block_barrier(warp, index, op, lanes);
    default: fail(warp, op, std::countr_zero(lanes), Fault::trap, "the kernel stops itself");
  }
}

// Runs one group until it may meet another, waits, splits or the budget is used up.
void run_group(Warp& warp, size_t index, unsigned& budget) {
  Warp::State& state = *warp.state;
  Group& group = state.groups[index];
  Frame& frame = *group.frame;
  warp.registers = frame.registers;
  state.local_base = frame.local_base;
  const uint32_t limit = state.groups.size() == 1 ? kNoLimit : limit_of(state.groups, group);
  const Op* const ops = frame.code->ops.data();
  const Mask lanes = group.lanes;
  Counters& counters = warp.block->counters;
  uint32_t at = group.at;
  for (; budget; --budget) {
    const Op& op = ops[at];
    Mask active = lanes;
    if (op.guarded) active = guarded(warp, op, lanes);
    if (op.flow == Flow::plain) [[likely]] {
      ++at;
      if (active) [[likely]] {
        if (op.counted) {
          ++counters.warp_instructions[static_cast<size_t>(op.kind)];
          counters.thread_instructions[static_cast<size_t>(op.kind)] +=
              static_cast<unsigned>(std::popcount(active));
        }
        op.run(warp, op, active);
        if (warp.dozes) [[unlikely]] {
          warp.dozes = false;
          group.at = at - 1;
          if (active != lanes) split(warp, index, active, at);
          Group& sleeper = state.groups[index];
          sleeper.at = at;
          sleeper.wait = Wait::doze;
          sleeper.progress = warp.block->progress;
          warp.block->state->sleepers = true;
          --budget;
          return;
        }
      } else {
        ++counters.skipped;
      }
    } else if (op.flow == Flow::branch) {
      if (op.counted) {
        count(warp, op, lanes);
        ++counters.branches;
      }
      const auto to = static_cast<uint32_t>(op.imm[0]);
      if (active == lanes) {
        const bool back = to <= at;
        at = to;
        if (back && state.groups.size() > 1) {
          group.at = at;
          turn(warp, group);
          --budget;
          return;
        }
      } else if (!active) {
        ++at;
      } else {
        ++counters.divergent_branches;
        if (op.mode[0]) {
          fail(warp, op, std::countr_zero(active), Fault::divergence,
               "lanes of a .uni branch go to different places");
        }
        group.at = at;
        Group taken = group;
        taken.at = to;
        taken.lanes = active;
        group.lanes &= ~active;
        ++group.at;
        state.groups.push_back(taken);
        --budget;
        return;
      }
    } else {
      group.at = at;
      special_flow(warp, index, op, active);
      --budget;
      return;
    }
    if (at >= limit) [[unlikely]] {
      --budget;
      break;
    }
  }
  group.at = at;
}

// No group can run. Those that wait for lanes of their own warp do so in vain, unless some may be
// woken by others.
void check_waits(Warp& warp) {
  const std::vector<Group>& groups = warp.state->groups;
  const Group* first = nullptr;
  for (const Group& group : groups) {
    if (group.wait == Wait::doze || group.wait == Wait::barrier) return;
    if (!first || (group.wait == Wait::aligned && first->wait != Wait::aligned)) first = &group;
  }
  if (!first) return;
  std::string others;
  for (const Group& group : groups) {
    if (&group != first) others += (others.empty() ? "" : "; ") + where(group);
  }
  const Op& op = first->frame->code->ops[first->at];
  const int lane = std::countr_zero(first->lanes);
  const std::string here = lanes_in_words(first->lanes);
  if (first->wait == Wait::collective) {
    fail(warp, op, lane, Fault::members,
         here + " wait for lanes of their member mask that do not come: " + others);
  }
  fail(warp, op, lane, Fault::divergence,
       "only " + here + " come to an instruction for the whole warp; " + others);
}

}  // namespace

Warp::Warp() : state(std::make_unique<State>()) {}
Warp::~Warp() = default;

Dim Warp::thread_index(int lane) const {
  return {state->thread[0][lane], state->thread[1][lane], state->thread[2][lane]};
}

void count(Warp& warp, const Op& op, Mask lanes) {
  Counters& counters = warp.block->counters;
  ++counters.warp_instructions[static_cast<size_t>(op.kind)];
  counters.thread_instructions[static_cast<size_t>(op.kind)] +=
      static_cast<unsigned>(std::popcount(lanes));
}

void split(Warp& warp, size_t index, Mask keep, uint32_t others_at) {
  std::vector<Group>& groups = warp.state->groups;
  Group others = groups[index];
  others.lanes &= ~keep;
  others.at = others_at;
  others.wait = Wait::none;
  groups[index].lanes &= keep;
  if (others.lanes) groups.push_back(others);
}

void look_again(Warp& warp) {
  for (Group& group : warp.state->groups) {
    if (group.wait == Wait::aligned || group.wait == Wait::collective) group.wait = Wait::none;
  }
}

std::string lanes_in_words(Mask lanes) {
  std::string text = std::popcount(lanes) == 1 ? "lane " : "lanes ";
  for (bool more = false; lanes; more = true) {
    const int first = std::countr_zero(lanes);
    const int length = std::countr_one(lanes >> first);
    if (more) text += ", ";
    text += std::to_string(first);
    if (length > 1) text += "-" + std::to_string(first + length - 1);
    lanes &= length == 32 ? 0 : ~(((Mask{1} << length) - 1) << first);
  }
  return text;
}

std::string where(const Group& group) {
  const uint32_t at = group.wait == Wait::doze ? group.at - 1 : group.at;
  const Op& op = group.frame->code->ops[at];
  std::string text = lanes_in_words(group.lanes);
  if (!op.source) return text + " at the end";
  return text + " at line " + std::to_string(op.source->line) + " (" + text_of(*op.source) + ")";
}

Slice advance(Warp& warp, unsigned budget) {
  const uint64_t start = budget;
  std::vector<Group>& groups = warp.state->groups;
  Slice result = Slice::over;
  while (budget) {
    const int group = choose(groups);
    if (group < 0) {
      check_waits(warp);
      result = groups.empty() ? Slice::done : Slice::blocked;
      break;
    }
    run_group(warp, static_cast<size_t>(group), budget);
  }
  warp.block->state->executed += start - budget;
  return result;
}

}  // namespace emulator
