// Page-locked memory of the host, which kernels use at its own address.

#include <algorithm>

#include "tests/cuda_emulator/driver/copies.h"
#include "tests/cuda_emulator/driver/memory.h"

using namespace emulator::driver;

namespace {

CUresult allocate_host(const char* name, void** pp, size_t bytesize, unsigned flags) {
  return entry(name, [&](Call& call) {
    call.sound_context();
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(pp && bytesize > 0 && !(flags & ~kKnown));
    call.unsafe_in_capture();
    *pp = reinterpret_cast<void*>(allocate(call, bytesize, Origin::host, flags).address);
  });
}

const Allocation& host_allocation(Call& call, const void* p) {
  const Allocation* allocation = call.driver.allocation_at(reinterpret_cast<uint64_t>(p));
  require(allocation &&
          (allocation->origin == Origin::host || allocation->origin == Origin::registered));
  return *allocation;
}

}  // namespace

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return allocate_host("cuMemAllocHost", pp, bytesize, 0);
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  return allocate_host("cuMemHostAlloc", pp, bytesize, Flags);
}

CUresult cuMemFreeHost(void* p) {
  return entry("cuMemFreeHost", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    if (!p) return;
    call.unsafe_in_capture();
    const auto it = call.driver.allocations.find(reinterpret_cast<uint64_t>(p));
    require(it != call.driver.allocations.end() && it->second.origin == Origin::host);
    call.driver.worker.drain(call.lock, it->second.context.get());
    release(call.driver, reinterpret_cast<uint64_t>(p));
    require(context->error == CUDA_SUCCESS, context->error);
  });
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  return entry("cuMemHostRegister", [&](Call& call) {
    Driver& driver = call.driver;
    const std::shared_ptr<Context> context = call.sound_context();
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    require(p && bytesize > 0 && !(Flags & ~kKnown));
    require(!(Flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)),
            CUDA_ERROR_NOT_SUPPORTED);
    require(mapped(p, bytesize));
    call.unsafe_in_capture();
    const uint64_t address = reinterpret_cast<uint64_t>(p);
    const auto next = driver.allocations.lower_bound(address);
    const bool overlaps = driver.allocation_at(address) ||
                          (next != driver.allocations.end() && next->first < address + bytesize);
    require(!overlaps, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    Allocation allocation;
    allocation.bytes = bytesize;
    allocation.origin = Origin::registered;
    allocation.context = context;
    allocation.flags = Flags;
    allocation.id = driver.next_id++;
    allocation.address = driver.memory->adopt(p, bytesize);
    driver.allocations[allocation.address] = allocation;
  });
}

CUresult cuMemHostUnregister(void* p) {
  return entry("cuMemHostUnregister", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    require(p);
    const auto it = call.driver.allocations.find(reinterpret_cast<uint64_t>(p));
    require(it != call.driver.allocations.end() && it->second.origin == Origin::registered,
            CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    call.unsafe_in_capture();
    call.driver.worker.drain(call.lock, it->second.context.get());
    release(call.driver, reinterpret_cast<uint64_t>(p));
    require(context->error == CUDA_SUCCESS, context->error);
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  return entry("cuMemHostGetDevicePointer", [&](Call& call) {
    call.sound_context();
    require(pdptr && p && Flags == 0);
    host_allocation(call, p);
    *pdptr = reinterpret_cast<CUdeviceptr>(p);
  });
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  return entry("cuMemHostGetFlags", [&](Call& call) {
    call.context();
    require(pFlags && p);
    const Allocation& allocation = host_allocation(call, p);
    require(allocation.origin == Origin::host);
    // With unified addresses all such memory is portable and mapped.
    *pFlags = allocation.flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  });
}
