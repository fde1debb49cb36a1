// Errors: names, wrong calls in all states, memory that runs out, planned failures, leaks.

#include <elf.h>
#include <link.h>

#include <functional>
#include <set>

#include "tests/emulator/driver_test.h"

using namespace emulator_test;

namespace {

struct Row {
  const char* what;
  CUresult code;
  std::function<CUresult()> call;
};

template <class Rows>
void check_all(const Rows& rows) {
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(row.call() == row.code);
  }
}

// A handle of whatever type that never was one.
template <class Handle>
Handle garbage() {
  return reinterpret_cast<Handle>(uintptr_t{0xdeadbee0});
}

}  // namespace

TEST_CASE("Driver: every code has a name and a text", "[driver]") {
  int named = 0;
  for (int code = 0; code < 1100; ++code) {
    const char *name = "x", *text = "x";
    const CUresult found = API(cuGetErrorName)(CUresult(code), &name);
    CHECK(API(cuGetErrorString)(CUresult(code), &text) == found);
    if (found == CUDA_SUCCESS) {
      CHECK(std::string(name).substr(0, 5) == "CUDA_");
      CHECK(std::string(text).size() > 3);
      ++named;
    } else {
      CHECK(found == CUDA_ERROR_INVALID_VALUE);
      CHECK(name == nullptr);
      CHECK(text == nullptr);
    }
  }
  CHECK(named == 101);  // enumerators of CUresult in CUDA 13.0
  const char* name = nullptr;
  API(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &name);
  CHECK(std::string(name) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  API(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &name);
  CHECK(std::string(name) == "out of memory");
  CHECK(API(cuGetErrorName)(CUDA_SUCCESS, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: calls without a context", "[driver]") {
  Fresh fresh;
  OK(cuInit, 0);
  CUdeviceptr address = 0;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  void* host = nullptr;
  size_t size = 0;
  unsigned value = 0;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  const CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  const Row rows[] = {
      {"cuMemAlloc", code, [&] { return API(cuMemAlloc)(&address, 4); }},
      {"cuMemAllocPitch", code, [&] { return API(cuMemAllocPitch)(&address, &size, 4, 4, 4); }},
      {"cuMemAllocHost", code, [&] { return API(cuMemAllocHost)(&host, 4); }},
      {"cuMemAllocManaged", code, [&] { return API(cuMemAllocManaged)(&address, 4, 1); }},
      {"cuMemAllocAsync", code, [&] { return API(cuMemAllocAsync)(&address, 4, nullptr); }},
      {"cuMemFree", code, [&] { return API(cuMemFree)(4096); }},
      {"cuMemGetInfo", code, [&] { return API(cuMemGetInfo)(&size, &size); }},
      {"cuMemGetAddressRange", code,
       [&] { return API(cuMemGetAddressRange)(&address, &size, 4096); }},
      {"cuMemcpyHtoD", code, [&] { return API(cuMemcpyHtoD)(4096, &value, 4); }},
      {"cuMemcpyDtoHAsync", code, [&] { return API(cuMemcpyDtoHAsync)(&value, 4096, 4, nullptr); }},
      {"cuMemsetD32", code, [&] { return API(cuMemsetD32)(4096, 0, 1); }},
      {"cuModuleLoadData", code, [&] { return API(cuModuleLoadData)(&module, kernels().c_str()); }},
      {"cuStreamCreate", code, [&] { return API(cuStreamCreate)(&stream, 0); }},
      {"cuStreamSynchronize", code, [&] { return API(cuStreamSynchronize)(nullptr); }},
      {"cuEventCreate", code, [&] { return API(cuEventCreate)(&event, 0); }},
      {"cuLaunchHostFunc", code,
       [&] {
         return API(cuLaunchHostFunc)(
             nullptr, [](void*) {}, nullptr);
       }},
      {"cuCtxSynchronize", code, [&] { return API(cuCtxSynchronize)(); }},
      {"cuCtxGetCacheConfig", code, [&] { return API(cuCtxGetCacheConfig)(&cache); }},
      {"cuCtxSetLimit", code, [&] { return API(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1); }},
      {"cuPointerGetAttribute", code,
       [&] { return API(cuPointerGetAttribute)(&value, CU_POINTER_ATTRIBUTE_MAPPED, 4096); }},
  };
  check_all(rows);
}

TEST_CASE("Driver: handles that are none", "[driver]") {
  Started started;
  Kernels kernels;
  int number = 0;
  unsigned value = 0;
  size_t size = 0;
  float ms = 0;
  const char* name = nullptr;
  CUdeviceptr address = 0;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUcontext context = nullptr;
  cuuint64_t flags = 0;
  CUlibrary library = nullptr;
  const CUresult handle = CUDA_ERROR_INVALID_HANDLE, wrong = CUDA_ERROR_INVALID_VALUE,
                 no_context = CUDA_ERROR_INVALID_CONTEXT;
  const auto stream = garbage<CUstream>();
  const auto event = garbage<CUevent>();
  const auto module = garbage<CUmodule>();
  const auto pool = garbage<CUmemoryPool>();
  const auto some = garbage<CUfunction>();
  const auto exec = garbage<CUgraphExec>();
  const Row rows[] = {
      {"cuStreamSynchronize", handle, [&] { return API(cuStreamSynchronize)(stream); }},
      {"cuStreamQuery", handle, [&] { return API(cuStreamQuery)(stream); }},
      {"cuStreamDestroy", handle, [&] { return API(cuStreamDestroy)(stream); }},
      {"cuStreamGetFlags", handle, [&] { return API(cuStreamGetFlags)(stream, &value); }},
      {"cuStreamGetPriority", handle, [&] { return API(cuStreamGetPriority)(stream, &number); }},
      {"cuStreamGetCtx", handle, [&] { return API(cuStreamGetCtx)(stream, &context); }},
      {"cuStreamWaitEvent", handle, [&] { return API(cuStreamWaitEvent)(nullptr, event, 0); }},
      {"cuStreamBeginCapture", handle,
       [&] { return API(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }},
      {"cuStreamEndCapture", handle, [&] { return API(cuStreamEndCapture)(stream, &graph); }},
      {"cuMemcpyHtoDAsync", handle,
       [&] { return API(cuMemcpyHtoDAsync)(4096, &value, 4, stream); }},
      {"cuMemsetD8Async", handle, [&] { return API(cuMemsetD8Async)(4096, 0, 4, stream); }},
      {"cuMemAllocAsync", handle, [&] { return API(cuMemAllocAsync)(&address, 4, stream); }},
      {"cuMemFreeAsync", handle, [&] { return API(cuMemFreeAsync)(4096, stream); }},
      {"cuLaunchHostFunc", handle,
       [&] {
         return API(cuLaunchHostFunc)(
             stream, [](void*) {}, nullptr);
       }},
      {"cuLaunchKernel, stream", handle, [&] { return launch(kernels["bounded"], 1, 1, stream); }},
      {"cuLaunchKernel, function", handle, [&] { return launch(some, 1, 1, nullptr); }},
      {"cuEventRecord", handle, [&] { return API(cuEventRecord)(event, nullptr); }},
      {"cuEventQuery", handle, [&] { return API(cuEventQuery)(event); }},
      {"cuEventSynchronize", handle, [&] { return API(cuEventSynchronize)(event); }},
      {"cuEventDestroy", handle, [&] { return API(cuEventDestroy)(event); }},
      {"cuEventElapsedTime", handle, [&] { return API(cuEventElapsedTime)(&ms, event, event); }},
      {"cuModuleUnload", handle, [&] { return API(cuModuleUnload)(module); }},
      {"cuModuleGetFunction", handle,
       [&] { return API(cuModuleGetFunction)(&function, module, "fill"); }},
      {"cuModuleGetGlobal", handle,
       [&] { return API(cuModuleGetGlobal)(&address, &size, module, "counter"); }},
      {"cuFuncGetAttribute", handle,
       [&] { return API(cuFuncGetAttribute)(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, some); }},
      {"cuFuncSetAttribute", handle,
       [&] {
         return API(cuFuncSetAttribute)(some, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1);
       }},
      {"cuFuncGetName", handle, [&] { return API(cuFuncGetName)(&name, some); }},
      {"cuFuncGetParamInfo", handle,
       [&] { return API(cuFuncGetParamInfo)(some, 0, &size, &size); }},
      {"cuLibraryUnload", handle, [&] { return API(cuLibraryUnload)(garbage<CUlibrary>()); }},
      {"cuKernelGetLibrary", handle,
       [&] { return API(cuKernelGetLibrary)(&library, garbage<CUkernel>()); }},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor", handle,
       [&] { return API(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&number, some, 32, 0); }},
      {"cuCtxPushCurrent", no_context, [&] { return API(cuCtxPushCurrent)(garbage<CUcontext>()); }},
      {"cuCtxSetCurrent", no_context, [&] { return API(cuCtxSetCurrent)(garbage<CUcontext>()); }},
      {"cuCtxDestroy", no_context, [&] { return API(cuCtxDestroy)(garbage<CUcontext>()); }},
      {"cuCtxGetApiVersion", no_context,
       [&] { return API(cuCtxGetApiVersion)(garbage<CUcontext>(), &value); }},
      {"cuGraphDestroy", wrong, [&] { return API(cuGraphDestroy)(garbage<CUgraph>()); }},
      {"cuGraphClone", wrong, [&] { return API(cuGraphClone)(&graph, garbage<CUgraph>()); }},
      {"cuGraphGetNodes", wrong,
       [&] { return API(cuGraphGetNodes)(garbage<CUgraph>(), &node, &size); }},
      {"cuGraphNodeGetType", wrong,
       [&] { return API(cuGraphNodeGetType)(garbage<CUgraphNode>(), &type); }},
      {"cuGraphLaunch", wrong, [&] { return API(cuGraphLaunch)(exec, nullptr); }},
      {"cuGraphExecDestroy", wrong, [&] { return API(cuGraphExecDestroy)(exec); }},
      {"cuGraphExecGetFlags", wrong, [&] { return API(cuGraphExecGetFlags)(exec, &flags); }},
      {"cuMemPoolDestroy", wrong, [&] { return API(cuMemPoolDestroy)(pool); }},
      {"cuMemAllocFromPoolAsync", wrong,
       [&] { return API(cuMemAllocFromPoolAsync)(&address, 4, pool, nullptr); }},
      {"cuDeviceGetAttribute", CUDA_ERROR_INVALID_DEVICE,
       [&] { return API(cuDeviceGetAttribute)(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 5); }},
      {"cuDevicePrimaryCtxRetain", CUDA_ERROR_INVALID_DEVICE,
       [&] { return API(cuDevicePrimaryCtxRetain)(&context, -1); }},
  };
  check_all(rows);
  OK(cuCtxSynchronize);
}

TEST_CASE("Driver: places for results that are null", "[driver]") {
  Started started;
  Kernels kernels;
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  const auto fill = kernels["fill"];
  const Row rows[] = {
      {"cuDeviceGet", wrong, [&] { return API(cuDeviceGet)(nullptr, 0); }},
      {"cuDeviceGetCount", wrong, [&] { return API(cuDeviceGetCount)(nullptr); }},
      {"cuDeviceTotalMem", wrong, [&] { return API(cuDeviceTotalMem)(nullptr, 0); }},
      {"cuDeviceGetUuid", wrong, [&] { return API(cuDeviceGetUuid)(nullptr, 0); }},
      {"cuDeviceGetAttribute", wrong,
       [&] { return API(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0); }},
      {"cuCtxGetCurrent", wrong, [&] { return API(cuCtxGetCurrent)(nullptr); }},
      {"cuCtxGetDevice", wrong, [&] { return API(cuCtxGetDevice)(nullptr); }},
      {"cuCtxGetFlags", wrong, [&] { return API(cuCtxGetFlags)(nullptr); }},
      {"cuDevicePrimaryCtxRetain", wrong,
       [&] { return API(cuDevicePrimaryCtxRetain)(nullptr, 0); }},
      {"cuMemGetInfo", wrong, [&] { return API(cuMemGetInfo)(nullptr, nullptr); }},
      {"cuMemAllocHost", wrong, [&] { return API(cuMemAllocHost)(nullptr, 4); }},
      {"cuMemAllocAsync", wrong, [&] { return API(cuMemAllocAsync)(nullptr, 4, nullptr); }},
      {"cuEventCreate", wrong, [&] { return API(cuEventCreate)(nullptr, 0); }},
      {"cuFuncGetAttribute", wrong,
       [&] { return API(cuFuncGetAttribute)(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, fill); }},
      {"cuFuncGetModule", wrong, [&] { return API(cuFuncGetModule)(nullptr, fill); }},
      {"cuFuncGetName", wrong, [&] { return API(cuFuncGetName)(nullptr, fill); }},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor", wrong,
       [&] { return API(cuOccupancyMaxActiveBlocksPerMultiprocessor)(nullptr, fill, 32, 0); }},
      {"cuStreamGetFlags", wrong, [&] { return API(cuStreamGetFlags)(nullptr, nullptr); }},
      {"cuStreamIsCapturing", wrong, [&] { return API(cuStreamIsCapturing)(nullptr, nullptr); }},
      {"cuGraphCreate", wrong, [&] { return API(cuGraphCreate)(nullptr, 0); }},
      {"cuPointerGetAttribute", wrong,
       [&] { return API(cuPointerGetAttribute)(nullptr, CU_POINTER_ATTRIBUTE_MAPPED, 4096); }},
  };
  check_all(rows);
}

namespace {

// A little program that gives back all it takes, whichever call fails. Counts its allocations.
CUresult program(int* allocations) {
  CUdeviceptr a = 0, b = 0, c = 0;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUresult code = API(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  size_t pitch = 0;
  const auto step = [&](CUresult result) {
    if (code == CUDA_SUCCESS) code = result;
    return code == CUDA_SUCCESS;
  };
  if (step(API(cuMemAlloc)(&a, 400)) && ++*allocations &&
      step(API(cuModuleLoadData)(&module, kernels().c_str())) && ++*allocations &&
      step(API(cuMemAllocPitch)(&b, &pitch, 40, 4, 4)) && ++*allocations &&
      step(API(cuMemAllocAsync)(&c, 400, stream)) && ++*allocations) {
    CUfunction fill = nullptr;
    step(API(cuModuleGetFunction)(&fill, module, "fill"));
    step(launch(fill, 1, 100, stream, a, 1u, 100u));
    step(API(cuMemcpyDtoDAsync)(c, a, 400, stream));
    step(API(cuStreamSynchronize)(stream));
  }
  if (c) API(cuMemFreeAsync)(c, stream);
  if (b) API(cuMemFree)(b);
  if (module) API(cuModuleUnload)(module);
  if (a) API(cuMemFree)(a);
  if (stream) API(cuStreamDestroy)(stream);
  return code;
}

}  // namespace

TEST_CASE("Driver: memory runs out at each allocation in turn", "[driver]") {
  Started started;
  int all = 0;
  REQUIRE(program(&all) == CUDA_SUCCESS);
  REQUIRE(all == 4);
  const auto nothing = std::array<uint64_t, 7>{0, 0, 0, 0, 0, 0, 1};
  CHECK(alive() == nothing);
  for (int n = 1; n <= all; ++n) {
    API(cuda_emulator_fail_allocation)(uint64_t(n));
    int done = 0;
    CHECK(program(&done) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(done == n - 1);
    CHECK(alive() == nothing);
  }
  API(cuda_emulator_fail_allocation)(uint64_t(all) + 1);
  int done = 0;
  CHECK(program(&done) == CUDA_SUCCESS);
  API(cuda_emulator_fail_allocation)(0);
  CHECK(program(&done) == CUDA_SUCCESS);
}

TEST_CASE("Driver: a device without memory for a module's variables", "[driver]") {
  Fresh fresh;
  API(cuda_emulator_memory)(1024);
  OK(cuInit, 0);
  CUcontext context = nullptr;
  OK(cuCtxCreate, &context, nullptr, 0, 0);
  const std::string text =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b8 big[4096];\n";
  CUmodule module = nullptr;
  CHECK(API(cuModuleLoadData)(&module, text.c_str()) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(alive()[1] == 0);
  size_t free = 0, total = 0;
  OK(cuMemGetInfo, &free, &total);
  CHECK(free == 1024);
}

TEST_CASE("Driver: calls that a test has fail", "[driver]") {
  Started started;
  Numbers numbers(1);
  const auto fail = API(cuda_emulator_fail_call);
  fail("cuMemsetD8_v2", 2, CUDA_ERROR_UNKNOWN, 0);
  const auto memset = [&] { return API(cuMemsetD8)(numbers.address(), 1, 4); };
  CHECK(memset() == CUDA_SUCCESS);
  CHECK(memset() == CUDA_ERROR_UNKNOWN);
  CHECK(memset() == CUDA_SUCCESS);
  // The name without its version is the same; so are the forms for threads.
  fail("cuMemsetD8", 1, CUDA_ERROR_ECC_UNCORRECTABLE, 0);
  CHECK(call<decltype(&cuMemsetD8)>("cuMemsetD8_v2_ptds")(numbers.address(), 1, 4) ==
        CUDA_ERROR_ECC_UNCORRECTABLE);
  fail("cuMemsetD8", 1, CUDA_ERROR_UNKNOWN, 0);
  fail("cuMemsetD8", 0, 0, 0);
  CHECK(memset() == CUDA_SUCCESS);
  // A call that fails does nothing.
  CUdeviceptr address = 0;
  fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
  CHECK(API(cuMemAlloc)(&address, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(alive()[0] == 1);
  // A lost device: all calls fail alike, but for the names of errors.
  fail("cuStreamSynchronize", 1, CUDA_ERROR_UNKNOWN, 1);
  CHECK(memset() == CUDA_SUCCESS);
  CHECK(API(cuStreamSynchronize)(nullptr) == CUDA_ERROR_UNKNOWN);
  CHECK(memset() == CUDA_ERROR_UNKNOWN);
  CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_UNKNOWN);
  CHECK(API(cuInit)(0) == CUDA_ERROR_UNKNOWN);
  const char* name = nullptr;
  CHECK(API(cuGetErrorName)(CUDA_ERROR_UNKNOWN, &name) == CUDA_SUCCESS);
  fail("cuStreamSynchronize", 0, 0, 0);
  CHECK(memset() == CUDA_SUCCESS);
  fail("cuMemsetD8", 1, CUDA_ERROR_UNKNOWN, 1);
  CHECK(memset() == CUDA_ERROR_UNKNOWN);
  API(cuda_emulator_reset)();
  OK(cuInit, 0);  // a reset forgets it
}

TEST_CASE("Driver: leaks are counted", "[driver]") {
  Started started;
  CHECK(alive() == std::array<uint64_t, 7>{0, 0, 0, 0, 0, 0, 1});
  CUdeviceptr address = 0;
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  OK(cuMemAlloc, &address, 4);
  OK(cuMemAllocAsync, &address, 4, nullptr);
  OK(cuModuleLoadData, &module, kernels().c_str());  // with a variable, which is no allocation
  OK(cuStreamCreate, &stream, 0);
  OK(cuEventCreate, &event, 0);
  OK(cuGraphCreate, &graph, 0);
  OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
  OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
  CHECK(alive() == std::array<uint64_t, 7>{2, 1, 1, 1, 1, 2, 1});
  API(cuda_emulator_reset)();
  CHECK(alive() == std::array<uint64_t, 7>{});
}

namespace {

// The names of the functions that a library exports.
std::set<std::string> exported() {
  void* const any = entry_point("cuInit");
  Dl_info info{};
  link_map* map = nullptr;
  REQUIRE(dladdr1(any, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0);
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr);
  }
  REQUIRE((symbols && strings && hash));
  // The table of names ends where the chain of the last bucket does.
  const uint32_t buckets = hash[0], first = hash[1], words = hash[2];
  const uint32_t* bucket = hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  while (!(chain[last - first] & 1)) ++last;
  std::set<std::string> names;
  for (uint32_t i = first; i <= last; ++i) names.insert(strings + symbols[i].st_name);
  return names;
}

std::string plain(std::string name) {
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    if (name.size() > 5 && name.substr(name.size() - 5) == suffix) name.resize(name.size() - 5);
  }
  if (name.size() > 3 && name.substr(name.size() - 3, 2) == "_v") name.resize(name.size() - 3);
  return name;
}

void* proc(const std::string& name, int version, unsigned long long flags,
           CUdriverProcAddressQueryResult* status = nullptr) {
  void* found = nullptr;
  const CUresult code = API(cuGetProcAddress)(name.c_str(), &found, version, flags, status);
  if (code != CUDA_SUCCESS) require_success(code, "cuGetProcAddress");
  return found;
}

}  // namespace

TEST_CASE("Driver: every exported entry point is found by name and version", "[driver]") {
  Fresh fresh;  // also before cuInit
  const std::set<std::string> names = exported();
  CHECK(names.size() > 300);
  for (const std::string& name : names) {
    if (name.substr(0, 14) == "cuda_emulator_") continue;
    INFO(name);
    REQUIRE(name.substr(0, 2) == "cu");
    void* const address = entry_point(name.c_str());
    bool found = false;
    for (int version = 2000; version <= 13000 && !found; version += 10) {
      for (const auto flags :
           {CU_GET_PROC_ADDRESS_LEGACY_STREAM, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM})
        found = found || proc(plain(name), version, flags) == address;
    }
    CHECK(found);
  }
}

TEST_CASE("Driver: names, versions and flags of cuGetProcAddress", "[driver]") {
  Fresh fresh;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const auto same = [](void* found, const char* name) {
    INFO(name);
    CHECK(found != nullptr);
    CHECK(found == entry_point(name));
  };
  same(proc("cuMemAlloc", 13000, 0, &status), "cuMemAlloc_v2");
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  same(proc("cuMemAlloc", 3020, 0), "cuMemAlloc_v2");
  CHECK(proc("cuMemAlloc", 2000, 0, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(proc("cuNone", 13000, 0, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(proc("cuTexRefCreate", 13000, 0, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);  // none that we do not have
  CHECK(proc("cuMemAlloc_v2", 13000, 0) == nullptr);      // names have no versions here
  same(proc("cuCtxCreate", 11030, 0), "cuCtxCreate_v2");
  same(proc("cuCtxCreate", 12000, 0), "cuCtxCreate_v3");
  same(proc("cuCtxCreate", 13000, 0), "cuCtxCreate_v4");
  same(proc("cuStreamGetCaptureInfo", 11000, 0), "cuStreamGetCaptureInfo");
  same(proc("cuStreamGetCaptureInfo", 11030, 0), "cuStreamGetCaptureInfo_v2");
  same(proc("cuStreamGetCaptureInfo", 12030, 0), "cuStreamGetCaptureInfo_v3");
  same(proc("cuEventElapsedTime", 12000, 0), "cuEventElapsedTime");
  same(proc("cuEventElapsedTime", 12080, 0), "cuEventElapsedTime_v2");
  const auto own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  same(proc("cuLaunchKernel", 13000, own), "cuLaunchKernel_ptsz");
  same(proc("cuMemcpyHtoD", 13000, own), "cuMemcpyHtoD_v2_ptds");
  same(proc("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM), "cuMemcpyHtoD_v2");
  same(proc("cuMemcpyHtoD", 4000, own), "cuMemcpyHtoD_v2");  // older than the threads' streams
  same(proc("cuInit", 13000, own), "cuInit");
  same(proc("cuGetProcAddress", 11030, 0), "cuGetProcAddress");
  same(proc("cuGetProcAddress", 12000, 0), "cuGetProcAddress_v2");
  void* found = nullptr;
  CHECK(API(cuGetProcAddress)("cuInit", &found, 14000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuGetProcAddress)("cuInit", &found, 13000, 4, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuGetProcAddress)(nullptr, &found, 13000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuGetProcAddress)("cuInit", nullptr, 13000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  const auto first =
      call<CUresult (*)(const char*, void**, int, unsigned long long)>("cuGetProcAddress");
  CHECK(first("cuInit", &found, 12000, 0) == CUDA_SUCCESS);
  CHECK(found == entry_point("cuInit"));
  CHECK(first("cuNone", &found, 12000, 0) == CUDA_ERROR_NOT_FOUND);
}
