// Global memory.

#include "tests/cuda_emulator/machine/access.h"
#include "tests/cuda_emulator/machine/allocations.h"

namespace emulator {
namespace {

[[noreturn]] void fail_outside(const Warp& warp, const Op& op, int lane, const Access& access) {
  const uint64_t address = access.address[lane];
  bool freed = false;
  const std::string what = warp.block->grid.memory.impl->describe(address, access.bytes, &freed);
  fail_at(warp, op, lane, freed ? Fault::freed : Fault::out_of_bounds, ptx::Space::global, address,
          access.bytes, what);
}

// Calls f(lane, allocation) in order, with the lock of the chunk held.
template <class F>
void each_location(Warp& warp, const Op& op, const Access& access, F&& f) {
  const DeviceMemory::Impl& memory = *warp.block->grid.memory.impl;
  Allocation* allocation = nullptr;
  std::unique_lock<SpinLock> lock;
  Chunk* held = nullptr;
  in_order(access.lanes, [&](int lane) {
    const uint64_t address = access.address[lane];
    if (!allocation || !allocation->holds(address, access.bytes)) {
      allocation = memory.find(address);
      if (!allocation || !allocation->holds(address, access.bytes) || !allocation->live) {
        if (held) lock.unlock();
        held = nullptr;
        fail_outside(warp, op, lane, access);
      }
    }
    Chunk& chunk = allocation->chunk(address);
    if (&chunk != held) {
      if (held) lock.unlock();
      lock = std::unique_lock(chunk.lock);
      held = &chunk;
    }
    f(lane, *allocation, address - allocation->base);
  });
}

}  // namespace

void load_global(Warp& warp, const Op& op, const Access& access, std::byte* data,
                 uint8_t* defined) {
  const unsigned bytes = access.bytes;
  each_location(warp, op, access, [&](int lane, Allocation& a, uint64_t offset) {
    std::memcpy(data + lane * bytes, a.data + offset, bytes);
    if (a.defined)
      std::memcpy(defined + lane * bytes, &a.defined[offset], bytes);
    else
      std::memset(defined + lane * bytes, 0xff, bytes);
  });
}

void store_global(Warp& warp, const Op& op, const Access& access, const std::byte* data,
                  const uint8_t* defined) {
  const unsigned bytes = access.bytes;
  each_location(warp, op, access, [&](int lane, Allocation& a, uint64_t offset) {
    if (!access.keeps_undefined && !all_defined(defined + lane * bytes, bytes))
      fail_undefined_store(warp, op, lane, access);
    std::memcpy(a.data + offset, data + lane * bytes, bytes);
    if (a.defined) std::memcpy(&a.defined[offset], defined + lane * bytes, bytes);
  });
  warp.block->grid.progress.fetch_add(1, std::memory_order_relaxed);
}

void atomic_global(Warp& warp, const Op& op, const Access& access, bool ignores_old,
                   const void* context, Update update, std::byte* old_data) {
  const unsigned bytes = access.bytes;
  bool changed = false;
  each_location(warp, op, access, [&](int lane, Allocation& a, uint64_t offset) {
    uint8_t* defined = a.defined ? &a.defined[offset] : nullptr;
    if (!ignores_old && defined && !all_defined(defined, bytes))
      fail_undefined_old(warp, op, lane, access);
    std::byte *old = old_data + lane * bytes, fresh[32];
    std::memcpy(old, a.data + offset, bytes);
    if (!update(context, lane, old, fresh)) return;
    changed = changed || std::memcmp(fresh, old, bytes) != 0;
    std::memcpy(a.data + offset, fresh, bytes);
    if (defined) std::memset(defined, 0xff, bytes);
  });
  if (changed) warp.block->grid.progress.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace emulator
