// mbarrier: barrier objects in shared memory, with phases, arrivals and transactions.
//
// What an object knows is kept beside shared memory, by its address; its eight bytes there carry
// only the marks of who touched them, so that a use that is not ordered after mbarrier.init is a
// race. An arrival releases to its phase, a successful wait acquires what the arrivals of the
// completed phase released (not with .relaxed). States are opaque to programs; here they hold the
// object, the phase and the count before the arrival, and are checked.
//
// Not handled: objects of other blocks of a cluster (.shared::cluster), which is refused by name.
// The scopes .cta and .cluster are alike, and a time hint changes nothing.

#include "tests/cuda_emulator/isa/mbarrier.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "tests/cuda_emulator/isa/async.h"
#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/spaces.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {
namespace {

constexpr uint64_t kObjectBytes = 8;
constexpr int64_t kMostCount = (1 << 20) - 1;  // of arrivals and of transactions

struct Object {
  int64_t expected = 0, pending = 0;  // arrivals a phase; those that this phase still waits for
  int64_t transactions = 0;
  uint64_t phase = 0;
  Known arrived, completed;  // released by arrivals of this phase; of the one before
};

}  // namespace

// Block::mbarriers.
struct Mbarriers {
  std::map<uint64_t, Object> objects;  // by offset in shared memory
  uint64_t first = ~uint64_t{0}, end = 0;

  // The first object that overlaps [address, address + bytes).
  std::map<uint64_t, Object>::iterator overlapping(uint64_t address, uint64_t bytes) {
    const auto it = objects.lower_bound(address < kObjectBytes ? 0 : address - kObjectBytes + 1);
    return it != objects.end() && it->first < address + bytes ? it : objects.end();
  }
};

