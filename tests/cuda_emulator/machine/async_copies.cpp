#include "tests/cuda_emulator/machine/access.h"
#include "tests/cuda_emulator/machine/races.h"

namespace emulator {
namespace {

// The source side, of the lanes that read something.
Access source_of(const AsyncCopy& copy, Mask lanes) {
  Access access;
  access.space = ptx::Space::global;
  access.bytes = access.alignment = copy.bytes;
  access.address = copy.from;
  in_order(lanes, [&](int lane) {
    if (copy.read[lane]) access.lanes |= Mask{1} << lane;
  });
  return access;
}

Access destination_of(const AsyncCopy& copy, Mask lanes) {
  Access access;
  access.space = ptx::Space::shared;
  access.bytes = access.alignment = copy.bytes;
  access.address = copy.to;
  access.lanes = lanes;
  return access;
}

}  // namespace

void async_issue(Warp& warp, const Op& op, const AsyncCopy& copy) {
  const Access source = source_of(copy, copy.lanes);
  const Access destination = destination_of(copy, copy.lanes);
  check_alignment(warp, op, source);
  check_alignment(warp, op, destination);
  std::byte data[16 * kLanes];
  uint8_t defined[16 * kLanes];
  if (source.lanes) load_for_copy(warp, op, source, copy.read, data, defined);
  claim_shared(warp, op, destination);
}

void async_land(Warp& warp, const Op& op, const AsyncCopy& copy, Mask lanes) {
  std::byte data[16 * kLanes] = {};
  uint8_t defined[16 * kLanes];
  std::memset(defined, 0xff, sizeof defined);
  Access source = source_of(copy, lanes);
  source.counted = false;
  if (source.lanes) load_for_copy(warp, op, source, copy.read, data, defined);
  land_shared(warp, op, destination_of(copy, lanes), data, defined);
}

}  // namespace emulator
