// Functions and their attributes.

#include <cstring>

#include "tests/cuda_emulator/driver/modules.h"

using namespace emulator::driver;

namespace emulator::driver {

int attribute_of(Call& call, const Function& function, CUfunction_attribute attribute) {
  const FunctionInfo& info = *function.info;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return static_cast<int>(info.max_threads);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(info.static_shared);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return static_cast<int>(info.constant);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return static_cast<int>(info.local);
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return static_cast<int>(info.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: return info.target;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return call.driver.limits.major * 10 + call.driver.limits.minor;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: return function.dynamic_shared;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return function.carveout;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return function.cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return function.nonportable_cluster;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return function.cluster_policy;
    default: fail();
  }
}

void set_attribute(Call& call, Function& function, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      require(value >= 0 && uint64_t(value) + function.info->static_shared <=
                                call.driver.limits.shared_per_block_opt_in);
      function.dynamic_shared = value;
      return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100);
      function.carveout = value;
      return;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      require(value >= 0);
      function.cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
      return;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      require(value == 0 || value == 1);
      function.nonportable_cluster = value;
      return;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      require(value >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT &&
              value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
      function.cluster_policy = value;
      return;
    default: fail();
  }
}

}  // namespace emulator::driver

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return entry("cuFuncGetAttribute", [&](Call& call) {
    call.context();
    require(pi);
    *pi = attribute_of(call, *function_at(call, hfunc), attrib);
  });
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return entry("cuFuncSetAttribute", [&](Call& call) {
    call.sound_context();
    set_attribute(call, *function_at(call, hfunc), attrib, value);
  });
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  return entry("cuFuncSetCacheConfig", [&](Call& call) {
    call.sound_context();
    const std::shared_ptr<Function> function = function_at(call, hfunc);
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    function->cache = config;
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
  return entry("cuFuncSetSharedMemConfig", [&](Call& call) {
    call.sound_context();
    function_at(call, hfunc);
    require(config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
            config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
  });
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  return entry("cuFuncGetModule", [&](Call& call) {
    require(hmod);
    *hmod = function_at(call, hfunc)->module.lock()->handle;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  return entry("cuFuncGetName", [&](Call& call) {
    require(name);
    *name = function_at(call, hfunc)->name.c_str();
  });
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset,
                            size_t* paramSize) {
  return entry("cuFuncGetParamInfo", [&](Call& call) {
    require(paramOffset);
    const auto& parameters = function_at(call, func)->info->parameters;
    require(paramIndex < parameters.size());
    *paramOffset = parameters[paramIndex].offset;
    if (paramSize) *paramSize = parameters[paramIndex].bytes;
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return entry("cuFuncIsLoaded", [&](Call& call) {
    require(state);
    function_at(call, function);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}

CUresult cuFuncLoad(CUfunction function) {
  return entry("cuFuncLoad", [&](Call& call) {
    call.sound_context();
    function_at(call, function);
  });
}
