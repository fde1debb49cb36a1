// Device memory: allocation and what is known of addresses.

#include "tests/cuda_emulator/driver/memory.h"

#include <cstdlib>
#include <limits>

using namespace emulator::driver;

namespace emulator::driver {

const Allocation& allocate(Call& call, uint64_t bytes, Origin origin, unsigned flags) {
  Driver& driver = call.driver;
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.origin = origin;
  allocation.flags = flags;
  if (origin != Origin::pool) allocation.context = call.context();
  if (origin != Origin::host) require(!driver.allocation_fails(), CUDA_ERROR_OUT_OF_MEMORY);
  if (origin == Origin::device || origin == Origin::pool) {
    allocation.address = driver.memory->allocate(bytes);
    if (!allocation.address && driver.pending_frees > 0) {
      driver.worker.drain(call.lock, nullptr);
      allocation.address = driver.memory->allocate(bytes);
    }
    require(allocation.address != 0, CUDA_ERROR_OUT_OF_MEMORY);
  } else {
    require(bytes <= std::numeric_limits<uint64_t>::max() - 4096, CUDA_ERROR_OUT_OF_MEMORY);
    void* host = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    require(host, CUDA_ERROR_OUT_OF_MEMORY);
    allocation.address = driver.memory->adopt(host, bytes);
  }
  allocation.id = driver.next_id++;
  return driver.allocations[allocation.address] = allocation;
}

Origin forget(Driver& driver, uint64_t address) {
  const auto it = driver.allocations.find(address);
  require(it != driver.allocations.end());
  const Allocation allocation = it->second;
  driver.allocations.erase(it);
  if (const std::shared_ptr<Pool> pool = driver.pools.find(allocation.pool))
    pool->used -= allocation.bytes;
  return allocation.origin;
}

void release(Driver& driver, uint64_t address) {
  const Origin origin = forget(driver, address);
  std::lock_guard device(driver.device_mutex);
  driver.memory->release(address);
  if (origin == Origin::host || origin == Origin::managed)
    std::free(reinterpret_cast<void*>(address));
}

bool device_holds(Call& call, uint64_t address, uint64_t bytes) {
  return call.driver.memory->contains(address, bytes);
}

}  // namespace emulator::driver

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return entry("cuMemGetInfo", [&](Call& call) {
    call.sound_context();
    require(free && total);
    *total = call.driver.memory->capacity();
    *free = *total - call.driver.memory->used();
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return entry("cuMemAlloc", [&](Call& call) {
    call.sound_context();
    require(dptr && bytesize > 0);
    call.unsafe_in_capture();
    *dptr = allocate(call, bytesize, Origin::device).address;
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  return entry("cuMemAllocPitch", [&](Call& call) {
    call.sound_context();
    require(dptr && pPitch && WidthInBytes > 0 && Height > 0);
    require(ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
    require(WidthInBytes <= uint64_t{1} << 40 && Height <= uint64_t{1} << 20,
            CUDA_ERROR_OUT_OF_MEMORY);
    call.unsafe_in_capture();
    const size_t pitch = (WidthInBytes + 511) / 512 * 512;
    *dptr = allocate(call, pitch * Height, Origin::device).address;
    *pPitch = pitch;
  });
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  return entry("cuMemFree", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    if (dptr == 0) return;
    call.unsafe_in_capture();
    const auto known = call.driver.allocations.find(dptr);
    require(known != call.driver.allocations.end());
    const Origin origin = known->second.origin;
    require(origin != Origin::host && origin != Origin::registered);
    // Those of pools are freed without waiting: what still uses them is caught.
    if (origin != Origin::pool) call.driver.worker.drain(call.lock, known->second.context.get());
    release(call.driver, dptr);
    require(context->error == CUDA_SUCCESS, context->error);
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return entry("cuMemGetAddressRange", [&](Call& call) {
    call.context();
    uint64_t start = 0, bytes = 0;
    require(call.driver.memory->range(dptr, &start, &bytes), CUDA_ERROR_NOT_FOUND);
    if (pbase) *pbase = start;
    if (psize) *psize = bytes;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  return entry("cuMemAllocManaged", [&](Call& call) {
    call.sound_context();
    require(dptr && bytesize > 0);
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
    call.unsafe_in_capture();
    *dptr = allocate(call, bytesize, Origin::managed, flags).address;
  });
}
