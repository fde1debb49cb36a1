// Launches: what a device checks, what it does with parameters, what it says of a fault.

#include <fstream>
#include <sstream>

#include "tests/emulator/driver_test.h"
#include "tests/run_program.h"

using namespace emulator_test;

namespace {

struct Shape {
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared = 0;
};

CUresult launch_shape(CUfunction f, const Shape& s, void** parameters = nullptr,
                      void** extra = nullptr) {
  return API(cuLaunchKernel)(f, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
                             s.shared, nullptr, parameters, extra);
}

}  // namespace

TEST_CASE("Driver: shapes of a launch", "[driver]") {
  Started started;
  Kernels kernels;
  const CUfunction f = kernels["fill"];
  Numbers numbers(1);
  Arguments arguments(numbers.address(), 1u, 1u);
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  const auto code = [&](const Shape& shape) { return launch_shape(f, shape, arguments); };
  CHECK(code({}) == CUDA_SUCCESS);
  CHECK(code({{0, 1, 1}}) == wrong);
  CHECK(code({{1, 0, 1}}) == wrong);
  CHECK(code({{1, 1, 0}}) == wrong);
  CHECK(code({{1, 1, 1}, {0, 1, 1}}) == wrong);
  CHECK(code({{1, 1, 1}, {1, 1, 0}}) == wrong);
  CHECK(code({{0x80000000u, 1, 1}}) == wrong);
  CHECK(code({{1, 65536, 1}}) == wrong);
  CHECK(code({{1, 1, 65536}}) == wrong);
  CHECK(code({{1, 1, 1}, {1025, 1, 1}}) == wrong);
  CHECK(code({{1, 1, 1}, {1, 1025, 1}}) == wrong);
  CHECK(code({{1, 1, 1}, {1, 1, 65}}) == wrong);
  CHECK(code({{1, 1, 1}, {32, 32, 2}}) == wrong);
  CHECK(code({{1, 1, 1}, {1, 16, 64}}) == CUDA_SUCCESS);
  CHECK(code({{1, 1, 1}, {1024, 1, 1}, 48 * 1024}) == CUDA_SUCCESS);
  CHECK(code({{1, 1, 1}, {1, 1, 1}, 48 * 1024 + 1}) == wrong);
  OK(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024);
  CHECK(code({{1, 1, 1}, {1, 1, 1}, 100 * 1024}) == CUDA_SUCCESS);
  CHECK(code({{1, 1, 1}, {1, 1, 1}, 100 * 1024 + 1}) == wrong);
  CHECK(launch_shape(kernels["bounded"], {{1, 1, 1}, {64, 1, 1}}) == CUDA_SUCCESS);
  CHECK(launch_shape(kernels["bounded"], {{1, 1, 1}, {65, 1, 1}}) == wrong);
  CHECK(launch_shape(kernels["exact"], {{1, 1, 1}, {32, 2, 1}}) == CUDA_SUCCESS);
  CHECK(launch_shape(kernels["exact"], {{1, 1, 1}, {64, 1, 1}}) == wrong);
  CHECK(launch_shape(kernels["exact"], {{1, 1, 1}, {32, 1, 1}}) == wrong);
  CHECK(launch_shape(nullptr, {}) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(launch_shape(reinterpret_cast<CUfunction>(&started), {}) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuCtxSynchronize);
}

TEST_CASE("Driver: a kernel of many registers has few threads", "[driver]") {
  Started started;
  // 200 values that live together, each from memory.
  std::ostringstream text;
  text << ".version 7.0\n.target sm_75\n.address_size 64\n"
       << ".visible .entry many(.param .u64 p) { .reg .b64 %a; .reg .b32 %v<200>;\n"
       << "ld.param.u64 %a, [p];\n";
  for (int i = 0; i < 200; ++i) text << "ld.global.u32 %v" << i << ", [%a+" << 4 * i << "];\n";
  for (int i = 199; i >= 0; --i)
    text << "st.global.u32 [%a+" << 4 * (199 - i) << "], %v" << i << ";\n";
  text << "ret; }\n";
  Kernels kernels(text.str());
  const CUfunction many = kernels["many"];
  int registers = 0, threads = 0;
  OK(cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, many);
  OK(cuFuncGetAttribute, &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, many);
  CHECK(registers >= 200);
  CHECK(threads < 1024);
  CHECK(threads >= 224);
  Numbers numbers(200);
  Arguments arguments(numbers.address());
  CHECK(launch_shape(many, {{1, 1, 1}, {1024, 1, 1}}, arguments) ==
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CHECK(launch_shape(many, {}, arguments) == CUDA_SUCCESS);
  OK(cuCtxSynchronize);
  int blocks = -1;
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, many, 1024, 0);
  CHECK(blocks == 0);
}

TEST_CASE("Driver: parameters are copied at the launch", "[driver]") {
  Started started;
  Kernels kernels;
  const CUfunction f = kernels["fill"];
  Numbers numbers(3);
  CUdeviceptr address = numbers.address();
  unsigned value = 10, count = 3;
  void* pointers[] = {&address, &value, &count};
  CUstream stream = nullptr;
  OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  {
    Gate gate(stream);
    OK(cuLaunchKernel, f, 1, 1, 1, 3, 1, 1, 0, stream, pointers, nullptr);
    value = 99;
    address = 0;
    pointers[1] = nullptr;
  }
  OK(cuStreamSynchronize, stream);
  CHECK(numbers.read() == std::vector<unsigned>{10, 11, 12});

  struct {
    CUdeviceptr address;
    unsigned value, count;
  } buffer{numbers.address(), 20, 3};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CHECK(launch_shape(f, {{1, 1, 1}, {3, 1, 1}}, nullptr, extra) == CUDA_SUCCESS);
  CHECK(numbers.read() == std::vector<unsigned>{20, 21, 22});
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  bytes = 12;
  CHECK(launch_shape(f, {}, nullptr, extra) == wrong);
  bytes = 64;
  CHECK(launch_shape(f, {}, nullptr, extra) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  bytes = 16;
  CHECK(launch_shape(f, {}, pointers, extra) == wrong);
  CHECK(launch_shape(f, {}, nullptr, nullptr) == wrong);
  CHECK(launch_shape(f, {}, pointers) == wrong);  // one of them is null
  void* odd[] = {&bytes, &bytes, CU_LAUNCH_PARAM_END};
  CHECK(launch_shape(f, {}, nullptr, odd) == wrong);
  CHECK(launch_shape(kernels["bounded"], {}) == CUDA_SUCCESS);  // no parameters, none needed
  OK(cuCtxSynchronize);
}

TEST_CASE("Driver: launches with attributes, cooperative ones", "[driver]") {
  Started started;
  Kernels kernels;
  Numbers numbers(4);
  Arguments arguments(numbers.address(), 1u, 4u);
  CUlaunchAttribute attributes[3] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[1].value.priority = -3;
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[2].value.clusterDim = {1, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 4;
  config.blockDimY = config.blockDimZ = 1;
  config.attrs = attributes;
  config.numAttrs = 3;
  OK(cuLaunchKernelEx, &config, kernels["fill"], arguments, nullptr);
  CHECK(numbers.read() == std::vector<unsigned>{1, 2, 3, 4});
  attributes[2].value.clusterDim = {2, 1, 1};
  CHECK(API(cuLaunchKernelEx)(&config, kernels["fill"], arguments, nullptr) ==
        CUDA_ERROR_NOT_SUPPORTED);
  attributes[2].value.clusterDim = {0, 1, 1};
  CHECK(API(cuLaunchKernelEx)(&config, kernels["fill"], arguments, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  attributes[2].id = CUlaunchAttributeID(77);
  CHECK(API(cuLaunchKernelEx)(&config, kernels["fill"], arguments, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuLaunchKernelEx)(nullptr, kernels["fill"], arguments, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[2].value.cooperative = 1;
  config.gridDimX = 1 << 20;
  CHECK(API(cuLaunchKernelEx)(&config, kernels["fill"], arguments, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  // As many blocks as fit the multiprocessors, and one more.
  int blocks = 0, multiprocessors = 0;
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, kernels["bounded"], 64, 0);
  OK(cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  const unsigned most = unsigned(blocks * multiprocessors);
  CHECK(API(cuLaunchCooperativeKernel)(kernels["bounded"], most, 1, 1, 64, 1, 1, 0, nullptr,
                                       nullptr) == CUDA_SUCCESS);
  CHECK(API(cuLaunchCooperativeKernel)(kernels["bounded"], most + 1, 1, 1, 64, 1, 1, 0, nullptr,
                                       nullptr) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  OK(cuCtxSynchronize);
}

TEST_CASE("Driver: occupancy by hand", "[driver]") {
  Started started;
  Kernels kernels;
  const auto blocks = [&](const char* name, int threads, size_t shared) {
    int count = -1;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &count, kernels[name], threads, shared);
    return count;
  };
  // A 9.0 part: 2048 threads, 32 blocks and 228 KB of shared memory a multiprocessor, 1 KB of it
  // taken by the system for every block. These kernels have few registers.
  CHECK(blocks("fill", 1024, 0) == 2);
  CHECK(blocks("fill", 256, 0) == 8);
  CHECK(blocks("fill", 33, 0) == 32);
  CHECK(blocks("fill", 1, 0) == 32);
  CHECK(blocks("fill", 32, 37 * 1024) == 6);    // 228 / 38
  CHECK(blocks("shared", 32, 37 * 1024) == 5);  // 228 / 39
  CHECK(blocks("fill", 32, 227 * 1024) == 1);
  CHECK(blocks("fill", 32, 228 * 1024) == 0);
  CHECK(blocks("bounded", 64, 0) == 32);
  CHECK(blocks("bounded", 65, 0) == 0);
  int count = 0, size = 0;
  CHECK(API(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&count, kernels["fill"], 0, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&count, nullptr, 32, 0) ==
        CUDA_ERROR_INVALID_HANDLE);
  int multiprocessors = 0;
  OK(cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  OK(cuOccupancyMaxPotentialBlockSize, &count, &size, kernels["fill"], nullptr, 0, 0);
  CHECK(size == 1024);
  CHECK(count == 2 * multiprocessors);
  OK(cuOccupancyMaxPotentialBlockSize, &count, &size, kernels["fill"], nullptr, 0, 100);
  CHECK(size == 64);  // 32 blocks of it fill all 2048 threads, 21 of 96 only 2016
  // A kilobyte a thread: 227 threads at most, seven warps.
  OK(
      cuOccupancyMaxPotentialBlockSize, &count, &size, kernels["fill"],
      [](int threads) { return size_t(threads) * 1024; }, 0, 0);
  CHECK(size == 224);
  CHECK(count == multiprocessors);
  size_t dynamic = 0;
  OK(cuFuncSetAttribute, kernels["fill"], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
     227 * 1024);
  OK(cuOccupancyAvailableDynamicSMemPerBlock, &dynamic, kernels["fill"], 4, 32);
  CHECK(dynamic == 56 * 1024);  // 228 / 4 - 1
}

TEST_CASE("Driver: a fault is found by the next call that waits, and stays", "[driver]") {
  Started started;
  Numbers numbers(4);
  struct Row {
    const char* kernel;
    CUdeviceptr address;
    CUresult code;
    const char* words;
  };
  const Row rows[] = {
      {"wild", 0x1000, CUDA_ERROR_ILLEGAL_ADDRESS, "wild"},
      {"wild", numbers.address() + 2, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned"},
      {"stop", 0, CUDA_ERROR_ILLEGAL_INSTRUCTION, "trap"},
  };
  for (const Row& row : rows) {
    INFO(row.kernel);
    CUcontext context = nullptr;
    OK(cuCtxCreate, &context, nullptr, 0, 0);
    Kernels kernels;
    CUdeviceptr other = 0;
    CUevent event = nullptr;
    CUstream stream = nullptr;
    OK(cuMemAlloc, &other, 16);
    OK(cuEventCreate, &event, CU_EVENT_DEFAULT);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    const CUfunction idle = kernels["bounded"];
    CHECK(launch(kernels[row.kernel], 1, 1, nullptr, row.address) == CUDA_SUCCESS);
    CHECK(API(cuCtxSynchronize)() == row.code);
    const std::string report = API(cuda_emulator_report)();
    INFO(report);
    CHECK(report.find(row.words) != std::string::npos);
    // Everything that needs the context fails alike.
    CUdeviceptr more = 0;
    unsigned value = 0;
    CHECK(API(cuCtxSynchronize)() == row.code);
    CHECK(API(cuMemAlloc)(&more, 16) == row.code);
    CHECK(API(cuMemcpyHtoD)(other, &value, 4) == row.code);
    CHECK(API(cuMemsetD8)(other, 0, 4) == row.code);
    CHECK(launch(idle, 1, 1, nullptr) == row.code);
    CHECK(API(cuStreamSynchronize)(stream) == row.code);
    CHECK(API(cuStreamQuery)(stream) == row.code);
    CHECK(API(cuEventRecord)(event, stream) == row.code);
    CHECK(API(cuEventSynchronize)(event) == row.code);
    CHECK(API(cuStreamCreate)(&stream, 0) == row.code);
    CUmodule module = nullptr;
    CHECK(API(cuModuleLoadData)(&module, emulator_test::kernels().c_str()) == row.code);
    // What frees says so too, and frees.
    CHECK(API(cuMemFree)(other) == row.code);
    CHECK(API(cuEventDestroy)(event) == row.code);
    CHECK(API(cuModuleUnload)(kernels.module) == row.code);
    // Other contexts go on, and a new one works.
    CUdevice device = 0;
    OK(cuCtxGetDevice, &device);
    OK(cuCtxDestroy, context);
    CHECK(numbers.read() == std::vector<unsigned>(4, 0));
  }
  CHECK(alive() == std::array<uint64_t, 7>{1, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("Driver: work behind a fault does not run", "[driver]") {
  Started started;
  Kernels kernels;
  static int calls;
  static CUresult seen;
  calls = 0;
  seen = CUDA_SUCCESS;
  CHECK(launch(kernels["stop"], 1, 1, nullptr) == CUDA_SUCCESS);
  {
    // Both may already find the error, where the fault was quick.
    const CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_INSTRUCTION};
    const CUresult host = API(cuLaunchHostFunc)(
        nullptr, [](void*) { ++calls; }, nullptr);
    CHECK((host == expected[0] || host == expected[1]));
  }
  // A callback is told of the error.
  OK(
      cuStreamAddCallback, nullptr, [](CUstream, CUresult status, void*) { seen = status; },
      nullptr, 0);
  CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  CHECK(calls == 0);
  CHECK(seen == CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

TEST_CASE("Driver: reports go to a file, counts too", "[driver]") {
  const krait::TestFolder folder;
  const std::string reports = folder.file("reports"), counts = folder.file("counts");
  setenv("KRAIT_EMULATOR_REPORTS", reports.c_str(), 1);
  setenv("KRAIT_EMULATOR_STATS", counts.c_str(), 1);
  {
    Started started;
    Kernels kernels;
    Numbers numbers(40);
    CHECK(launch(kernels["fill"], 2, 32, nullptr, numbers.address(), 1u, 40u) == CUDA_SUCCESS);
    CHECK(launch(kernels["fill"], 1, 32, nullptr, numbers.address(), 1u, 8u) == CUDA_SUCCESS);
    OK(cuCtxSynchronize);
    CHECK(std::string(API(cuda_emulator_report)()).empty());
    const auto live = nlohmann::json::parse(API(cuda_emulator_statistics)());
    CHECK(live.at("launches").size() == 2);
    CHECK(live.at("launches")[0].at("grid") == nlohmann::json{2, 1, 1});
    CHECK(live.at("launches")[0].at("blocks") == 2);
    CHECK(live.at("launches")[0].at("global").at("store").at("bytes") == 160);
    CHECK(live.at("launches")[0].at("global").at("store").at("sectors") == 5);
    CHECK(live.at("launches")[1].at("global").at("store").at("bytes") == 32);
    const auto& sum = live.at("kernels").at("fill");
    CHECK(sum.at("launches") == 2);
    CHECK(sum.at("blocks") == 3);
    CHECK(sum.at("global").at("store").at("bytes") == 192);
    CHECK(sum.at("warp_instructions").at("by_class").at("store_global") == 3);
    CHECK(sum.at("mma").at("by_shape").is_object());
    CHECK(launch(kernels["stop"], 1, 1, nullptr) == CUDA_SUCCESS);
    CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  }
  unsetenv("KRAIT_EMULATOR_REPORTS");
  unsetenv("KRAIT_EMULATOR_STATS");
  std::stringstream text;
  text << std::ifstream(reports).rdbuf();
  CHECK(text.str().find("stop") != std::string::npos);
  const auto kept = nlohmann::json::parse(std::ifstream(counts));
  CHECK(kept.at("launches").size() >= 2);
  CHECK(kept.at("kernels").at("fill").at("launches") == 2);
}

TEST_CASE("Driver: a launch without a seed draws one and tells it", "[driver]") {
  Started started;
  const auto seed_of_fault = [&] {
    CUcontext context = nullptr;
    OK(cuCtxCreate, &context, nullptr, 0, 0);
    Kernels kernels;
    CHECK(launch(kernels["stop"], 1, 1, nullptr) == CUDA_SUCCESS);
    CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
    OK(cuCtxDestroy, context);
    const std::string report = API(cuda_emulator_report)();
    return std::stoull(report.substr(report.find("seed ") + 5));
  };
  const auto one = seed_of_fault(), two = seed_of_fault();
  CHECK(one != 0);
  CHECK(one != two);
  API(cuda_emulator_seed)(1234);
  CHECK(seed_of_fault() == 1234);
}
