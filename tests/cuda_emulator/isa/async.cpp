// cp.async: copies from global to shared memory that complete later.
//
// A copy lands when something waits for it (cp.async.wait_group, wait_all, or a wait for an
// mbarrier object that tracks it), never before: a program that reads too early finds old bytes and
// is reported by the marks of races.h, and so is one that never waits. A thread that exits lands
// nothing, since nobody could know of it. L2 hints, prefetch sizes and .ca or .cg change nothing.
//
// Not handled, and refused by name: cp.async.bulk and its tensor, prefetch and reduce forms with
// their groups, and cp.reduce.async. Decoders for those belong here, beside read_copy.

#include "tests/cuda_emulator/isa/async.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/cuda_emulator/isa/mbarrier.h"
#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/races.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {

// Block::async_copies.
struct AsyncCopies {
  struct Copy {
    AsyncCopy copy;
    const Op* op;
    uint64_t number;                     // in order of issue
    Mask under_way;                      // lanes whose part has not landed
    std::array<uint32_t, kLanes> group;  // of each lane, counted from 0
  };
  struct Arrival {
    const Op* op;
    uint64_t before;  // tracks copies of smaller numbers
    Mask pending;
    std::array<uint64_t, kLanes> object;
  };
  struct OfWarp {
    std::vector<Copy> copies;
    std::vector<Arrival> arrivals;
    std::array<uint32_t, kLanes> committed{};  // groups of each lane
    uint64_t issued = 0;
  };
  std::vector<OfWarp> warps;
};

