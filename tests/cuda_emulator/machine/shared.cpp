// Shared memory.

#include "tests/cuda_emulator/machine/access.h"

namespace emulator {
namespace {

[[noreturn]] void fail_outside(const Warp& warp, const Op& op, int lane, const Access& access) {
  const auto& valid = warp.block->shared_valid;
  const uint64_t address = access.address[lane];
  std::string what;
  if (address >= valid.size()) {
    what = "beyond the shared memory of the block, " + std::to_string(valid.size()) + " bytes";
  } else {
    what = "outside of the variables in shared memory";
  }
  fail_at(warp, op, lane, Fault::out_of_bounds, access.space, address, access.bytes, what);
}

inline void check_bounds(const Warp& warp, const Op& op, int lane, const Access& access) {
  const auto& valid = warp.block->shared_valid;
  const uint64_t address = access.address[lane];
  if (valid.size() < access.bytes || address > valid.size() - access.bytes)
    fail_outside(warp, op, lane, access);
  uint8_t all = 1;
  for (unsigned i = 0; i < access.bytes; ++i) all &= valid[address + i];
  if (!all) fail_outside(warp, op, lane, access);
}

}  // namespace

void load_shared(Warp& warp, const Op& op, const Access& access, std::byte* data,
                 uint8_t* defined) {
  Block& block = *warp.block;
  in_order(access.lanes, [&](int lane) {
    check_bounds(warp, op, lane, access);
    const uint64_t address = access.address[lane];
    std::memcpy(data + lane * access.bytes, &block.shared[address], access.bytes);
    std::memcpy(defined + lane * access.bytes, &block.shared_defined[address], access.bytes);
  });
}

void store_shared(Warp& warp, const Op& op, const Access& access, const std::byte* data,
                  const uint8_t* defined) {
  Block& block = *warp.block;
  in_order(access.lanes, [&](int lane) {
    check_bounds(warp, op, lane, access);
    const uint64_t address = access.address[lane];
    if (!access.keeps_undefined && !all_defined(defined + lane * access.bytes, access.bytes))
      fail_undefined_store(warp, op, lane, access);
    std::memcpy(&block.shared[address], data + lane * access.bytes, access.bytes);
    std::memcpy(&block.shared_defined[address], defined + lane * access.bytes, access.bytes);
  });
  ++block.progress;
}

void atomic_shared(Warp& warp, const Op& op, const Access& access, bool ignores_old,
                   const void* context, Update update, std::byte* old_data) {
  Block& block = *warp.block;
  in_order(access.lanes, [&](int lane) {
    check_bounds(warp, op, lane, access);
    const uint64_t address = access.address[lane];
    std::byte* place = &block.shared[address];
    uint8_t* defined = &block.shared_defined[address];
    if (!ignores_old && !all_defined(defined, access.bytes))
      fail_undefined_old(warp, op, lane, access);
    std::byte *old = old_data + lane * access.bytes, fresh[32];
    std::memcpy(old, place, access.bytes);
    if (!update(context, lane, old, fresh)) return;
    if (std::memcmp(fresh, old, access.bytes) != 0) ++block.progress;
    std::memcpy(place, fresh, access.bytes);
    std::memset(defined, 0xff, access.bytes);
  });
}

}  // namespace emulator