namespace {

// Op::mode[0].
enum : uint32_t {
  kGeneric = 1,
  kRelaxed = 2,
  kNoComplete = 4,
  kDrop = 8,
  kExpect = 16,
  kParity = 32,
  kCounted = 64
};

// A state: the count before the arrival in bits 0-19, the phase in 20-39, the object in 40-54 (in
// units of eight bytes), whether it is one of .noComplete in 55, and a tag above.
constexpr uint64_t kStateTag = 0xb5;

uint64_t make_state(const Object& object, uint64_t address, bool no_complete) {
  return static_cast<uint64_t>(object.pending) | (object.phase & 0xfffff) << 20 |
         (address / kObjectBytes & 0x7fff) << 40 | uint64_t{no_complete} << 55 | kStateTag << 56;
}

[[noreturn]] void fail_object(const Warp& warp, const Op& op, int lane, uint64_t address,
                              const std::string& what) {
  fail_at(warp, op, lane, Fault::barrier, ptx::Space::shared, address, kObjectBytes, what);
}

Object& object_at(const Warp& warp, const Op& op, int lane, uint64_t address) {
  Block& block = *warp.block;
  if (block.mbarriers) {
    const auto it = block.mbarriers->objects.find(address);
    if (it != block.mbarriers->objects.end()) return it->second;
  }
  fail_object(warp, op, lane, address,
              "there is no mbarrier object: used before mbarrier.init or after mbarrier.inval");
}

Access access_to(Mask lanes, const uint64_t* address) {
  Access access;
  access.space = ptx::Space::shared;
  access.bytes = access.alignment = kObjectBytes;
  access.lanes = lanes;
  access.address = address;
  access.counted = false;
  return access;
}

// Marks a write of the object's bytes, by init and inval.
void mark_write(Warp& warp, const Op& op, Mask lanes, const uint64_t* address) {
  const std::byte zeros[kLanes * kObjectBytes] = {};
  uint8_t defined[kLanes * kObjectBytes];
  std::memset(defined, 0xff, sizeof defined);
  store(warp, op, access_to(lanes, address), zeros, defined);
}

// Marks a use of the object, which is atomic but must come after its init.
void mark_use(Warp& warp, const Op& op, Mask lanes, const uint64_t* address) {
  Access access = access_to(lanes, address);
  access.order = {Semantics::relaxed, Scope::cta};
  std::byte old[kLanes * kObjectBytes];
  const auto keep = [](const void*, int, const std::byte*, std::byte*) { return false; };
  atomic(warp, op, access, true, nullptr, keep, old);
}

// A count, parity, hint or state, which must be defined.
template <class T>
const T* operand(const Warp& warp, const Op& op, Mask lanes, Arg arg, const char* name) {
  const uint8_t* defined = warp.registers.defined_in(arg);
  each_lane(lanes, [&](int lane) {
    if (defined[lane] != 0xff)
      fail(warp, op, lane, Fault::undefined, std::string("the ") + name + " was never written");
  });
  return warp.registers.in<T>(arg);
}

int64_t arrivals(const Warp& warp, const Op& op, int lane, uint64_t address, uint32_t count) {
  if (count == 0 || count > kMostCount)
    fail_object(warp, op, lane, address,
                "a count of " + std::to_string(count) + " is not one of 1 to 1048575");
  return count;
}

void complete_if_done(Block& block, Object& object) {
  if (object.pending != 0 || object.transactions != 0) return;
  ++object.phase;
  object.pending = object.expected;
  object.completed = std::move(object.arrived);
  object.arrived = nullptr;
  ++block.progress;
}

void add_transactions(const Warp& warp, const Op& op, int lane, uint64_t address, Object& object,
                      int64_t change) {
  object.transactions += change;
  if (object.transactions > kMostCount || object.transactions < -kMostCount)
    fail_object(warp, op, lane, address,
                "the transactions of the mbarrier object overrun their 20 bits");
}

void arrive(Warp& warp, const Op& op, int lane, uint64_t address, Object& object, int64_t count) {
  if (count > object.pending)
    fail_object(warp, op, lane, address,
                std::to_string(count) + " arrivals overrun the " + std::to_string(object.pending) +
                    " that the phase of the mbarrier object still waits for");
  if (op.mode[0] & kNoComplete && count == object.pending)
    fail_object(warp, op, lane, address, "an arrival with .noComplete completes the phase");
  if (op.mode[0] & kDrop) {
    if (count > object.expected)
      fail_object(warp, op, lane, address, "more arrivals are dropped than are expected");
    object.expected -= count;
  }
  object.pending -= count;
  complete_if_done(*warp.block, object);
}

// Lanes of the mask that name the same object as the first of them.
Mask same_object(Mask lanes, const uint64_t* address) {
  const uint64_t first = address[std::countr_zero(lanes)];
  Mask same = 0;
  each_lane(lanes, [&](int lane) { same |= Mask{address[lane] == first} << lane; });
  return same;
}

void run_init(Warp& warp, const Op& op, Mask lanes) {
  uint64_t address[kLanes];
  object_addresses(warp, op, lanes, op.args[0], op.mode[0] & kGeneric, address);
  const uint32_t* counts = operand<uint32_t>(warp, op, lanes, op.args[1], "count");
  mark_write(warp, op, lanes, address);
  Block& block = *warp.block;
  if (!block.mbarriers) block.mbarriers = std::make_shared<Mbarriers>();
  Mbarriers& all = *block.mbarriers;
  each_lane(lanes, [&](int lane) {
    if (all.overlapping(address[lane], kObjectBytes) != all.objects.end())
      fail_object(warp, op, lane, address[lane],
                  "mbarrier.init where an mbarrier object lives that was not invalidated");
    Object object;
    object.expected = object.pending = arrivals(warp, op, lane, address[lane], counts[lane]);
    all.objects.emplace(address[lane], object);
    all.first = std::min(all.first, address[lane]);
    all.end = std::max(all.end, address[lane] + kObjectBytes);
  });
  ++block.progress;
}

void run_inval(Warp& warp, const Op& op, Mask lanes) {
  uint64_t address[kLanes];
  object_addresses(warp, op, lanes, op.args[0], op.mode[0] & kGeneric, address);
  each_lane(lanes, [&](int lane) { object_at(warp, op, lane, address[lane]); });
  mark_write(warp, op, lanes, address);
  each_lane(lanes, [&](int lane) {
    object_at(warp, op, lane, address[lane]);  // fails for a second lane that names it
    warp.block->mbarriers->objects.erase(address[lane]);
  });
}

// Arrivals of the lanes of a mask: releases for them, then calls each(lane, object). Lanes that
// arrive on the same object release together, unless its phase may end between two of them.
template <class Count, class Each>
void arrive_all(Warp& warp, const Op& op, Mask lanes, const uint64_t* address, bool releases,
                Count&& count_of, Each&& each) {
  for (Mask rest = lanes; rest;) {
    const Mask group = same_object(rest, address);
    rest &= ~group;
    const int first = std::countr_zero(group);
    Object& object = object_at(warp, op, first, address[first]);
    int64_t all = 0;
    each_lane(group, [&](int lane) { all += count_of(lane); });
    const auto release = [&](Mask mask) {
      if (!releases) return;
      const Known known = warp.block->clocks.release(warp.index, mask);
      object.arrived = Clocks::merge(object.arrived, known);
    };
    const bool together = all <= object.pending;
    if (together) release(group);
    each_lane(group, [&](int lane) {
      if (!together) release(Mask{1} << lane);
      each(lane, object);
    });
  }
}

// args: state (or a sink), address, count or transactions.
void run_arrive(Warp& warp, const Op& op, Mask lanes) {
  uint64_t address[kLanes];
  object_addresses(warp, op, lanes, op.args[1], op.mode[0] & kGeneric, address);
  const uint32_t* amounts =
      op.arg_count > 2 ? operand<uint32_t>(warp, op, lanes, op.args[2], "count") : nullptr;
  mark_use(warp, op, lanes, address);
  const bool sink = op.args[0].kind == Arg::Kind::sink;
  const auto count_of = [&](int lane) {
    return op.mode[0] & kCounted ? arrivals(warp, op, lane, address[lane], amounts[lane]) : 1;
  };
  const bool releases = !(op.mode[0] & kRelaxed);
  arrive_all(warp, op, lanes, address, releases, count_of, [&](int lane, Object& object) {
    if (op.mode[0] & kExpect)
      add_transactions(warp, op, lane, address[lane], object, amounts[lane]);
    if (!sink) {
      warp.registers.out<uint64_t>(op.args[0])[lane] =
          make_state(object, address[lane], op.mode[0] & kNoComplete);
      warp.registers.defined_out(op.args[0])[lane] = 0xff;
    }
    arrive(warp, op, lane, address[lane], object, count_of(lane));
  });
}

// args: address, amount. mode[1]: +1 for expect_tx, -1 for complete_tx.
void run_transactions(Warp& warp, const Op& op, Mask lanes) {
  uint64_t address[kLanes];
  object_addresses(warp, op, lanes, op.args[0], op.mode[0] & kGeneric, address);
  const uint32_t* amounts = operand<uint32_t>(warp, op, lanes, op.args[1], "count");
  mark_use(warp, op, lanes, address);
  each_lane(lanes, [&](int lane) {
    Object& object = object_at(warp, op, lane, address[lane]);
    add_transactions(warp, op, lane, address[lane], object, op.imm[1] * int64_t{amounts[lane]});
    if (op.imm[1] < 0) complete_if_done(*warp.block, object);
  });
}

bool state_is_complete(const Warp& warp, const Op& op, int lane, uint64_t address,
                       const Object& object, uint64_t state) {
  if (state >> 56 != kStateTag || (state >> 40 & 0x7fff) != (address / kObjectBytes & 0x7fff))
    fail_object(warp, op, lane, address,
                "the state is not one that an arrival on this mbarrier object gave");
  const uint64_t passed = (object.phase - (state >> 20)) & 0xfffff;
  if (passed > 1)
    fail_object(warp, op, lane, address,
                "the state is neither of the current phase nor of the one before");
  return passed == 1;
}

bool parity_is_complete(const Warp& warp, const Op& op, int lane, uint64_t address,
                        const Object& object, uint32_t parity) {
  if (parity > 1)
    fail_object(warp, op, lane, address, "a phase parity is 0 or 1, not " + std::to_string(parity));
  return (object.phase & 1) != parity;
}

// args: predicate, address, state or parity, and a hint that is only looked at for definedness.
void run_wait(Warp& warp, const Op& op, Mask lanes) {
  uint64_t address[kLanes];
  object_addresses(warp, op, lanes, op.args[1], op.mode[0] & kGeneric, address);
  const bool by_parity = op.mode[0] & kParity;
  const uint32_t* parities =
      by_parity ? operand<uint32_t>(warp, op, lanes, op.args[2], "phase parity") : nullptr;
  const uint64_t* states =
      by_parity ? nullptr : operand<uint64_t>(warp, op, lanes, op.args[2], "state");
  mark_use(warp, op, lanes, address);
  Block& block = *warp.block;
  Mask complete = 0;
  for (Mask rest = lanes; rest;) {
    const Mask group = same_object(rest, address);
    rest &= ~group;
    const int first = std::countr_zero(group);
    Object& object = object_at(warp, op, first, address[first]);
    finish_async_arrivals(block, address[first]);
    Mask successful = 0;
    each_lane(group, [&](int lane) {
      const bool done =
          by_parity ? parity_is_complete(warp, op, lane, address[lane], object, parities[lane])
                    : state_is_complete(warp, op, lane, address[lane], object, states[lane]);
      successful |= Mask{done} << lane;
    });
    if (successful && !(op.mode[0] & kRelaxed))
      block.clocks.acquire(warp.index, successful, object.completed);
    complete |= successful;
  }
  warp.registers.set_predicate(op.args[0], lanes, complete);
  if (!complete) warp.dozes = true;
}

void run_pending_count(Warp& warp, const Op& op, Mask lanes) {
  const uint64_t* states = operand<uint64_t>(warp, op, lanes, op.args[1], "state");
  uint32_t* counts = warp.registers.out<uint32_t>(op.args[0]);
  uint8_t* defined = warp.registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    if (states[lane] >> 55 != (kStateTag << 1 | 1))
      fail(warp, op, lane, Fault::barrier,
           "mbarrier.pending_count of a state that no arrival with .noComplete gave");
    counts[lane] = static_cast<uint32_t>(states[lane] & 0xfffff);
    defined[lane] = 0xff;
  });
}

