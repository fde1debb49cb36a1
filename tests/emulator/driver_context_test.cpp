// Initialization, the device, contexts.

#include <set>
#include <thread>

#include "tests/emulator/driver_test.h"

using namespace emulator_test;

TEST_CASE("Driver: before cuInit there is nothing but the version", "[driver]") {
  Fresh fresh;
  int version = 0;
  CHECK(API(cuDriverGetVersion)(&version) == CUDA_SUCCESS);
  CHECK(version == 13000);
  CHECK(API(cuDriverGetVersion)(nullptr) == CUDA_ERROR_INVALID_VALUE);
  int count = 0;
  CHECK(API(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
  CUdeviceptr address = 0;
  CHECK(API(cuMemAlloc)(&address, 4) == CUDA_ERROR_NOT_INITIALIZED);
  CUcontext context = nullptr;
  CHECK(API(cuCtxGetCurrent)(&context) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(API(cuCtxCreate)(&context, nullptr, 0, 0) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(API(cuInit)(1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuInit)(0) == CUDA_SUCCESS);
  CHECK(API(cuInit)(0) == CUDA_SUCCESS);
  CHECK(API(cuDeviceGetCount)(&count) == CUDA_SUCCESS);
  CHECK(count == 1);
  API(cuda_emulator_reset)();
  CHECK(API(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
}

TEST_CASE("Driver: a device by its architecture", "[driver]") {
  Fresh fresh;
  struct Part {
    int major, minor, shared, threads;
  };
  // "Technical Specifications per Compute Capability": opt-in shared memory, threads of an SM.
  const Part parts[] = {{7, 5, 64, 1024},  {8, 0, 163, 2048},  {8, 6, 99, 1536}, {8, 9, 99, 1536},
                        {9, 0, 227, 2048}, {10, 0, 227, 2048}, {12, 0, 99, 1536}};
  for (const Part& part : parts) {
    INFO(part.major << "." << part.minor);
    API(cuda_emulator_reset)();
    REQUIRE(API(cuda_emulator_architecture)(part.major, part.minor) == 0);
    OK(cuInit, 0);
    const auto attribute = [](CUdevice_attribute which) {
      int value = -1;
      OK(cuDeviceGetAttribute, &value, which, 0);
      return value;
    };
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == part.major);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == part.minor);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == part.shared * 1024);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) == 48 * 1024);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) == part.threads);
    CHECK(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32);
  }
  CHECK(API(cuda_emulator_architecture)(3, 5) == 1);
}

