// Copies and memsets: what all their entry points share.

#include "tests/cuda_emulator/driver/copies.h"

#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "tests/cuda_emulator/driver/memory.h"

namespace emulator::driver {
namespace {

CUmemorytype memory_type(Kind kind) {
  return kind == Kind::host     ? CU_MEMORYTYPE_HOST
         : kind == Kind::device ? CU_MEMORYTYPE_DEVICE
                                : CU_MEMORYTYPE_UNIFIED;
}

struct Given {
  CUmemorytype type;
  uint64_t host, device, x, y, z, pitch, height;
};

Side checked_side(Call& call, const Given& given, const CopyAction& copy) {
  require(given.type == CU_MEMORYTYPE_HOST || given.type == CU_MEMORYTYPE_DEVICE ||
          given.type == CU_MEMORYTYPE_UNIFIED);
  require(given.pitch <= INT_MAX);
  Side side;
  const uint64_t base = given.type == CU_MEMORYTYPE_HOST ? given.host : given.device;
  const uint64_t least_pitch = given.x + copy.width;
  if (copy.height > 1 || copy.depth > 1 || given.y || given.z)
    require(given.pitch == 0 || given.pitch >= least_pitch);
  side.pitch = given.pitch ? given.pitch : least_pitch;
  const uint64_t rows = given.height ? given.height : copy.height + given.y;
  if (copy.depth > 1 || given.z) require(rows >= copy.height + given.y);
  side.slice = rows * side.pitch;
  require(base != 0);
  side.address = base + given.z * side.slice + given.y * side.pitch + given.x;
  const uint64_t bytes = extent(copy, side);
  require(side.address + bytes >= side.address);
  const bool on_device = device_holds(call, side.address, 1);
  side.host =
      given.type == CU_MEMORYTYPE_HOST || (given.type == CU_MEMORYTYPE_UNIFIED && !on_device);
  if (side.host) {
    require(mapped(reinterpret_cast<const void*>(side.address), bytes));
  } else {
    require(on_device && device_holds(call, side.address, bytes));
  }
  return side;
}

bool pageable(Call& call, const Side& side) {
  return side.host && !call.driver.allocation_at(side.address);
}

// Takes the bytes of the source now.
void stage(CopyAction& copy) {
  copy.staged = std::make_shared<std::vector<std::byte>>(extent(copy, copy.from));
  std::memcpy(copy.staged->data(), reinterpret_cast<const void*>(copy.from.address),
              copy.staged->size());
  copy.from.address = reinterpret_cast<uint64_t>(copy.staged->data());
}

// Calls that wait for the default stream may not be made while streams capture.
void may_wait(Call& call, const std::shared_ptr<Stream>& stream) {
  if (stream->legacy) call.implicit_in_capture(*stream->context);
  call.unsafe_in_capture();
}

}  // namespace

uint64_t extent(const CopyAction& copy, const Side& side) {
  return (copy.depth - 1) * side.slice + (copy.height - 1) * side.pitch + copy.width;
}

bool mapped(const void* host, uint64_t bytes) {
  if (!host || !bytes) return host != nullptr;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t start = reinterpret_cast<uint64_t>(host) & ~(page - 1);
  const uint64_t end = reinterpret_cast<uint64_t>(host) + bytes;
  return end > start && msync(reinterpret_cast<void*>(start), end - start, MS_ASYNC) == 0;
}

CUDA_MEMCPY3D flat(Kind to, uint64_t to_address, Kind from, uint64_t from_address, uint64_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = memory_type(to);
  copy.dstHost = reinterpret_cast<void*>(to_address);
  copy.dstDevice = to_address;
  copy.srcMemoryType = memory_type(from);
  copy.srcHost = reinterpret_cast<const void*>(from_address);
  copy.srcDevice = from_address;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D flat(const CUDA_MEMCPY2D& from) {
  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = from.dstMemoryType;
  copy.dstHost = from.dstHost;
  copy.dstDevice = from.dstDevice;
  copy.dstPitch = from.dstPitch;
  copy.dstXInBytes = from.dstXInBytes;
  copy.dstY = from.dstY;
  copy.srcMemoryType = from.srcMemoryType;
  copy.srcHost = from.srcHost;
  copy.srcDevice = from.srcDevice;
  copy.srcPitch = from.srcPitch;
  copy.srcXInBytes = from.srcXInBytes;
  copy.srcY = from.srcY;
  copy.WidthInBytes = from.WidthInBytes;
  copy.Height = from.Height;
  copy.Depth = 1;
  return copy;
}

std::optional<CopyAction> checked_copy(Call& call, const CUDA_MEMCPY3D& given) {
  CopyAction copy;
  copy.given = given;
  copy.width = given.WidthInBytes;
  copy.height = given.Height;
  copy.depth = given.Depth;
  if (!copy.width || !copy.height || !copy.depth) return std::nullopt;
  require(copy.width < uint64_t{1} << 47 && copy.height < uint64_t{1} << 32 &&
          copy.depth < uint64_t{1} << 32);
  copy.to =
      checked_side(call,
                   {given.dstMemoryType, reinterpret_cast<uint64_t>(given.dstHost), given.dstDevice,
                    given.dstXInBytes, given.dstY, given.dstZ, given.dstPitch, given.dstHeight},
                   copy);
  copy.from =
      checked_side(call,
                   {given.srcMemoryType, reinterpret_cast<uint64_t>(given.srcHost), given.srcDevice,
                    given.srcXInBytes, given.srcY, given.srcZ, given.srcPitch, given.srcHeight},
                   copy);
  return copy;
}

CUresult copy(const char* name, const CUDA_MEMCPY3D& given, CUstream handle, bool synchronous,
              const std::function<void(Call&)>& check) {
  return entry(name, [&](Call& call) {
    if (check) check(call);
    const std::shared_ptr<Stream> stream = call.stream(handle);
    if (synchronous) may_wait(call, stream);
    std::optional<CopyAction> action = checked_copy(call, given);
    if (!action) return;
    const bool captured = stream->capture != nullptr;
    const bool from_pageable = pageable(call, action->from);
    const bool to_pageable = pageable(call, action->to);
    const bool touches_host = action->from.host || action->to.host;
    if (!captured && !synchronous && from_pageable && !to_pageable) stage(*action);
    const std::shared_ptr<Work> work = call.submit(stream, std::move(*action));
    if (!captured && ((synchronous && touches_host) || to_pageable))
      call.finish(stream->context, work);
  });
}

std::optional<FillAction> checked_fill(Call& call, const CUDA_MEMSET_NODE_PARAMS& given) {
  const unsigned size = given.elementSize;
  require(size == 1 || size == 2 || size == 4);
  if (given.width == 0 || given.height == 0) return std::nullopt;
  require(given.dst % size == 0);
  require(given.width < uint64_t{1} << 47 && given.height < uint64_t{1} << 32);
  FillAction action{given};
  const uint64_t width = given.width * size;
  if (given.height > 1) {
    require(given.pitch >= width && given.pitch % size == 0 && given.pitch <= INT_MAX);
  } else {
    action.given.pitch = width;
  }
  require(device_holds(call, given.dst, (given.height - 1) * action.given.pitch + width));
  return action;
}

CUresult fill(const char* name, CUdeviceptr to, size_t pitch, unsigned value, unsigned size,
              size_t width, size_t height, CUstream handle, bool synchronous) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(handle);
    if (synchronous) may_wait(call, stream);
    const std::optional<FillAction> action =
        checked_fill(call, {to, pitch, value, size, width, height});
    if (!action) return;
    const Allocation* allocation = call.driver.allocation_at(to);
    const bool visible =
        allocation && allocation->origin != Origin::device && allocation->origin != Origin::pool;
    const std::shared_ptr<Work> work = call.submit(stream, *action);
    if (synchronous && visible) call.finish(stream->context, work);
  });
}

}  // namespace emulator::driver
