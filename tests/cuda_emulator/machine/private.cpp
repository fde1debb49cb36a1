// Local, constant and param space.

#include "tests/cuda_emulator/machine/access.h"
#include "tests/cuda_emulator/machine/locate.h"
#include "tests/cuda_emulator/machine/program.h"

namespace emulator {
namespace {

using ptx::Space;

[[noreturn]] void fail_outside(const Warp& warp, const Op& op, int lane, const Access& access,
                               const char* of) {
  std::string what = locate(warp, access.space, access.address[lane], access.bytes);
  if (what.empty()) what = std::string("outside of ") + of;
  fail_at(warp, op, lane, Fault::out_of_bounds, access.space, access.address[lane], access.bytes,
          what);
}

void load_constant(Warp& warp, const Op& op, const Access& access, std::byte* data,
                   uint8_t* defined) {
  const auto& constant = warp.block->grid.constant;
  const auto& valid = warp.block->grid.program.constant_valid;
  in_order(access.lanes, [&](int lane) {
    const uint64_t address = access.address[lane];
    const bool inside = access.bytes <= constant.size() &&
                        address <= constant.size() - access.bytes &&
                        !std::memchr(&valid[address], 0, access.bytes);
    if (!inside) fail_outside(warp, op, lane, access, "the module's constant variables");
    std::memcpy(data + lane * access.bytes, constant.data() + address, access.bytes);
    std::memset(defined + lane * access.bytes, 0xff, access.bytes);
  });
}

// Bytes of a lane in local or param space, null beyond.
std::byte* place(Warp& warp, int lane, const Access& access, uint8_t** defined, bool write) {
  const uint64_t address = access.address[lane];
  return access.space == Space::local ? warp.local(lane, address, access.bytes, defined)
                                      : warp.param(lane, address, access.bytes, defined, write);
}

const char* name_of_private(Space space) {
  return space == Space::local ? "the thread's local variables" : "the parameters";
}

}  // namespace

void load_private(Warp& warp, const Op& op, const Access& access, std::byte* data,
                  uint8_t* defined) {
  if (access.space == Space::constant) return load_constant(warp, op, access, data, defined);
  in_order(access.lanes, [&](int lane) {
    uint8_t* from_defined = nullptr;
    const std::byte* from = place(warp, lane, access, &from_defined, false);
    if (!from) fail_outside(warp, op, lane, access, name_of_private(access.space));
    std::memcpy(data + lane * access.bytes, from, access.bytes);
    if (from_defined)
      std::memcpy(defined + lane * access.bytes, from_defined, access.bytes);
    else
      std::memset(defined + lane * access.bytes, 0xff, access.bytes);
  });
}

void store_private(Warp& warp, const Op& op, const Access& access, const std::byte* data,
                   const uint8_t* defined) {
  in_order(access.lanes, [&](int lane) {
    uint8_t* to_defined = nullptr;
    std::byte* to =
        access.space == Space::constant ? nullptr : place(warp, lane, access, &to_defined, true);
    if (!to) {
      if (access.space == Space::constant || place(warp, lane, access, &to_defined, false))
        fail_at(warp, op, lane, Fault::read_only, access.space, access.address[lane], access.bytes,
                access.space == Space::constant ? "constant memory cannot be written"
                                                : "parameters of a kernel cannot be written");
      fail_outside(warp, op, lane, access, name_of_private(access.space));
    }
    std::memcpy(to, data + lane * access.bytes, access.bytes);
    if (to_defined) std::memcpy(to_defined, defined + lane * access.bytes, access.bytes);
  });
}

}  // namespace emulator