namespace {

AsyncCopies::OfWarp& copies_of(Warp& warp) {
  Block& block = *warp.block;
  if (!block.async_copies) {
    block.async_copies = std::make_shared<AsyncCopies>();
    block.async_copies->warps.resize(block.warps.size());
  }
  return block.async_copies->warps[warp.index];
}

// Lands what choose(copy) picks among the lanes of each copy, in order of issue.
template <class Choose>
void land(Warp& warp, AsyncCopies::OfWarp& own, Choose&& choose) {
  for (AsyncCopies::Copy& copy : own.copies) {
    const Mask lanes = choose(copy) & copy.under_way;
    if (!lanes) continue;
    copy.under_way &= ~lanes;
    async_land(warp, *copy.op, copy.copy, lanes);
  }
  std::erase_if(own.copies, [](const AsyncCopies::Copy& copy) { return !copy.under_way; });
}

// Arrives for all lanes whose tracked copies have landed.
void trigger_arrivals(Warp& warp, AsyncCopies::OfWarp& own) {
  for (AsyncCopies::Arrival& arrival : own.arrivals) {
    Mask waiting = 0;
    for (const AsyncCopies::Copy& copy : own.copies)
      if (copy.number < arrival.before) waiting |= copy.under_way;
    const Mask ready = arrival.pending & ~waiting;
    if (!ready) continue;
    arrival.pending &= ~ready;
    arrive_asynchronously(warp, *arrival.op, ready, arrival.object.data());
  }
  std::erase_if(own.arrivals, [](const AsyncCopies::Arrival& a) { return !a.pending; });
}

// Op::mode[0] of a copy: what its args hold after the two addresses.
enum : uint32_t { kWhole, kSourceSize, kIgnoreSource };

void read_sizes(Warp& warp, const Op& op, Mask lanes, AsyncCopy& copy) {
  if (op.mode[0] == kIgnoreSource) {
    const Mask undefined = lanes & ~warp.registers.predicate_defined(op.args[2]);
    if (undefined)
      fail(warp, op, std::countr_zero(undefined), Fault::undefined,
           "the predicate that ignores the source was never written");
    const Mask ignored = warp.registers.predicate(op.args[2]);
    each_lane(lanes, [&](int lane) {
      copy.read[lane] = ignored >> lane & 1 ? 0 : static_cast<uint8_t>(copy.bytes);
    });
    return;
  }
  if (op.mode[0] == kWhole) {
    each_lane(lanes, [&](int lane) { copy.read[lane] = static_cast<uint8_t>(copy.bytes); });
    return;
  }
  const uint32_t* sizes = warp.registers.in<uint32_t>(op.args[2]);
  const uint8_t* defined = warp.registers.defined_in(op.args[2]);
  each_lane(lanes, [&](int lane) {
    if (defined[lane] != 0xff)
      fail(warp, op, lane, Fault::undefined, "the source size was never written");
    if (sizes[lane] > copy.bytes)
      fail(warp, op, lane, Fault::illegal,
           "source size " + std::to_string(sizes[lane]) + " is more than the " +
               std::to_string(copy.bytes) + " bytes of the copy");
    copy.read[lane] = static_cast<uint8_t>(sizes[lane]);
  });
}

void run_copy(Warp& warp, const Op& op, Mask lanes) {
  AsyncCopies::OfWarp& own = copies_of(warp);
  AsyncCopies::Copy issued;
  AsyncCopy& copy = issued.copy;
  copy.lanes = lanes;
  copy.bytes = op.mode[1];
  addresses(warp, op, lanes, op.args[0], op.imm[0], copy.to);
  read_sizes(warp, op, lanes, copy);
  Mask reading = 0;
  each_lane(lanes, [&](int lane) { reading |= Mask{copy.read[lane] != 0} << lane; });
  addresses(warp, op, reading, op.args[1], op.imm[1], copy.from);
  async_issue(warp, op, copy);
  issued.op = &op;
  issued.number = own.issued++;
  issued.under_way = lanes;
  issued.group = own.committed;
  own.copies.push_back(issued);
}

void run_commit(Warp& warp, const Op&, Mask lanes) {
  AsyncCopies::OfWarp& own = copies_of(warp);
  each_lane(lanes, [&](int lane) { ++own.committed[lane]; });
}

void run_wait_group(Warp& warp, const Op& op, Mask lanes) {
  AsyncCopies::OfWarp& own = copies_of(warp);
  const auto newest = static_cast<uint64_t>(op.imm[0]);  // groups that may stay under way
  land(warp, own, [&](const AsyncCopies::Copy& copy) {
    Mask due = 0;
    each_lane(lanes, [&](int lane) {
      due |= Mask{copy.group[lane] + newest < own.committed[lane]} << lane;
    });
    return due;
  });
  trigger_arrivals(warp, own);
}

// Those that were not committed too; that they would make a group then tells no one anything.
void run_wait_all(Warp& warp, const Op&, Mask lanes) {
  AsyncCopies::OfWarp& own = copies_of(warp);
  land(warp, own, [&](const AsyncCopies::Copy&) { return lanes; });
  trigger_arrivals(warp, own);
}

// Op::mode[0]: .noinc; Op::mode[1]: the address is generic.
void run_arrive(Warp& warp, const Op& op, Mask lanes) {
  AsyncCopies::OfWarp& own = copies_of(warp);
  AsyncCopies::Arrival arrival{&op, own.issued, lanes, {}};
  uint64_t address[kLanes] = {};
  object_addresses(warp, op, lanes, op.args[0], op.mode[1], address);
  expect_async_arrivals(warp, op, lanes, address, op.mode[0] == 0);
  std::copy_n(address, kLanes, arrival.object.begin());
  own.arrivals.push_back(arrival);
  trigger_arrivals(warp, own);
}

void refuse_bulk(Decoding& decoding) {
  for (const std::string& modifier : decoding.instruction->modifiers)
    if (modifier == "bulk" || modifier == "reduce")
      decoding.fail("bulk copies (cp.async.bulk, cp.reduce.async.bulk) are not emulated");
}

Op decode_group(Decoding& decoding, Modifiers& modifiers) {
  const int which = modifiers.take_one({"commit_group", "wait_group", "wait_all"});
  modifiers.end();
  decoding.expect_operands(which == 1 ? 1 : 0);
  Op op = decoding.make(Class::async_copy,
                        which == 0   ? run_commit
                        : which == 1 ? run_wait_group
                                     : run_wait_all,
                        {});
  if (which == 1) op.imm[0] = decoding.literal(0);
  if (op.imm[0] < 0) decoding.fail("a number of groups is not negative");
  return op;
}

Op decode_arrive(Decoding& decoding, Modifiers& modifiers) {
  if (!modifiers.take("arrive")) decoding.fail("only cp.async.mbarrier.arrive exists");
  const bool no_increment = modifiers.take("noinc");
  const bool shared = modifiers.take_one({"shared", "shared::cta"}) >= 0;
  if (!modifiers.take("b64")) decoding.fail("the type .b64 is missing");
  modifiers.end();
  decoding.expect_operands(1);
  const auto address = decoding.address(decoding.instruction->operands[0],
                                        shared ? ptx::Space::shared : ptx::Space::generic);
  Op op = decoding.make(Class::barrier, run_arrive, {address.base});
  op.imm[0] = address.offset;
  op.mode[0] = no_increment;
  op.mode[1] = !shared;
  return op;
}

// The rest of [to], [from], bytes {, source size or ignore-src} {, cache policy}.
uint32_t read_optional(Decoding& decoding, bool hinted, std::vector<Arg>& args) {
  const auto& operands = decoding.instruction->operands;
  decoding.expect_operands(hinted ? 4 : 3, hinted ? 5 : 4);
  uint32_t mode = kWhole;
  if (operands.size() == (hinted ? 5u : 4u)) {
    const bool predicate = operands[3].kind == ptx::Operand::Kind::reg &&
                           decoding.register_type(operands[3]) == ptx::Type::pred;
    args.push_back(decoding.source(3, predicate ? ptx::Type::pred : ptx::Type::b32));
    mode = predicate ? kIgnoreSource : kSourceSize;
  }
  if (hinted) args.push_back(decoding.source(operands.size() - 1, ptx::Type::b64));
  return mode;
}

Op decode_copy(Decoding& decoding, Modifiers& modifiers) {
  const int cache = modifiers.take_one({"ca", "cg"});
  if (cache < 0) decoding.fail("cp.async needs .ca or .cg");
  if (modifiers.take_one({"shared", "shared::cta"}) < 0 || !modifiers.take("global"))
    decoding.fail("cp.async copies from .global to .shared");
  const bool hinted = modifiers.take("L2::cache_hint");
  modifiers.take_one({"L2::64B", "L2::128B", "L2::256B"});
  modifiers.end();
  decoding.expect_operands(3, 5);
  const auto& operands = decoding.instruction->operands;
  const auto to = decoding.address(operands[0], ptx::Space::shared);
  const auto from = decoding.address(operands[1], ptx::Space::global);
  const int64_t bytes = decoding.literal(2);
  if (bytes != 16 && (cache == 1 || (bytes != 4 && bytes != 8)))
    decoding.fail(cache == 1 ? "cp.async.cg copies 16 bytes"
                             : "cp.async.ca copies 4, 8 or 16 bytes");
  std::vector<Arg> args = {to.base, from.base};
  const uint32_t mode = read_optional(decoding, hinted, args);
  Op op = decoding.make(Class::async_copy, run_copy, args);
  op.imm[0] = to.offset;
  op.imm[1] = from.offset;
  op.mode[0] = mode;
  op.mode[1] = static_cast<uint32_t>(bytes);
  return op;
}

Op decode_async(Decoding& decoding) {
  refuse_bulk(decoding);
  Modifiers modifiers(*decoding.instruction);
  if (!modifiers.take("async")) decoding.fail("only cp.async exists");
  if (decoding.architecture() < 80) decoding.fail("cp.async needs sm_80");
  if (modifiers.take("mbarrier")) return decode_arrive(decoding, modifiers);
  for (const char* group : {"commit_group", "wait_group", "wait_all"})
    if (modifiers.peek() == group) return decode_group(decoding, modifiers);
  return decode_copy(decoding, modifiers);
}

}  // namespace

void finish_async_arrivals(Block& block, uint64_t object) {
  if (!block.async_copies) return;
  for (Warp& warp : block.warps) {
    AsyncCopies::OfWarp& own = block.async_copies->warps[warp.index];
    for (size_t i = 0; i < own.arrivals.size(); ++i) {
      const AsyncCopies::Arrival& arrival = own.arrivals[i];
      Mask lanes = 0;
      each_lane(arrival.pending,
                [&](int lane) { lanes |= Mask{arrival.object[lane] == object} << lane; });
      land(warp, own, [&](const AsyncCopies::Copy& copy) {
        return copy.number < arrival.before ? lanes : Mask{0};
      });
    }
    trigger_arrivals(warp, own);
  }
}

void add_async(Decoders& decoders) { decoders.add("cp", decode_async); }

}  // namespace emulator
