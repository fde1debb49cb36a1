#include "tests/cuda_emulator/machine/memory.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/access.h"
#include "tests/cuda_emulator/machine/spaces.h"

namespace emulator {
namespace {

using ptx::Space;

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

// Wavefronts of a quarter, half or whole warp: the most different words that lie in one bank.
static unsigned pass_wavefronts(const uint64_t* address, Mask lanes, unsigned words) {
  uint64_t first[32];
  uint64_t more[32 * kLanes];
  uint8_t count[32] = {};
  Mask used = 0;
  unsigned most = 0;
  in_order(lanes, [&](int lane) {
    for (unsigned i = 0; i < words; ++i) {
      const uint64_t word = (address[lane] >> 2) + i;
      const unsigned bank = word & 31;
      if (!(used >> bank & 1)) {
        used |= Mask{1} << bank;
        first[bank] = word;
        most = std::max(most, 1u);
        continue;
      }
      if (first[bank] == word) continue;
      uint64_t* others = more + bank * kLanes;
      if (std::find(others, others + count[bank], word) != others + count[bank]) continue;
      others[count[bank]++] = word;
      most = std::max(most, count[bank] + 1u);
    }
  });
  return most;
}

unsigned shared_wavefronts(const uint64_t* address, Mask lanes, unsigned bytes) {
  const unsigned words = std::max(bytes / 4, 1u), lanes_at_once = 32 / words;
  unsigned wavefronts = 0;
  for (unsigned first = 0; first < 32; first += lanes_at_once) {
    const Mask pass =
        lanes_at_once == 32 ? lanes : lanes & (((Mask{1} << lanes_at_once) - 1) << first);
    if (pass) wavefronts += pass_wavefronts(address, pass, words);
  }
  return wavefronts;
}

}  // namespace emulator
