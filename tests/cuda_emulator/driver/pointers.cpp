// What is known of a pointer.

#include <cstring>

#include "tests/cuda_emulator/driver/driver.h"

using namespace emulator::driver;

namespace {

template <class T>
void put(void* data, const T& value) {
  std::memcpy(data, &value, sizeof value);
}

// INVALID_VALUE for pointers that are not of the driver, and for attributes that are not known.
void give(Call& call, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const Allocation* allocation = call.driver.allocation_at(pointer);
  uint64_t start = 0, bytes = 0;
  const bool known = call.driver.memory->range(pointer, &start, &bytes);
  require(known);  // of an allocation, or of a variable of a module
  const Origin origin = allocation ? allocation->origin : Origin::device;
  const bool on_host = origin == Origin::host || origin == Origin::registered;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, allocation && allocation->context ? allocation->context->handle : nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data, static_cast<unsigned>(on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(on_host || origin == Origin::managed);
      return put(data, reinterpret_cast<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, static_cast<unsigned>(allocation && allocation->synchronous));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: require(allocation); return put(data, allocation->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(data, static_cast<unsigned>(origin == Origin::managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return put(data, 0u);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(data, start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(data, bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put(data, uint64_t{0});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(data, static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, allocation ? allocation->pool : nullptr);
    default: fail();
  }
}

// Bytes that the attribute takes.
size_t size_of(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return 8;
    default: return 4;
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return entry("cuPointerGetAttribute", [&](Call& call) {
    call.context();
    require(data);
    give(call, data, attribute, ptr);
  });
}

// Unlike the form for one attribute this gives zeros for what cannot be told.
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  return entry("cuPointerGetAttributes", [&](Call& call) {
    call.context();
    require(numAttributes > 0 && attributes && data);
    for (unsigned i = 0; i < numAttributes; ++i) {
      require(data[i]);
      try {
        give(call, data[i], attributes[i], ptr);
      } catch (const Failure&) {
        std::memset(data[i], 0, size_of(attributes[i]));
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put(data[i], -2);
      }
    }
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return entry("cuPointerSetAttribute", [&](Call& call) {
    call.context();
    require(value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    const Allocation* allocation = call.driver.allocation_at(ptr);
    require(allocation);
    call.driver.allocations.at(allocation->address).synchronous =
        *static_cast<const unsigned*>(value) != 0;
  });
}
