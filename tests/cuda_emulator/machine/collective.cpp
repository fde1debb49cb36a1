#include "tests/cuda_emulator/machine/collective.h"

#include <span>

#include "tests/cuda_emulator/machine/state.h"

namespace emulator {
namespace {

struct Part {
  const Frame* frame = nullptr;
  uint32_t at = 0;
  Mask lanes = 0;

  const Op& op() const { return frame->code->ops[at]; }
};

bool same(const Op& a, const Op& b) {
  return a.flow == Flow::collective && a.extra == b.extra && a.mode[0] == b.mode[0] &&
         a.mode[1] == b.mode[1];
}

Mask guarded(const Registers& registers, const Op& op, Mask lanes) {
  return op.guarded ? lanes & registers.predicate(op.guard) : lanes;
}

// Lanes of those whose member mask is that one; all were checked when they came.
Mask with_members(const Registers& registers, const Op& op, Mask lanes, Mask members) {
  const auto* masks = registers.in<uint32_t>(op.args[op.members]);
  Mask result = 0;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (masks[lane] == members) result |= Mask{1} << lane;
  }
  return result;
}

void check(Warp& warp, const Op& op, Mask lanes) {
  const auto* masks = warp.registers.in<uint32_t>(op.args[op.members]);
  const uint8_t* defined = warp.registers.defined_in(op.args[op.members]);
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (defined[lane] != 0xff) {
      fail(warp, op, lane, Fault::undefined, "the member mask is undefined");
    }
    if (!(masks[lane] >> lane & 1)) {
      fail(warp, op, lane, Fault::members,
           "lane " + std::to_string(lane) + " is not in its own member mask");
    }
    if (masks[lane] & ~warp.existing) {
      fail(warp, op, lane, Fault::members,
           "the member mask has " + lanes_in_words(masks[lane] & ~warp.existing) +
               ", which the warp does not have");
    }
  }
}

void complete(Warp& warp, const Op& op, std::span<const Part> parts, Mask members) {
  Exchange exchange;
  exchange.members = members;
  const auto& kind = *static_cast<const Collective*>(op.extra);
  for (const Part& part : parts) {
    kind.gather(part.frame->registers, part.op(), part.lanes, exchange);
    count(warp, part.op(), part.lanes);
  }
  kind.complete(warp, op, exchange);
  if (members == alive(warp)) warp.block->clocks.meet(warp.index);
  for (const Part& part : parts) {
    kind.scatter(part.frame->registers, part.op(), part.lanes, exchange);
  }
}

// Those who took part go on behind the instruction.
void go_on(Warp& warp, const std::vector<Part>& parts) {
  std::vector<Group>& groups = warp.state->groups;
  for (const Part& part : parts) {
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].frame != part.frame || groups[i].at != part.at) continue;
      const Mask lanes = groups[i].lanes & part.lanes;
      if (!lanes) continue;
      if (lanes == groups[i].lanes) {
        ++groups[i].at;
        groups[i].wait = Wait::none;
      } else {
        Group on = groups[i];
        on.lanes = lanes;
        ++on.at;
        on.wait = Wait::none;
        groups[i].lanes &= ~lanes;
        groups.push_back(on);
      }
    }
  }
}

}  // namespace

void collective(Warp& warp, size_t index, const Op& op, Mask lanes) {
  std::vector<Group>& groups = warp.state->groups;
  check(warp, op, lanes);
  if (lanes != groups[index].lanes) split(warp, index, lanes, groups[index].at + 1);
  Mask rest = lanes;
  if (groups.size() == 1) {  // nobody else to wait for, most often
    const Mask members = warp.registers.in<uint32_t>(op.args[op.members])[std::countr_zero(lanes)];
    if ((members & alive(warp)) == lanes &&
        with_members(warp.registers, op, lanes, members) == lanes) {
      const Part all{groups[0].frame, groups[0].at, lanes};
      complete(warp, op, {&all, 1}, lanes);
      ++groups[0].at;
      return;
    }
  }
  std::vector<Part> done;
  std::vector<Part> parts;
  const Registers own = warp.registers;
  while (rest) {
    const Mask members = own.in<uint32_t>(op.args[op.members])[std::countr_zero(rest)];
    const Mask needed = members & alive(warp);
    const Mask mine = with_members(own, op, rest, members);
    Mask together = mine;
    parts.clear();
    parts.push_back({groups[index].frame, groups[index].at, mine});
    for (size_t i = 0; i < groups.size() && together != needed; ++i) {
      const Group& other = groups[i];
      if (i == index || other.wait != Wait::collective) continue;
      const Op& theirs = other.frame->code->ops[other.at];
      if (!same(op, theirs)) continue;
      const Registers& registers = other.frame->registers;
      const Mask active = guarded(registers, theirs, other.lanes);
      const Mask with = with_members(registers, theirs, active, members);
      if (!with) continue;
      together |= with;
      parts.push_back({other.frame, other.at, with});
    }
    if (together == needed) {
      complete(warp, op, parts, needed);
      done.insert(done.end(), parts.begin(), parts.end());
    }
    rest &= ~mine;
  }
  groups[index].wait = Wait::collective;
  go_on(warp, done);
}

}  // namespace emulator
