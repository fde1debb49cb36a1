// Contexts.

#include <algorithm>

#include "tests/cuda_emulator/driver/driver.h"

using namespace emulator::driver;

namespace {

unsigned checked_flags(unsigned flags) {
  require((flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0);
  const unsigned scheduling = flags & CU_CTX_SCHED_MASK;
  require((scheduling & (scheduling - 1)) == 0);
  return flags;
}

CUresult create(CUcontext* pctx, unsigned flags, CUdevice dev, bool affinity, bool graphics) {
  return entry("cuCtxCreate", [&](Call& call) {
    require(pctx);
    call.check_device(dev);
    checked_flags(flags);
    require(!affinity, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    require(!graphics, CUDA_ERROR_NOT_SUPPORTED);
    const std::shared_ptr<Context> context = call.driver.make_context(flags);
    context_stack().push_back(context);
    *pctx = context->handle;
  });
}

// A context by its handle, or the current one for null.
std::shared_ptr<Context> context_or_current(Call& call, CUcontext handle) {
  return handle ? call.driver.contexts.at(handle, CUDA_ERROR_INVALID_CONTEXT) : call.context();
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return create(pctx, flags, dev, false, false);
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams,
                        unsigned int flags, CUdevice dev) {
  return create(pctx, flags, dev, paramsArray && numParams > 0, false);
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
  return create(pctx, flags, dev, ctxCreateParams && ctxCreateParams->numExecAffinityParams > 0,
                ctxCreateParams && ctxCreateParams->cigParams);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return entry("cuCtxDestroy", [&](Call& call) {
    require(ctx, CUDA_ERROR_INVALID_CONTEXT);
    const std::shared_ptr<Context> context =
        call.driver.contexts.at(ctx, CUDA_ERROR_INVALID_CONTEXT);
    require(!context->primary, CUDA_ERROR_INVALID_CONTEXT);
    call.driver.destroy_context(call.lock, context);
    auto& stack = context_stack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  return entry("cuCtxPushCurrent", [&](Call& call) {
    require(ctx, CUDA_ERROR_INVALID_CONTEXT);
    context_stack().push_back(call.driver.contexts.at(ctx, CUDA_ERROR_INVALID_CONTEXT));
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  return entry("cuCtxPopCurrent", [&](Call&) {
    auto& stack = context_stack();
    require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (pctx) *pctx = stack.back()->handle;
    stack.pop_back();
  });
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  return entry("cuCtxSetCurrent", [&](Call& call) {
    auto& stack = context_stack();
    if (!ctx) {
      if (!stack.empty()) stack.pop_back();
      return;
    }
    std::shared_ptr<Context> context = call.driver.contexts.at(ctx, CUDA_ERROR_INVALID_CONTEXT);
    if (!stack.empty()) stack.pop_back();
    stack.push_back(std::move(context));
  });
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return entry("cuCtxGetCurrent", [&](Call&) {
    require(pctx);
    const auto& stack = context_stack();
    *pctx = stack.empty() ? nullptr : stack.back()->handle;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return entry("cuCtxGetDevice", [&](Call& call) {
    require(device);
    call.context();
    *device = 0;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  return entry("cuCtxGetDevice", [&](Call& call) {
    require(device);
    context_or_current(call, ctx);
    *device = 0;
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return entry("cuCtxGetFlags", [&](Call& call) {
    require(flags);
    *flags = call.context()->flags;
  });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  return entry("cuCtxSetFlags", [&](Call& call) { call.context()->flags = checked_flags(flags); });
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  return entry("cuCtxGetId", [&](Call& call) {
    require(ctxId);
    *ctxId = context_or_current(call, ctx)->id;
  });
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  return entry("cuCtxGetApiVersion", [&](Call& call) {
    require(version);
    context_or_current(call, ctx);
    *version = 3020;
  });
}

CUresult cuCtxSynchronize() {
  return entry("cuCtxSynchronize", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    call.unsafe_in_capture();
    call.synchronize(context);
  });
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  return entry("cuCtxSynchronize", [&](Call& call) {
    const std::shared_ptr<Context> context = context_or_current(call, ctx);
    call.unsafe_in_capture();
    call.synchronize(context);
  });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return entry("cuCtxSetLimit", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    require(limit >= 0 && limit < CU_LIMIT_MAX);
    require(limit < CU_LIMIT_SHMEM_SIZE, CUDA_ERROR_UNSUPPORTED_LIMIT);
    if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) {
      require(call.driver.limits.major < 9, CUDA_ERROR_UNSUPPORTED_LIMIT);
      require(value <= 24);
    }
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY) require(value <= 128);
    context->limits[limit] = value;
  });
}

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  return entry("cuCtxGetLimit", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    require(pvalue && limit >= 0 && limit < CU_LIMIT_MAX);
    require(limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || call.driver.limits.major < 9,
            CUDA_ERROR_UNSUPPORTED_LIMIT);
    const auto it = context->limits.find(limit);
    require(it != context->limits.end(), CUDA_ERROR_UNSUPPORTED_LIMIT);
    *pvalue = it->second;
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  return entry("cuCtxGetCacheConfig", [&](Call& call) {
    require(pconfig);
    *pconfig = call.context()->cache;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return entry("cuCtxSetCacheConfig", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    context->cache = config;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return entry("cuCtxGetStreamPriorityRange", [&](Call& call) {
    call.context();
    if (leastPriority) *leastPriority = 0;
    if (greatestPriority) *greatestPriority = kGreatestPriority;
  });
}

CUresult cuCtxResetPersistingL2Cache() {
  return entry("cuCtxResetPersistingL2Cache", [&](Call& call) { call.sound_context(); });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return entry("cuDevicePrimaryCtxRetain", [&](Call& call) {
    require(pctx);
    call.check_device(dev);
    const std::shared_ptr<Context> context = call.driver.active_primary();
    ++call.driver.primary_count;
    *pctx = context->handle;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  return entry("cuDevicePrimaryCtxRelease", [&](Call& call) {
    call.check_device(dev);
    require(call.driver.primary_count > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--call.driver.primary_count == 0 && call.driver.primary->alive)
      call.driver.destroy_context(call.lock, call.driver.primary);
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return entry("cuDevicePrimaryCtxReset", [&](Call& call) {
    call.check_device(dev);
    if (call.driver.primary && call.driver.primary->alive)
      call.driver.destroy_context(call.lock, call.driver.primary);
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  return entry("cuDevicePrimaryCtxSetFlags", [&](Call& call) {
    call.check_device(dev);
    call.driver.primary_flags = checked_flags(flags);
    if (call.driver.primary && call.driver.primary->alive) call.driver.primary->flags = flags;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  return entry("cuDevicePrimaryCtxGetState", [&](Call& call) {
    require(flags && active);
    call.check_device(dev);
    *flags = call.driver.primary_flags;
    *active = call.driver.primary && call.driver.primary->alive;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }
CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

// The width of banks cannot be chosen on any part that is emulated.

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  return entry("cuCtxGetSharedMemConfig", [&](Call& call) {
    call.context();
    require(pConfig);
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return entry("cuCtxSetSharedMemConfig", [&](Call& call) {
    call.context();
    require(config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
            config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
  });
}
