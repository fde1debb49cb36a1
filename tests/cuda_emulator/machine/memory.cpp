#include "tests/cuda_emulator/machine/memory.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/access.h"
#include "tests/cuda_emulator/machine/knowledge.h"
#include "tests/cuda_emulator/machine/spaces.h"

namespace emulator {
namespace {

using ptx::Space;

// Calls f with the part of a generic access that lies in each space, as an access of that space.
template <class F>
void split(const Access& access, F&& f) {
  if (access.space != Space::generic) return f(access);
  uint64_t address[kLanes];
  Mask of_space[8] = {};
  in_order(access.lanes, [&](int lane) {
    const Space space = space_of(access.address[lane]);
    of_space[static_cast<int>(space)] |= Mask{1} << lane;
    address[lane] = access.address[lane] - window_of(space);
  });
  Access part = access;
  part.address = address;
  for (const Space space :
       {Space::global, Space::shared, Space::local, Space::constant, Space::param}) {
    part.space = space;
    part.lanes = of_space[static_cast<int>(space)];
    if (part.lanes) f(part);
  }
}

}  // namespace

void check_alignment(const Warp& warp, const Op& op, const Access& access) {
  uint64_t bits = 0;
  each_lane(access.lanes, [&](int lane) { bits |= access.address[lane]; });
  const uint64_t wrong = access.alignment - 1;
  if (!(bits & wrong)) return;
  in_order(access.lanes, [&](int lane) {
    if (access.address[lane] & wrong)
      fail_at(warp, op, lane, Fault::misaligned, access.space, access.address[lane], access.bytes,
              "the address must be a multiple of " + std::to_string(access.alignment));
  });
}

void load(Warp& warp, const Op& op, const Access& access, std::byte* data, uint8_t* defined) {
  check_alignment(warp, op, access);
  split(access, [&](const Access& part) {
    if (part.space == Space::shared)
      load_shared(warp, op, part, data, defined);
    else if (part.space == Space::global)
      load_global(warp, op, part, data, defined);
    else
      load_private(warp, op, part, data, defined);
  });
}

void store(Warp& warp, const Op& op, const Access& access, const std::byte* data,
           const uint8_t* defined) {
  check_alignment(warp, op, access);
  split(access, [&](const Access& part) {
    if (part.space == Space::shared)
      store_shared(warp, op, part, data, defined);
    else if (part.space == Space::global)
      store_global(warp, op, part, data, defined);
    else
      store_private(warp, op, part, data, defined);
  });
}

void atomic(Warp& warp, const Op& op, const Access& access, bool ignores_old, const void* context,
            Update update, std::byte* old_data) {
  check_alignment(warp, op, access);
  split(access, [&](const Access& part) {
    if (part.space == Space::shared)
      atomic_shared(warp, op, part, ignores_old, context, update, old_data);
    else if (part.space == Space::global)
      atomic_global(warp, op, part, ignores_old, context, update, old_data);
    else
      fail_at(warp, op, std::countr_zero(part.lanes), Fault::illegal, part.space,
              part.address[std::countr_zero(part.lanes)], part.bytes,
              "atomic operations are for shared and global memory");
  });
}

void addresses(Warp& warp, const Op& op, Mask lanes, Arg base, int64_t offset,
               uint64_t (&to)[kLanes]) {
  const uint64_t* from = warp.registers.in<uint64_t>(base);
  const uint8_t* defined = warp.registers.defined_in(base);
  uint8_t all = 0xff;
  each_lane(lanes, [&](int lane) {
    to[lane] = from[lane] + static_cast<uint64_t>(offset);
    all &= defined[lane];
  });
  if (all == 0xff) [[likely]]
    return;
  in_order(lanes, [&](int lane) {
    if (defined[lane] != 0xff) fail(warp, op, lane, Fault::undefined, "the address is undefined");
  });
}

void fail_undefined_store(const Warp& warp, const Op& op, int lane, const Access& access) {
  fail_at(warp, op, lane, Fault::undefined, access.space, access.address[lane], access.bytes,
          "the stored value is undefined");
}

void fail_undefined_old(const Warp& warp, const Op& op, int lane, const Access& access) {
  fail_at(warp, op, lane, Fault::undefined, access.space, access.address[lane], access.bytes,
          "the value to be updated is undefined");
}

void fence(Warp& warp, const Op&, Mask lanes, Order order) {
  const bool wide = order.scope == Scope::gpu || order.scope == Scope::sys;
  warp.block->clocks.impl->fence(warp.index, lanes, order.semantics != Semantics::release,
                                 order.semantics != Semantics::acquire, wide);
}

}  // namespace emulator