// Decoding.

struct Form {
  uint32_t mode = 0;
  bool shared = false;
};

void require_architecture(const Decoding& decoding, int least) {
  if (decoding.architecture() < least) decoding.fail("needs sm_" + std::to_string(least));
}

// {.sem.scope}{.space}.b64 at the end of all forms. `sem`: the semantics that they may have beside
// .relaxed, or that alone; "" for none.
Form read_rest(Decoding& decoding, Modifiers& modifiers, std::string_view sem) {
  Form form;
  const bool relaxed = !sem.empty() && modifiers.take("relaxed");
  if (relaxed || (!sem.empty() && modifiers.take(sem))) {
    require_architecture(decoding, relaxed ? 90 : 80);
    if (modifiers.take_one({"cta", "cluster"}) < 0)
      decoding.fail("a scope (.cta or .cluster) must follow the semantics");
  }
  if (relaxed) form.mode |= kRelaxed;
  if (modifiers.take("shared::cluster"))
    decoding.fail("mbarrier objects in .shared::cluster are not emulated");
  form.shared = modifiers.take_one({"shared", "shared::cta"}) >= 0;
  if (!form.shared) form.mode |= kGeneric;
  if (!modifiers.take("b64")) decoding.fail("the type .b64 is missing");
  modifiers.end();
  return form;
}

