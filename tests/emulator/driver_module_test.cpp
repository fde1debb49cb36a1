// Modules, libraries, functions.

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/emulator/driver_test.h"
#include "tests/run_program.h"

using namespace emulator_test;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

int attribute(CUfunction function, CUfunction_attribute which) {
  int value = -1;
  OK(cuFuncGetAttribute, &value, which, function);
  return value;
}

}  // namespace

TEST_CASE("Driver: images that are not PTX for this part", "[driver]") {
  Started started;
  CUmodule module = nullptr;
  const auto load = [&](const std::string& image) {
    return API(cuModuleLoadData)(&module, image.c_str());
  };
  CHECK(load("\x7f"
             "ELF and so on") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(load("\x50\xed\x55\xba fat") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(load("\xb1\x43\x62\x46 wrapped") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(load("") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load("hello") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(replaced(kernels(), ".version 7.0", ".version 10.1")) ==
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  CHECK(load(replaced(kernels(), "st.global.u32 [%a], %v", "st.global.u32 [%a] %v")) ==
        CUDA_ERROR_INVALID_PTX);
  CHECK(load(replaced(kernels(), "trap;", "frobnicate;")) == CUDA_ERROR_INVALID_PTX);
  CHECK(API(cuModuleLoadData)(nullptr, kernels().c_str()) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuModuleLoadData)(&module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuModuleLoadFatBinary)(&module, kernels().c_str()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(alive()[1] == 0);
}

TEST_CASE("Driver: a target is for parts as it says", "[driver]") {
  struct Row {
    const char* target;
    int major, minor;
    bool runs;
  };
  const Row rows[] = {{"sm_75", 7, 5, true},    {"sm_75", 12, 0, true},   {"sm_80", 7, 5, false},
                      {"sm_80", 8, 0, true},    {"sm_80", 9, 0, true},    {"sm_90", 8, 9, false},
                      {"sm_90a", 9, 0, true},   {"sm_90a", 8, 0, false},  {"sm_90a", 10, 0, false},
                      {"sm_120a", 12, 0, true}, {"sm_120a", 9, 0, false}, {"sm_86", 8, 0, false}};
  for (const Row& row : rows) {
    INFO(row.target << " on " << row.major << "." << row.minor);
    Fresh fresh;
    REQUIRE(API(cuda_emulator_architecture)(row.major, row.minor) == 0);
    OK(cuInit, 0);
    CUcontext context = nullptr;
    OK(cuCtxCreate, &context, nullptr, 0, 0);
    std::string text = replaced(kernels(), "sm_75", row.target);
    text = replaced(text, ".version 7.0", ".version 9.0");
    CUmodule module = nullptr;
    CHECK(API(cuModuleLoadData)(&module, text.c_str()) ==
          (row.runs ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU));
  }
}

TEST_CASE("Driver: the log of a module that does not load", "[driver]") {
  Started started;
  const std::string text = replaced(kernels(), "trap;", "frobnicate;");
  char error[200], info[200];
  std::fill_n(error, sizeof error, 'x');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {error, reinterpret_cast<void*>(sizeof error), info,
                    reinterpret_cast<void*>(sizeof info), reinterpret_cast<void*>(4)};
  CUmodule module = nullptr;
  CHECK(API(cuModuleLoadDataEx)(&module, text.c_str(), 5, options, values) ==
        CUDA_ERROR_INVALID_PTX);
  const std::string message = error;
  INFO(message);
  CHECK(message.find("frobnicate") != std::string::npos);
  CHECK(message.find("line ") != std::string::npos);
  CHECK(reinterpret_cast<size_t>(values[1]) == message.size());
  CHECK(info[0] == 0);
  // A short buffer gets the beginning, closed with a zero.
  char few[8];
  std::fill_n(few, sizeof few, 'x');
  void* short_values[] = {few, reinterpret_cast<void*>(sizeof few)};
  CHECK(API(cuModuleLoadDataEx)(&module, text.c_str(), 2, options, short_values) ==
        CUDA_ERROR_INVALID_PTX);
  CHECK(message.substr(0, 7) == few);
  CUjit_option unknown[] = {CUjit_option(1000)};
  CHECK(API(cuModuleLoadDataEx)(&module, kernels().c_str(), 1, unknown, values) ==
        CUDA_ERROR_INVALID_VALUE);
  OK(cuModuleLoadDataEx, &module, kernels().c_str(), 0, nullptr, nullptr);
  CUlinkState state = nullptr;
  CHECK(API(cuLinkCreate)(0, nullptr, nullptr, &state) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("Driver: shared memory beyond 48 KB must be dynamic", "[driver]") {
  Started started;
  const auto load = [](unsigned bytes) {
    CUmodule module = nullptr;
    const std::string text =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() {\n"
        ".shared .align 4 .b8 x[" +
        std::to_string(bytes) + "]; .reg .b32 %v; mov.u32 %v, 1; st.shared.u32 [x], %v; ret; }\n";
    return API(cuModuleLoadData)(&module, text.c_str());
  };
  CHECK(load(48 * 1024) == CUDA_SUCCESS);
  CHECK(load(48 * 1024 + 4) == CUDA_ERROR_INVALID_PTX);
  CHECK(load(100 * 1024) == CUDA_ERROR_INVALID_PTX);
  CHECK(alive()[1] == 1);
}

TEST_CASE("Driver: what is in a module", "[driver]") {
  Started started;
  Kernels kernels;
  CUfunction function = nullptr;
  OK(cuModuleGetFunction, &function, kernels.module, "fill");
  CHECK(function == kernels["fill"]);
  CHECK(API(cuModuleGetFunction)(&function, kernels.module, "none") == CUDA_ERROR_NOT_FOUND);
  CHECK(API(cuModuleGetFunction)(&function, kernels.module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuModuleGetFunction)(nullptr, kernels.module, "fill") == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuModuleGetFunction)(&function, nullptr, "fill") == CUDA_ERROR_INVALID_HANDLE);
  unsigned count = 0;
  OK(cuModuleGetFunctionCount, &count, kernels.module);
  CHECK(count == 8);
  std::vector<CUfunction> all(count);
  OK(cuModuleEnumerateFunctions, all.data(), count, kernels.module);
  CHECK(std::find(all.begin(), all.end(), kernels["append"]) != all.end());
  CUmodule module = nullptr;
  OK(cuFuncGetModule, &module, function);
  CHECK(module == kernels.module);
  const char* name = nullptr;
  OK(cuFuncGetName, &name, kernels["scale"]);
  CHECK(std::string(name) == "scale");
  CUdeviceptr address = 0;
  size_t bytes = 0;
  OK(cuModuleGetGlobal, &address, &bytes, kernels.module, "counter");
  CHECK(bytes == 4);
  unsigned value = 0;
  OK(cuMemcpyDtoH, &value, address, 4);
  CHECK(value == 7);
  OK(cuModuleGetGlobal, nullptr, &bytes, kernels.module, "table");
  CHECK(bytes == 16);
  CHECK(API(cuModuleGetGlobal)(&address, &bytes, kernels.module, "none") == CUDA_ERROR_NOT_FOUND);
  CHECK(API(cuModuleGetGlobal)(nullptr, nullptr, kernels.module, "counter") ==
        CUDA_ERROR_INVALID_VALUE);
  CUmoduleLoadingMode mode = CU_MODULE_LAZY_LOADING;
  OK(cuModuleGetLoadingMode, &mode);
  CHECK(mode == CU_MODULE_EAGER_LOADING);
  OK(cuModuleUnload, kernels.module);
  CHECK(API(cuModuleUnload)(kernels.module) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(API(cuFuncGetName)(&name, function) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(launch(function, 1, 1, nullptr, address, 0u, 0u) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(API(cuMemcpyDtoH)(&value, address, 4) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: a module of a file", "[driver]") {
  Started started;
  const krait::TestFolder folder;
  const std::string path = folder.file("kernels.ptx");
  std::ofstream(path) << kernels();
  CUmodule module = nullptr;
  OK(cuModuleLoad, &module, path.c_str());
  std::remove(path.c_str());
  CHECK(API(cuModuleLoad)(&module, path.c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
  CHECK(API(cuModuleLoad)(&module, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: attributes of functions", "[driver]") {
  Started started;
  Kernels kernels;
  CUfunction shared = kernels["shared"], fill = kernels["fill"];
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
  CHECK(attribute(kernels["bounded"], CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 64);
  CHECK(attribute(shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 1024);
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 0);
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_NUM_REGS) > 0);
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_PTX_VERSION) == 75);
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 48 * 1024);
  CHECK(attribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 47 * 1024);
  const auto dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  OK(cuFuncSetAttribute, shared, dynamic, 226 * 1024);
  CHECK(attribute(shared, dynamic) == 226 * 1024);
  CHECK(API(cuFuncSetAttribute)(shared, dynamic, 226 * 1024 + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuFuncSetAttribute)(shared, dynamic, -1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuFuncSetAttribute)(fill, CU_FUNC_ATTRIBUTE_NUM_REGS, 8) == CUDA_ERROR_INVALID_VALUE);
  OK(cuFuncSetAttribute, fill, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
  CHECK(attribute(fill, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == 50);
  CHECK(API(cuFuncSetAttribute)(fill, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101) ==
        CUDA_ERROR_INVALID_VALUE);
  int value = 0;
  CHECK(API(cuFuncGetAttribute)(&value, CUfunction_attribute(99), fill) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(API(cuFuncGetAttribute)(&value, dynamic, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuFuncSetCacheConfig, fill, CU_FUNC_CACHE_PREFER_SHARED);
  CHECK(API(cuFuncSetCacheConfig)(fill, CUfunc_cache(7)) == CUDA_ERROR_INVALID_VALUE);
  size_t offset = 0, bytes = 0;
  OK(cuFuncGetParamInfo, fill, 1, &offset, &bytes);
  CHECK(offset == 8);
  CHECK(bytes == 4);
  OK(cuFuncGetParamInfo, fill, 2, &offset, nullptr);
  CHECK(offset == 12);
  CHECK(API(cuFuncGetParamInfo)(fill, 3, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: a library is loaded where it is used", "[driver]") {
  Started started;
  CUlibrary library = nullptr;
  OK(cuLibraryLoadData, &library, kernels().c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  CHECK(API(cuLibraryLoadData)(&library,
                               "\x7f"
                               "ELF",
                               nullptr, nullptr, 0, nullptr, nullptr,
                               0) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CUkernel fill = nullptr;
  OK(cuLibraryGetKernel, &fill, library, "fill");
  CHECK(API(cuLibraryGetKernel)(&fill, library, "none") == CUDA_ERROR_NOT_FOUND);
  unsigned count = 0;
  OK(cuLibraryGetKernelCount, &count, library);
  CHECK(count == 8);
  const char* name = nullptr;
  OK(cuKernelGetName, &name, fill);
  CHECK(std::string(name) == "fill");
  Numbers numbers(3);
  // A kernel is launched as it is, in the context of the stream.
  CHECK(launch(reinterpret_cast<CUfunction>(fill), 1, 3, nullptr, numbers.address(), 4u, 3u) ==
        CUDA_SUCCESS);
  CHECK(numbers.read() == std::vector<unsigned>{4, 5, 6});
  CUfunction function = nullptr;
  OK(cuKernelGetFunction, &function, fill);
  CHECK(launch(function, 1, 3, nullptr, numbers.address(), 7u, 3u) == CUDA_SUCCESS);
  CHECK(numbers.read() == std::vector<unsigned>{7, 8, 9});
  CUmodule module = nullptr;
  OK(cuLibraryGetModule, &module, library);
  CHECK(API(cuModuleUnload)(module) == CUDA_ERROR_NOT_PERMITTED);
  CUdeviceptr first = 0, second = 0;
  size_t bytes = 0;
  OK(cuLibraryGetGlobal, &first, &bytes, library, "counter");
  int value = 0;
  OK(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, fill, 0);
  OK(cuKernelGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, fill, 0);
  CHECK(value == 100000);
  CUcontext other = nullptr;
  OK(cuCtxCreate, &other, nullptr, 0, 0);
  OK(cuLibraryGetGlobal, &second, &bytes, library, "counter");
  CHECK(first != second);  // every context has its own
  CHECK(launch(function, 1, 3, nullptr, numbers.address(), 7u, 3u) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(alive()[1] == 1);
  OK(cuCtxDestroy, other);
  OK(cuLibraryUnload, library);
  CHECK(API(cuLibraryUnload)(library) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(API(cuKernelGetFunction)(&function, fill) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(alive()[1] == 0);
}
