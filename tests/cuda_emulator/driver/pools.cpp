// Memory in the order of streams, and the pools that it comes from. A pool keeps nothing: what it
// gives is allocated when it is asked for and released when the stream comes to its free.

#include <algorithm>

#include "tests/cuda_emulator/driver/memory.h"

using namespace emulator::driver;

namespace {

CUresult allocate_async(const char* name, CUdeviceptr* dptr, size_t bytes, CUstream handle,
                        const CUmemoryPool* pool_handle) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(handle);
    const std::shared_ptr<Pool> pool = call.driver.pools.at(
        pool_handle ? *pool_handle : call.driver.current_pool, CUDA_ERROR_INVALID_VALUE);
    require(dptr && bytes > 0);
    // Memory that a graph owns is not handled.
    require(!stream->capture, CUDA_ERROR_NOT_SUPPORTED);
    const size_t most = pool->properties.maxSize;
    require(!most || (bytes <= most && pool->used <= most - bytes), CUDA_ERROR_OUT_OF_MEMORY);
    const uint64_t address = allocate(call, bytes, Origin::pool).address;
    call.driver.allocations[address].pool = pool->handle;
    pool->used += bytes;
    pool->highest = std::max(pool->highest, pool->used);
    *dptr = address;
  });
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return allocate_async("cuMemAllocAsync", dptr, bytesize, hStream, nullptr);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream) {
  return allocate_async("cuMemAllocFromPoolAsync", dptr, bytesize, hStream, &pool);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return entry("cuMemFreeAsync", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.any_stream(hStream);
    const auto it = call.driver.allocations.find(dptr);
    require(it != call.driver.allocations.end() &&
            (it->second.origin == Origin::pool || it->second.origin == Origin::device));
    require(!stream->capture, CUDA_ERROR_NOT_SUPPORTED);
    forget(call.driver, dptr);
    ++call.driver.pending_frees;
    call.submit(stream, FreeAction{dptr});
    require(stream->context->error == CUDA_SUCCESS, stream->context->error);
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  return entry("cuMemPoolCreate", [&](Call& call) {
    require(pool && poolProps);
    require(poolProps->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
    require(poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_NOT_SUPPORTED);
    require(poolProps->location.id == 0);
    require(poolProps->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
    auto made = std::make_shared<Pool>();
    made->properties = *poolProps;
    *pool = call.driver.pools.add(std::move(made));
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return entry("cuMemPoolDestroy", [&](Call& call) {
    require(!call.driver.pools.at(pool, CUDA_ERROR_INVALID_VALUE)->is_default);
    call.driver.pools.remove(pool);
    if (call.driver.current_pool == pool) call.driver.current_pool = call.driver.default_pool;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return entry("cuMemPoolTrimTo", [&](Call& call) {
    call.driver.pools.at(pool, CUDA_ERROR_INVALID_VALUE);  // there is nothing to trim
  });
}

namespace {

bool is_reuse(CUmemPool_attribute attribute) {
  return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return entry("cuMemPoolSetAttribute", [&](Call& call) {
    const std::shared_ptr<Pool> pool = call.driver.pools.at(handle, CUDA_ERROR_INVALID_VALUE);
    require(value);
    if (is_reuse(attr)) {
      pool->attributes[attr] = *static_cast<int*>(value) != 0;
    } else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      pool->attributes[attr] = *static_cast<cuuint64_t*>(value);
    } else {
      // The high-water marks can be reset, nothing else is to be set.
      require(attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
      require(*static_cast<cuuint64_t*>(value) == 0);
      pool->highest = pool->used;
    }
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr, void* value) {
  return entry("cuMemPoolGetAttribute", [&](Call& call) {
    const std::shared_ptr<Pool> pool = call.driver.pools.at(handle, CUDA_ERROR_INVALID_VALUE);
    require(value);
    const auto set = pool->attributes.find(attr);
    if (is_reuse(attr)) {
      *static_cast<int*>(value) = set == pool->attributes.end() || set->second;
    } else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      *static_cast<cuuint64_t*>(value) = set == pool->attributes.end() ? 0 : set->second;
    } else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
               attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) {
      *static_cast<cuuint64_t*>(value) = pool->used;
    } else {
      require(attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
      *static_cast<cuuint64_t*>(value) = pool->highest;
    }
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  return entry("cuMemPoolSetAccess", [&](Call& call) {
    call.driver.pools.at(pool, CUDA_ERROR_INVALID_VALUE);
    require(map || count == 0);
    for (size_t i = 0; i < count; ++i) {
      require(map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && map[i].location.id == 0,
              CUDA_ERROR_INVALID_DEVICE);
      require(map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool,
                            CUmemLocation* location) {
  return entry("cuMemPoolGetAccess", [&](Call& call) {
    call.driver.pools.at(memPool, CUDA_ERROR_INVALID_VALUE);
    require(flags && location);
    const bool own = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == 0;
    *flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return entry("cuDeviceGetDefaultMemPool", [&](Call& call) {
    require(pool_out);
    call.check_device(dev);
    *pool_out = call.driver.default_pool;
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return entry("cuDeviceGetMemPool", [&](Call& call) {
    require(pool);
    call.check_device(dev);
    *pool = call.driver.current_pool;
  });
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return entry("cuDeviceSetMemPool", [&](Call& call) {
    call.check_device(dev);
    call.driver.pools.at(pool, CUDA_ERROR_INVALID_VALUE);
    call.driver.current_pool = pool;
  });
}