Decoding::Address object_address(Decoding& decoding, size_t operand, const Form& form) {
  return decoding.address(decoding.instruction->operands.at(operand),
                          form.shared ? ptx::Space::shared : ptx::Space::generic);
}

Op finish(Decoding& decoding, void (*run)(Warp&, const Op&, Mask), const std::vector<Arg>& args,
          const Form& form, int64_t offset) {
  Op op = decoding.make(Class::barrier, run, args);
  op.imm[0] = offset;
  op.mode[0] = form.mode;
  return op;
}

Op decode_init(Decoding& decoding, Modifiers& modifiers) {
  const Form form = read_rest(decoding, modifiers, "");
  decoding.expect_operands(2);
  const auto address = object_address(decoding, 0, form);
  return finish(decoding, run_init, {address.base, decoding.source(1, ptx::Type::b32)}, form,
                address.offset);
}

Op decode_inval(Decoding& decoding, Modifiers& modifiers) {
  const Form form = read_rest(decoding, modifiers, "");
  decoding.expect_operands(1);
  const auto address = object_address(decoding, 0, form);
  return finish(decoding, run_inval, {address.base}, form, address.offset);
}

Op decode_transactions(Decoding& decoding, Modifiers& modifiers, int sign) {
  require_architecture(decoding, 90);
  const Form form = read_rest(decoding, modifiers, "relaxed");
  decoding.expect_operands(2);
  const auto address = object_address(decoding, 0, form);
  Op op = finish(decoding, run_transactions, {address.base, decoding.source(1, ptx::Type::b32)},
                 form, address.offset);
  op.imm[1] = sign;
  return op;
}

Op decode_arrive(Decoding& decoding, Modifiers& modifiers, bool drop) {
  const int kind = modifiers.take_one({"expect_tx", "noComplete"});
  Form form = read_rest(decoding, modifiers, "release");
  if (kind == 0) form.mode |= kExpect;
  if (kind == 1) form.mode |= kNoComplete | kCounted;
  if (drop) form.mode |= kDrop;
  decoding.expect_operands(kind < 0 ? 2 : 3, 3);
  const auto address = object_address(decoding, 1, form);
  std::vector<Arg> args = {decoding.target(0, ptx::Type::b64, false, true), address.base};
  if (decoding.instruction->operands.size() == 3) {
    args.push_back(decoding.source(2, ptx::Type::b32));
    if (kind < 0) form.mode |= kCounted;
    if (kind != 1) require_architecture(decoding, 90);
  }
  return finish(decoding, run_arrive, args, form, address.offset);
}

