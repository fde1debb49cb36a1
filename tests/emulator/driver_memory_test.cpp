// Memory: allocations, copies, memsets, pools, pointers.

#include <numeric>

#include "tests/emulator/driver_test.h"

using namespace emulator_test;

namespace {

std::vector<unsigned> counted(size_t count, unsigned from = 0) {
  std::vector<unsigned> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

size_t free_bytes() {
  size_t free = 0, total = 0;
  OK(cuMemGetInfo, &free, &total);
  return free;
}

CUdeviceptr pointer(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

}  // namespace

TEST_CASE("Driver: allocations and their ranges", "[driver]") {
  Fresh fresh;
  API(cuda_emulator_memory)(1 << 20);
  OK(cuInit, 0);
  CUcontext context = nullptr;
  OK(cuCtxCreate, &context, nullptr, 0, 0);
  CHECK(free_bytes() == 1 << 20);
  CUdeviceptr a = 0, b = 0;
  OK(cuMemAlloc, &a, 1000);
  CHECK(a % 256 == 0);
  CHECK(free_bytes() == (1 << 20) - 1024);
  CUdeviceptr base = 0;
  size_t size = 0;
  OK(cuMemGetAddressRange, &base, &size, a + 999);
  CHECK(base == a);
  CHECK(size == 1000);
  OK(cuMemGetAddressRange, nullptr, &size, a);
  CHECK(API(cuMemGetAddressRange)(&base, &size, a + 1000) == CUDA_ERROR_NOT_FOUND);
  CHECK(API(cuMemAlloc)(&b, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemAlloc)(nullptr, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemAlloc)(&b, 1 << 20) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(API(cuMemAlloc)(&b, ~size_t{0}) == CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAlloc, &b, (1 << 20) - 1024);
  CHECK(free_bytes() == 0);
  OK(cuMemFree, b);
  CHECK(API(cuMemFree)(b) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemFree)(a + 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemFree)(0x1234) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemFree)(0) == CUDA_SUCCESS);
  size_t pitch = 0;
  OK(cuMemAllocPitch, &b, &pitch, 100, 7, 4);
  CHECK(pitch >= 100);
  CHECK(pitch % 256 == 0);
  OK(cuMemGetAddressRange, &base, &size, b);
  CHECK(size == pitch * 7);
  CHECK(API(cuMemAllocPitch)(&b, &pitch, 100, 7, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemAllocPitch)(&b, &pitch, 0, 7, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemAllocPitch)(&b, &pitch, size_t{1} << 60, 1 << 19, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(alive()[0] == 2);
}

TEST_CASE("Driver: copies of every direction", "[driver]") {
  Started started;
  const std::vector<unsigned> values = counted(100);
  Numbers a(100), b(100);
  OK(cuMemcpyHtoD, a.address(), values.data(), 400);
  CHECK(a.read() == values);
  OK(cuMemcpyDtoD, b.address() + 40, a.address(), 200);
  CHECK(b.read()[10] == 0);
  CHECK(b.read()[59] == 49);
  CHECK(b.read()[60] == 0);
  std::vector<unsigned> back(100);
  OK(cuMemcpy, pointer(back.data()), a.address(), 400);
  CHECK(back == values);
  OK(cuMemcpy, b.address(), a.address(), 400);
  CHECK(b.read() == values);
  back = counted(100, 7);
  OK(cuMemcpy, a.address(), pointer(back.data()), 400);
  CHECK(a.read() == back);
  std::vector<unsigned> there(100);
  OK(cuMemcpy, pointer(there.data()), pointer(back.data()), 400);
  CHECK(there == back);
  OK(cuMemcpyPeer, a.address(), started.context, b.address(), started.context, 400);
  CHECK(a.read() == values);
  CHECK(API(cuMemcpyPeer)(a.address(), nullptr, b.address(), started.context, 4) ==
        CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("Driver: copies of wrong ranges", "[driver]") {
  Started started;
  Numbers a(100), b(100);
  std::vector<unsigned> host(200);
  CUdeviceptr freed = 0;
  OK(cuMemAlloc, &freed, 400);
  OK(cuMemFree, freed);
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  CHECK(API(cuMemcpyHtoD)(a.address(), host.data(), 401) == wrong);
  CHECK(API(cuMemcpyHtoD)(a.address() + 1, host.data(), 400) == wrong);
  CHECK(API(cuMemcpyHtoD)(freed, host.data(), 4) == wrong);
  CHECK(API(cuMemcpyHtoD)(0, host.data(), 4) == wrong);
  CHECK(API(cuMemcpyHtoD)(a.address(), nullptr, 4) == wrong);
  CHECK(API(cuMemcpyHtoD)(a.address(), reinterpret_cast<void*>(0x1000), 4) == wrong);
  CHECK(API(cuMemcpyHtoD)(a.address(), host.data(), ~size_t{0}) == wrong);
  CHECK(API(cuMemcpyDtoH)(host.data(), a.address(), 404) == wrong);
  CHECK(API(cuMemcpyDtoH)(host.data(), freed, 4) == wrong);
  CHECK(API(cuMemcpyDtoH)(nullptr, a.address(), 4) == wrong);
  // A device address is no pointer of the host.
  CHECK(API(cuMemcpyDtoH)(reinterpret_cast<void*>(b.address()), a.address(), 4) == wrong);
  CHECK(API(cuMemcpyDtoD)(a.address(), b.address() + 4, 400) == wrong);
  CHECK(API(cuMemcpyDtoD)(a.address(), freed, 400) == wrong);
  CHECK(API(cuMemcpyDtoD)(a.address(), pointer(host.data()), 4) == wrong);
  CHECK(API(cuMemcpy)(a.address(), freed, 4) == wrong);
  CHECK(API(cuMemcpy)(freed, a.address(), 4) == wrong);
  CHECK(API(cuMemcpyAsync)(a.address(), freed, 4, nullptr) == wrong);
  CHECK(API(cuMemcpyHtoDAsync)(a.address(), host.data(), 404, nullptr) == wrong);
  CHECK(API(cuMemcpyHtoDAsync)(a.address(), host.data(), 4, reinterpret_cast<CUstream>(0x4321)) ==
        CUDA_ERROR_INVALID_HANDLE);
  // Nothing to copy is no error, whatever the addresses.
  CHECK(API(cuMemcpyHtoD)(freed, nullptr, 0) == CUDA_SUCCESS);
  CHECK(API(cuMemcpyDtoD)(0, 0, 0) == CUDA_SUCCESS);
  // None of these was sticky.
  OK(cuCtxSynchronize);
}

TEST_CASE("Driver: copies in two and three dimensions", "[driver]") {
  Started started;
  // 3 rows of 4 of an 8 x 5 array, from (1, 2) to (3, 1) of a 10 x 6 one.
  const std::vector<unsigned> source = counted(40);
  Numbers target(60);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = source.data();
  copy.srcPitch = 32;
  copy.srcXInBytes = 4;
  copy.srcY = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = target.address();
  copy.dstPitch = 40;
  copy.dstXInBytes = 12;
  copy.dstY = 1;
  copy.WidthInBytes = 16;
  copy.Height = 3;
  OK(cuMemcpy2D, &copy);
  std::vector<unsigned> expected(60);
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 4; ++x) expected[(y + 1) * 10 + x + 3] = source[(y + 2) * 8 + x + 1];
  }
  CHECK(target.read() == expected);
  OK(cuMemcpy2DUnaligned, &copy);
  CUDA_MEMCPY2D wrong = copy;
  wrong.srcPitch = 16;
  CHECK(API(cuMemcpy2D)(&wrong) == CUDA_ERROR_INVALID_VALUE);
  wrong = copy;
  wrong.Height = 6;  // past the end of the target
  CHECK(API(cuMemcpy2D)(&wrong) == CUDA_ERROR_INVALID_VALUE);
  wrong = copy;
  wrong.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  CHECK(API(cuMemcpy2D)(&wrong) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemcpy2D)(nullptr) == CUDA_ERROR_INVALID_VALUE);
  copy.Height = 0;
  OK(cuMemcpy2D, &copy);

  // 2 x 2 x 2 of a 3 x 3 x 3 cube on the device to the host.
  Numbers cube(27);
  const std::vector<unsigned> all = counted(27);
  OK(cuMemcpyHtoD, cube.address(), all.data(), 27 * 4);
  std::vector<unsigned> corner(8);
  CUDA_MEMCPY3D part{};
  part.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  part.srcDevice = cube.address();
  part.srcPitch = 12;
  part.srcHeight = 3;
  part.srcXInBytes = 4;
  part.srcY = part.srcZ = 1;
  part.dstMemoryType = CU_MEMORYTYPE_HOST;
  part.dstHost = corner.data();
  part.dstPitch = 8;
  part.dstHeight = 2;
  part.WidthInBytes = 8;
  part.Height = part.Depth = 2;
  OK(cuMemcpy3D, &part);
  CHECK(corner == std::vector<unsigned>{13, 14, 16, 17, 22, 23, 25, 26});
  OK(cuMemcpy3DAsync, &part, nullptr);
  part.srcZ = 2;
  CHECK(API(cuMemcpy3D)(&part) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: memsets", "[driver]") {
  Started started;
  Numbers a(20);
  OK(cuMemsetD32, a.address() + 8, 0x01020304, 3);
  OK(cuMemsetD16, a.address() + 20, 0xabcd, 3);
  OK(cuMemsetD8, a.address() + 30, 0x77, 3);
  std::vector<unsigned> expected(20);
  expected[2] = expected[3] = expected[4] = 0x01020304;
  expected[5] = 0xabcdabcd;
  expected[6] = 0x0000abcd;
  expected[7] = 0x77770000;
  expected[8] = 0x77;
  CHECK(a.read()[7] == 0x77770000);
  CHECK(a.read() == expected);
  // Two columns of the second half, rows of five.
  OK(cuMemsetD2D32, a.address() + 40, 20, 9, 2, 2);
  CHECK(a.read()[10] == 9);
  CHECK(a.read()[11] == 9);
  CHECK(a.read()[12] == 0);
  CHECK(a.read()[16] == 9);
  OK(cuMemsetD2D16, a.address(), 4, 5, 1, 20);
  CHECK(a.read()[19] == 5);
  CHECK(a.read()[7] == 0x77770005);
  OK(cuMemsetD2D8, a.address(), 80, 0xff, 80, 1);
  CHECK(a.read() == std::vector<unsigned>(20, 0xffffffff));
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  CHECK(API(cuMemsetD32)(a.address() + 2, 0, 1) == wrong);
  CHECK(API(cuMemsetD16)(a.address() + 1, 0, 1) == wrong);
  CHECK(API(cuMemsetD32)(a.address(), 0, 21) == wrong);
  CHECK(API(cuMemsetD32)(a.address(), 0, size_t{1} << 62) == wrong);
  CHECK(API(cuMemsetD32)(0, 0, 1) == wrong);
  CHECK(API(cuMemsetD2D32)(a.address(), 4, 9, 2, 2) == wrong);
  CHECK(API(cuMemsetD32)(0, 0, 0) == CUDA_SUCCESS);
  CHECK(API(cuMemsetD32Async)(a.address(), 3, 20, nullptr) == CUDA_SUCCESS);
  CHECK(a.read() == std::vector<unsigned>(20, 3));
}

TEST_CASE("Driver: page-locked memory is used at its own address", "[driver]") {
  Started started;
  Kernels kernels;
  void* raw = nullptr;
  OK(cuMemHostAlloc, &raw, 400, CU_MEMHOSTALLOC_DEVICEMAP);
  auto* host = static_cast<unsigned*>(raw);
  CUdeviceptr address = 0;
  OK(cuMemHostGetDevicePointer, &address, host, 0);
  CHECK(launch(kernels["fill"], 1, 100, nullptr, address, 5u, 100u) == CUDA_SUCCESS);
  OK(cuCtxSynchronize);
  CHECK(std::vector<unsigned>(host, host + 100) == counted(100, 5));
  unsigned flags = 0;
  OK(cuMemHostGetFlags, &flags, host);
  CHECK((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0);
  CHECK(API(cuMemHostAlloc)(&raw, 4, 0x80) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemHostGetDevicePointer)(&address, &flags, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemHostGetDevicePointer)(&address, host, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemFree)(pointer(host)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemHostUnregister)(host) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  OK(cuMemFreeHost, host);
  CHECK(API(cuMemFreeHost)(host) == CUDA_ERROR_INVALID_VALUE);

  std::vector<unsigned> own(100);
  OK(cuMemHostRegister, own.data(), 400, CU_MEMHOSTREGISTER_DEVICEMAP);
  CHECK(API(cuMemHostRegister)(own.data(), 4, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(API(cuMemHostRegister)(own.data() + 50, 400, 0) ==
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(API(cuMemHostRegister)(nullptr, 4, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemFreeHost)(own.data()) == CUDA_ERROR_INVALID_VALUE);
  OK(cuMemHostGetDevicePointer, &address, own.data() + 10, 0);
  CHECK(launch(kernels["fill"], 1, 90, nullptr, address, 1u, 90u) == CUDA_SUCCESS);
  OK(cuCtxSynchronize);
  CHECK(own[10] == 1);
  CHECK(own[99] == 90);
  CHECK(own[9] == 0);
  OK(cuMemHostUnregister, own.data());
  CHECK(API(cuMemHostUnregister)(own.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(alive()[0] == 0);
  // Not known any more: a kernel that writes there faults.
  CHECK(launch(kernels["fill"], 1, 90, nullptr, address, 1u, 90u) == CUDA_SUCCESS);
  CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("Driver: managed memory is of both sides", "[driver]") {
  Started started;
  Kernels kernels;
  CUdeviceptr address = 0;
  OK(cuMemAllocManaged, &address, 40, CU_MEM_ATTACH_GLOBAL);
  auto* host = reinterpret_cast<unsigned*>(address);
  CHECK(launch(kernels["fill"], 1, 10, nullptr, address, 3u, 10u) == CUDA_SUCCESS);
  OK(cuCtxSynchronize);
  CHECK(host[9] == 12);
  host[0] = 20;
  unsigned value = 0;
  OK(cuMemcpyDtoH, &value, address, 4);
  CHECK(value == 20);
  CUmemLocation device{};
  device.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cuMemPrefetchAsync, address, 40, device, 0, nullptr);
  OK(cuMemAdvise, address, 40, CU_MEM_ADVISE_SET_READ_MOSTLY, device);
  CHECK(API(cuMemPrefetchAsync)(address, 41, device, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  device.id = 1;
  CHECK(API(cuMemPrefetchAsync)(address, 40, device, 0, nullptr) == CUDA_ERROR_INVALID_DEVICE);
  OK(cuMemFree, address);
  CHECK(API(cuMemAllocManaged)(&address, 40, 9) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuMemAllocManaged)(&address, 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: asynchronous copies and when they use the host's memory", "[driver]") {
  Started started;
  CUstream stream = nullptr;
  OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  Numbers a(4), b(4);
  std::vector<unsigned> pageable = {1, 2, 3, 4};
  void* raw = nullptr;
  OK(cuMemAllocHost, &raw, 16);
  auto* pinned = static_cast<unsigned*>(raw);
  std::copy(pageable.begin(), pageable.end(), pinned);
  OK(cuCtxSynchronize);
  {
    Gate gate(stream);
    OK(cuMemcpyHtoDAsync, a.address(), pageable.data(), 16, stream);
    OK(cuMemcpyHtoDAsync, b.address(), pinned, 16, stream);
    // Pageable memory was taken at the call; pinned memory is read when the copy runs.
    pageable[0] = pinned[0] = 100;
  }
  OK(cuStreamSynchronize, stream);
  CHECK(a.read() == std::vector<unsigned>{1, 2, 3, 4});
  CHECK(b.read() == std::vector<unsigned>{100, 2, 3, 4});
  // A copy to pageable memory returns when it is done, one to pinned memory before.
  pageable.assign(4, 0);
  OK(cuMemcpyDtoHAsync, pageable.data(), b.address(), 16, stream);
  CHECK(pageable[0] == 100);
  {
    Gate gate(stream);
    pinned[1] = 55;
    OK(cuMemcpyDtoHAsync, pinned, a.address(), 16, stream);
    CHECK(API(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
    CHECK(pinned[1] == 55);
  }
  OK(cuStreamSynchronize, stream);
  CHECK(pinned[1] == 2);
  OK(cuMemFreeHost, raw);
}

TEST_CASE("Driver: memory in the order of streams", "[driver]") {
  Started started;
  Kernels kernels;
  CUstream stream = nullptr;
  OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CUmemoryPool pool = nullptr, current = nullptr;
  OK(cuDeviceGetDefaultMemPool, &pool, 0);
  OK(cuDeviceGetMemPool, &current, 0);
  CHECK(pool == current);
  CUdeviceptr address = 0, other = 0;
  Numbers copy(64);
  {
    Gate gate(stream);
    OK(cuMemAllocAsync, &address, 256, stream);
    cuuint64_t used = 0;
    OK(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    CHECK(used == 256);
    CHECK(launch(kernels["fill"], 1, 64, stream, address, 9u, 64u) == CUDA_SUCCESS);
    OK(cuMemcpyDtoDAsync, copy.address(), address, 256, stream);
    OK(cuMemFreeAsync, address, stream);
    CHECK(API(cuMemFreeAsync)(address, stream) == CUDA_ERROR_INVALID_VALUE);
    CHECK(alive()[0] == 1);  // the copy alone
    gate.open();
    OK(cuStreamSynchronize, stream);
    CHECK(copy.read() == counted(64, 9));
  }
  // Used after its free it is an error of the kernel.
  CHECK(launch(kernels["fill"], 1, 64, stream, address, 9u, 64u) == CUDA_SUCCESS);
  CHECK(API(cuStreamSynchronize)(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(API(cuMemAllocAsync)(&other, 4, stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("Driver: pools", "[driver]") {
  Started started;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.maxSize = 1000;
  CUmemoryPool pool = nullptr, found = nullptr;
  OK(cuMemPoolCreate, &pool, &properties);
  CUdeviceptr a = 0, b = 0;
  OK(cuMemAllocFromPoolAsync, &a, 600, pool, nullptr);
  CHECK(API(cuMemAllocFromPoolAsync)(&b, 600, pool, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(API(cuMemAllocFromPoolAsync)(&b, 0, pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
  OK(cuPointerGetAttribute, &found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a);
  CHECK(found == pool);
  cuuint64_t value = 0;
  OK(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
  CHECK(value == 600);
  OK(cuMemFree, a);  // also memory of a pool
  value = 4096;
  OK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
  OK(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
  CHECK(value == 4096);
  CHECK(API(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value) ==
        CUDA_ERROR_INVALID_VALUE);
  OK(cuDeviceSetMemPool, 0, pool);
  OK(cuMemAllocAsync, &a, 8, nullptr);
  OK(cuPointerGetAttribute, &found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a);
  CHECK(found == pool);
  OK(cuMemFreeAsync, a, nullptr);
  OK(cuMemPoolTrimTo, pool, 0);
  OK(cuMemPoolDestroy, pool);
  CHECK(API(cuMemPoolDestroy)(pool) == CUDA_ERROR_INVALID_VALUE);
  OK(cuDeviceGetMemPool, &found, 0);
  CHECK(API(cuMemPoolDestroy)(found) == CUDA_ERROR_INVALID_VALUE);  // the default one
}

TEST_CASE("Driver: a pool's memory comes back when a stream has freed it", "[driver]") {
  Fresh fresh;
  API(cuda_emulator_memory)(4096);
  OK(cuInit, 0);
  CUcontext context = nullptr;
  OK(cuCtxCreate, &context, nullptr, 0, 0);
  CUdeviceptr address = 0, other = 0;
  for (int i = 0; i < 10; ++i) {
    OK(cuMemAllocAsync, &address, 4096, nullptr);
    CHECK(API(cuMemAllocAsync)(&other, 4096, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFreeAsync, address, nullptr);
  }
  OK(cuMemAlloc, &address, 4096);
}

TEST_CASE("Driver: attributes of pointers", "[driver]") {
  Started started;
  Kernels kernels;
  CUdeviceptr a = 0, base = 0, global = 0;
  void* host = nullptr;
  OK(cuMemAlloc, &a, 100);
  OK(cuMemAllocHost, &host, 100);
  size_t bytes = 0;
  OK(cuModuleGetGlobal, &global, &bytes, kernels.module, "counter");
  unsigned type = 0, managed = 9;
  CUcontext context = nullptr;
  OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 99);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer(host));
  CHECK(type == CU_MEMORYTYPE_HOST);
  OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, global);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  OK(cuPointerGetAttribute, &context, CU_POINTER_ATTRIBUTE_CONTEXT, a);
  CHECK(context == started.context);
  OK(cuPointerGetAttribute, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a);
  CHECK(managed == 0);
  OK(cuPointerGetAttribute, &base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 50);
  CHECK(base == a);
  void* back = nullptr;
  OK(cuPointerGetAttribute, &back, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer(host));
  CHECK(back == host);
  CHECK(API(cuPointerGetAttribute)(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, a) ==
        CUDA_ERROR_INVALID_VALUE);
  int local = 0;
  CHECK(API(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer(&local)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 100) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuPointerGetAttribute)(&type, CUpointer_attribute(99), a) == CUDA_ERROR_INVALID_VALUE);
  // Several at once: zeros where there is nothing to tell.
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT};
  void* to[] = {&type, &context};
  OK(cuPointerGetAttributes, 2, which, to, pointer(&local));
  CHECK(type == 0);
  CHECK(context == nullptr);
  OK(cuPointerGetAttributes, 2, which, to, a);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(context == started.context);
  const unsigned on = 1;
  unsigned synchronous = 0;
  OK(cuPointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a);
  OK(cuPointerGetAttribute, &synchronous, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a);
  CHECK(synchronous == 1);
}
