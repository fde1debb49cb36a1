// Hints for managed memory: checked, without effect.

#include "tests/cuda_emulator/driver/memory.h"
#include "tests/cuda_emulator/driver/per_thread.h"

using namespace emulator::driver;

namespace {

void check_range(Call& call, CUdeviceptr address, size_t bytes) {
  const Allocation* allocation = call.driver.allocation_at(address);
  require(bytes > 0 && allocation && allocation->origin == Origin::managed);
  require(bytes <= allocation->address + allocation->bytes - address);
}

// A device by its number, or the host.
void check_place(CUmemLocation location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    require(location.id == 0, CUDA_ERROR_INVALID_DEVICE);
  } else {
    require(location.type >= CU_MEM_LOCATION_TYPE_HOST &&
            location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
  }
}

CUmemLocation place_of(CUdevice device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == CU_DEVICE_CPU ? 0 : device;
  return location;
}

CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                  CUstream stream) {
  return entry("cuMemPrefetchAsync", [&](Call& call) {
    call.stream(stream);
    require(flags == 0);
    check_range(call, address, bytes);
    check_place(location);
  });
}

CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  return entry("cuMemAdvise", [&](Call& call) {
    call.sound_context();
    check_range(call, address, bytes);
    require(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    if (advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION) check_place(location);
  });
}

}  // namespace

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                            CUstream hStream) {
  return prefetch(devPtr, count, place_of(dstDevice), 0, hStream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream hStream) {
  return prefetch(devPtr, count, location, flags, hStream);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                                 CUstream hStream) {
  return prefetch(devPtr, count, place_of(dstDevice), 0, per_thread(hStream));
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return advise(devPtr, count, advice, place_of(device));
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location) {
  return advise(devPtr, count, advice, location);
}