Op decode_wait(Decoding& decoding, Modifiers& modifiers, bool tries) {
  if (tries) require_architecture(decoding, 90);
  const bool parity = modifiers.take("parity");
  Form form = read_rest(decoding, modifiers, "acquire");
  if (parity) form.mode |= kParity;
  decoding.expect_operands(3, tries ? 4 : 3);
  const auto address = object_address(decoding, 1, form);
  std::vector<Arg> args = {decoding.target(0, ptx::Type::pred), address.base,
                           decoding.source(2, parity ? ptx::Type::b32 : ptx::Type::b64)};
  if (decoding.instruction->operands.size() == 4)
    args.push_back(decoding.source(3, ptx::Type::b32));
  return finish(decoding, run_wait, args, form, address.offset);
}

Op decode_pending_count(Decoding& decoding, Modifiers& modifiers) {
  if (!modifiers.take("b64")) decoding.fail("the type .b64 is missing");
  modifiers.end();
  decoding.expect_operands(2);
  return finish(decoding, run_pending_count,
                {decoding.target(0, ptx::Type::b32), decoding.source(1, ptx::Type::b64)}, {}, 0);
}

Op decode_mbarrier(Decoding& decoding) {
  require_architecture(decoding, 80);
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take("init")) return decode_init(decoding, modifiers);
  if (modifiers.take("inval")) return decode_inval(decoding, modifiers);
  if (modifiers.take("expect_tx")) return decode_transactions(decoding, modifiers, 1);
  if (modifiers.take("complete_tx")) return decode_transactions(decoding, modifiers, -1);
  if (modifiers.take("arrive")) return decode_arrive(decoding, modifiers, false);
  if (modifiers.take("arrive_drop")) return decode_arrive(decoding, modifiers, true);
  if (modifiers.take("test_wait")) return decode_wait(decoding, modifiers, false);
  if (modifiers.take("try_wait")) return decode_wait(decoding, modifiers, true);
  if (modifiers.take("pending_count")) return decode_pending_count(decoding, modifiers);
  decoding.fail("mbarrier." + std::string(modifiers.peek()) + " is not known");
  return {};
}

}  // namespace

void check_mbarriers(const Warp& warp, const Op& op, const Access& access) {
  Mbarriers& all = *warp.block->mbarriers;
  each_lane(access.lanes, [&](int lane) {
    const uint64_t address = access.address[lane];
    if (address >= all.end || address + access.bytes <= all.first) return;
    const auto it = all.overlapping(address, access.bytes);
    if (it == all.objects.end() || op.kind == Class::barrier) return;
    fail_at(warp, op, lane, Fault::barrier, ptx::Space::shared, address, access.bytes,
            "touches the mbarrier object at " + std::to_string(it->first) +
                ", which only mbarrier instructions may");
  });
}

void object_addresses(Warp& warp, const Op& op, Mask lanes, Arg base, bool generic,
                      uint64_t (&to)[kLanes]) {
  addresses(warp, op, lanes, base, op.imm[0], to);
  if (!generic) return;
  each_lane(lanes, [&](int lane) {
    if (space_of(to[lane]) != ptx::Space::shared)
      fail_at(warp, op, lane, Fault::out_of_bounds, ptx::Space::generic, to[lane], kObjectBytes,
              "the generic address of an mbarrier object is not in shared memory");
    to[lane] -= kSharedWindow;
  });
}

void expect_async_arrivals(Warp& warp, const Op& op, Mask lanes, const uint64_t* objects,
                           bool increments) {
  mark_use(warp, op, lanes, objects);
  each_lane(lanes, [&](int lane) {
    Object& object = object_at(warp, op, lane, objects[lane]);
    if (!increments) return;
    if (object.pending == kMostCount)
      fail_object(warp, op, lane, objects[lane],
                  "the pending count of the mbarrier object overruns");
    ++object.pending;
  });
}

void arrive_asynchronously(Warp& warp, const Op& op, Mask lanes, const uint64_t* objects) {
  const auto one = [](int) { return 1; };
  arrive_all(warp, op, lanes, objects, true, one, [&](int lane, Object& object) {
    if (object.pending < 1)
      fail_object(warp, op, lane, objects[lane],
                  "an arrival of cp.async overruns the count of the mbarrier object");
    --object.pending;
    complete_if_done(*warp.block, object);
  });
}

void add_mbarrier(Decoders& decoders) { decoders.add("mbarrier", decode_mbarrier); }

}  // namespace emulator
