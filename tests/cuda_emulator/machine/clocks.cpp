#include "tests/cuda_emulator/machine/clocks.h"

#include "tests/cuda_emulator/machine/access.h"
#include "tests/cuda_emulator/machine/allocations.h"
#include "tests/cuda_emulator/machine/races.h"

namespace emulator {

struct Knowledge {};
struct Clocks::Impl {};

Clocks::Clocks(uint64_t, unsigned) : impl(std::make_unique<Impl>()) {}
Clocks::~Clocks() = default;
void Clocks::join(const std::vector<Mask>&) {}
void Clocks::join_warp(unsigned, Mask) {}
Known Clocks::release(unsigned, Mask) { return std::make_shared<Knowledge>(); }
Known Clocks::merge(const Known& a, const Known& b) { return a ? a : b; }
void Clocks::acquire(unsigned, Mask, const Known&) {}

struct SharedShadow::Impl {};
SharedShadow::SharedShadow(size_t) : impl(std::make_unique<Impl>()) { ++living_blocks; }
SharedShadow::~SharedShadow() { --living_blocks; }

void async_issue(Warp&, const Op&, const AsyncCopy&) {}

void async_land(Warp& warp, const Op& op, const AsyncCopy& copy, Mask lanes) {
  in_order(lanes, [&](int lane) {
    std::byte data[kLanes * 16] = {};
    uint8_t defined[kLanes * 16];
    std::memset(defined, 0xff, sizeof defined);
    Access access;
    access.bytes = access.alignment = copy.read[lane];
    access.lanes = Mask{1} << lane;
    access.address = copy.from;
    if (access.bytes) load_global(warp, op, access, data, defined);
    std::memmove(data + lane * copy.bytes, data + lane * access.bytes, access.bytes);
    access.bytes = access.alignment = copy.bytes;
    access.address = copy.to;
    access.space = ptx::Space::shared;
    access.keeps_undefined = true;
    store_shared(warp, op, access, data, defined);
  });
}

void fence(Warp&, const Op&, Mask, Order) {}

}  // namespace emulator