TEST_CASE("Driver: what the device tells of itself", "[driver]") {
  Fresh fresh;
  API(cuda_emulator_memory)(1 << 20);
  OK(cuInit, 0);
  CUdevice device = -1;
  OK(cuDeviceGet, &device, 0);
  CHECK(API(cuDeviceGet)(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(API(cuDeviceGet)(&device, -1) == CUDA_ERROR_INVALID_DEVICE);
  char name[256] = "", start[4] = "";
  OK(cuDeviceGetName, name, sizeof name, 0);
  CHECK(std::string(name).size() > 3);
  OK(cuDeviceGetName, start, sizeof start, 0);
  CHECK(std::string(name).substr(0, 3) == start);
  CHECK(API(cuDeviceGetName)(name, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuDeviceGetName)(name, sizeof name, 3) == CUDA_ERROR_INVALID_DEVICE);
  size_t bytes = 0;
  OK(cuDeviceTotalMem, &bytes, 0);
  CHECK(bytes == 1 << 20);
  CUuuid one{}, two{};
  OK(cuDeviceGetUuid, &one, 0);
  OK(cuDeviceGetUuid, &two, 0);
  CHECK(std::memcmp(&one, &two, sizeof one) == 0);
  int value = 0;
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i)
    CHECK(API(cuDeviceGetAttribute)(&value, CUdevice_attribute(i), 0) == CUDA_SUCCESS);
  for (const int i : {0, -1, int(CU_DEVICE_ATTRIBUTE_MAX), 100000})
    CHECK(API(cuDeviceGetAttribute)(&value, CUdevice_attribute(i), 0) == CUDA_ERROR_INVALID_VALUE);
  char id[32];
  OK(cuDeviceGetPCIBusId, id, sizeof id, 0);
  OK(cuDeviceGetByPCIBusId, &device, id);
  CHECK(device == 0);
  CHECK(API(cuDeviceGetByPCIBusId)(&device, "0000:7f:00.0") == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("Driver: contexts are a stack of the thread", "[driver]") {
  Fresh fresh;
  OK(cuInit, 0);
  CUcontext first = nullptr, second = nullptr, current = nullptr;
  CHECK(API(cuCtxCreate)(&first, nullptr, 0, 1) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(API(cuCtxCreate)(&first, nullptr, 3, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuCtxCreate)(&first, nullptr, 0x1000, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuCtxCreate)(nullptr, nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  const auto create_v2 = call<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
  const auto create_v3 =
      call<CUresult (*)(CUcontext*, void*, int, unsigned, CUdevice)>("cuCtxCreate_v3");
  REQUIRE(create_v2(&first, CU_CTX_SCHED_YIELD, 0) == CUDA_SUCCESS);
  REQUIRE(create_v3(&second, nullptr, 0, 0, 0) == CUDA_SUCCESS);
  const auto is_current = [&](CUcontext expected) {
    CHECK(API(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
    CHECK(current == expected);
  };
  is_current(second);
  OK(cuCtxPopCurrent, &current);
  CHECK(current == second);
  is_current(first);
  unsigned flags = 0;
  OK(cuCtxGetFlags, &flags);
  CHECK(flags == CU_CTX_SCHED_YIELD);
  OK(cuCtxPushCurrent, second);
  OK(cuCtxSetCurrent, first);  // replaces the top
  is_current(first);
  OK(cuCtxSetCurrent, nullptr);
  is_current(first);  // the one below
  OK(cuCtxSetCurrent, nullptr);
  is_current(nullptr);
  CHECK(API(cuCtxPopCurrent)(&current) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(API(cuCtxPushCurrent)(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CUdevice device = -1;
  CHECK(API(cuCtxGetDevice)(&device) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxSetCurrent, second);
  OK(cuCtxGetDevice, &device);
  CHECK(device == 0);
  unsigned version = 0;
  OK(cuCtxGetApiVersion, first, &version);
  CHECK(version == 3020);
  unsigned long long id_first = 0, id_second = 0;
  OK(cuCtxGetId, first, &id_first);
  OK(cuCtxGetId, nullptr, &id_second);
  CHECK(id_first != id_second);
  CHECK(alive()[6] == 2);
  // Current elsewhere, it is destroyed there; current here, it is popped.
  std::thread([&] {
    OK(cuCtxSetCurrent, first);
    OK(cuCtxPushCurrent, second);
    std::thread([&] { OK(cuCtxDestroy, second); }).join();
    CUdeviceptr address = 0;
    CHECK(API(cuMemAlloc)(&address, 4) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuCtxPopCurrent, &current);
    OK(cuCtxDestroy, first);
    CHECK(API(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
    CHECK(current == nullptr);
  }).join();
  CHECK(API(cuCtxDestroy)(first) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(API(cuCtxSetCurrent)(first) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(API(cuCtxDestroy)(reinterpret_cast<CUcontext>(0x1234)) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(API(cuCtxDestroy)(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(alive()[6] == 0);
}

TEST_CASE("Driver: the primary context is counted", "[driver]") {
  Fresh fresh;
  OK(cuInit, 0);
  CUcontext one = nullptr, two = nullptr;
  unsigned flags = 99;
  int active = -1;
  OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  CHECK(flags == 0);
  CHECK(active == 0);
  CHECK(API(cuDevicePrimaryCtxRelease)(0) == CUDA_ERROR_INVALID_CONTEXT);
  OK(cuDevicePrimaryCtxSetFlags, 0, CU_CTX_SCHED_BLOCKING_SYNC);
  OK(cuDevicePrimaryCtxRetain, &one, 0);
  OK(cuDevicePrimaryCtxRetain, &two, 0);
  CHECK(one == two);
  CHECK(API(cuDevicePrimaryCtxRetain)(&two, 1) == CUDA_ERROR_INVALID_DEVICE);
  OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  CHECK(flags == CU_CTX_SCHED_BLOCKING_SYNC);
  CHECK(active == 1);
  CHECK(API(cuCtxDestroy)(one) == CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxSetCurrent, one);
  CUdeviceptr address = 0;
  OK(cuMemAlloc, &address, 16);
  OK(cuDevicePrimaryCtxRelease, 0);
  CHECK(alive()[0] == 1);
  OK(cuDevicePrimaryCtxRelease, 0);
  CHECK(alive()[0] == 0);
  CHECK(API(cuMemAlloc)(&address, 16) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  // It comes back under its handle, for all who still have it.
  OK(cuDevicePrimaryCtxRetain, &two, 0);
  CHECK(one == two);
  OK(cuMemAlloc, &address, 16);
  OK(cuDevicePrimaryCtxReset, 0);
  CHECK(alive()[0] == 0);
  CHECK(API(cuMemFree)(address) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  OK(cuDevicePrimaryCtxRelease, 0);
  CHECK(API(cuDevicePrimaryCtxRelease)(0) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("Driver: limits and preferences of a context", "[driver]") {
  Started started;
  size_t value = 0;
  OK(cuCtxGetLimit, &value, CU_LIMIT_STACK_SIZE);
  CHECK(value == 1024);
  OK(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 4096);
  OK(cuCtxGetLimit, &value, CU_LIMIT_STACK_SIZE);
  CHECK(value == 4096);
  CHECK(API(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2) == CUDA_ERROR_UNSUPPORTED_LIMIT);
  CHECK(API(cuCtxSetLimit)(CU_LIMIT_CIG_ENABLED, 1) == CUDA_ERROR_UNSUPPORTED_LIMIT);
  CHECK(API(cuCtxSetLimit)(CUlimit(77), 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuCtxSetLimit)(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuCtxGetLimit)(nullptr, CU_LIMIT_STACK_SIZE) == CUDA_ERROR_INVALID_VALUE);
  OK(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_L1);
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  OK(cuCtxGetCacheConfig, &cache);
  CHECK(cache == CU_FUNC_CACHE_PREFER_L1);
  CHECK(API(cuCtxSetCacheConfig)(CUfunc_cache(9)) == CUDA_ERROR_INVALID_VALUE);
  int least = 1, greatest = 1;
  OK(cuCtxGetStreamPriorityRange, &least, &greatest);
  CHECK(least == 0);
  CHECK(greatest == -5);
}

TEST_CASE("Driver: destroying a context takes all that is of it", "[driver]") {
  Started started;
  Kernels kernels;
  CUdeviceptr address = 0;
  void* host = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  OK(cuMemAlloc, &address, 100);
  OK(cuMemAllocHost, &host, 100);
  OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
  OK(cuEventCreate, &event, CU_EVENT_DEFAULT);
  CHECK(alive() == std::array<uint64_t, 7>{2, 1, 1, 1, 0, 0, 1});
  OK(cuCtxDestroy, started.context);
  CHECK(alive() == std::array<uint64_t, 7>{});
  CUcontext other = nullptr;
  OK(cuCtxCreate, &other, nullptr, 0, 0);
  CHECK(API(cuMemFree)(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuStreamSynchronize)(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(API(cuEventQuery)(event) == CUDA_ERROR_INVALID_HANDLE);
  CUfunction function = nullptr;
  CHECK(API(cuModuleGetFunction)(&function, kernels.module, "fill") == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("Driver: what the environment says", "[driver]") {
  Fresh fresh;
  setenv("KRAIT_EMULATOR_MEMORY", "3145728", 1);
  setenv("KRAIT_EMULATED_ARCH", "8.6", 1);
  const auto major = [] {
    API(cuda_emulator_reset)();
    OK(cuInit, 0);
    int value = 0;
    OK(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    return value;
  };
  REQUIRE(API(cuda_emulator_architecture)(0, 0) == 0);
  CHECK(major() == 8);
  size_t bytes = 0;
  OK(cuDeviceTotalMem, &bytes, 0);
  CHECK(bytes == 3145728);
  REQUIRE(API(cuda_emulator_architecture)(12, 0) == 0);  // a call wins
  CHECK(major() == 12);
  REQUIRE(API(cuda_emulator_architecture)(0, 0) == 0);
  for (const char* wrong : {"3.5", "nine", ""}) {
    setenv("KRAIT_EMULATED_ARCH", wrong, 1);
    API(cuda_emulator_reset)();
    CHECK(API(cuInit)(0) == CUDA_ERROR_INVALID_DEVICE);
  }
  unsetenv("KRAIT_EMULATED_ARCH");
  unsetenv("KRAIT_EMULATOR_MEMORY");
  CHECK(major() == 9);
}
