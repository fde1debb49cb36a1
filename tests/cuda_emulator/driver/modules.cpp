// Modules.

#include "tests/cuda_emulator/driver/modules.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/cuda_emulator/ptx/error.h"

using namespace emulator::driver;

namespace emulator::driver {
namespace {

constexpr uint32_t kFatbinWrapper = 0x466243b1, kFatbin = 0xba55ed50;
constexpr int kNewestPtx = 9;

// The number after .version, 0 where there is none.
int major_version(const std::string& text) {
  const size_t at = text.find(".version");
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + 8);
}

}  // namespace

std::string text_of_image(const void* image) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  // One byte after the other: the text may be shorter than a magic number.
  if (bytes[0] == 0x7f && bytes[1] == 'E' && bytes[2] == 'L' && bytes[3] == 'F')
    fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
  for (const uint32_t magic : {kFatbinWrapper, kFatbin}) {
    unsigned i = 0;
    while (i < 4 && bytes[i] == (magic >> (8 * i) & 0xff)) ++i;
    if (i == 4) fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
  }
  std::string text(static_cast<const char*>(image));
  const int version = major_version(text);
  require(version > 0, CUDA_ERROR_INVALID_IMAGE);
  require(version <= kNewestPtx, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  return text;
}

JitLog::JitLog(unsigned count, const CUjit_option* options, void** values)
    : count_(count), options_(options), values_(values) {
  require(count == 0 || (options && values));
  for (unsigned i = 0; i < count; ++i) require(options[i] >= 0 && options[i] < CU_JIT_NUM_OPTIONS);
  write(CU_JIT_ERROR_LOG_BUFFER, "");
  write(CU_JIT_INFO_LOG_BUFFER, "");
}

void JitLog::write(CUjit_option which, const std::string& message) const {
  const auto size_option = static_cast<CUjit_option>(which + 1);  // ..._SIZE_BYTES follows
  char* buffer = nullptr;
  void** size = nullptr;
  for (unsigned i = 0; i < count_; ++i) {
    if (options_[i] == which) buffer = static_cast<char*>(values_[i]);
    if (options_[i] == size_option) size = &values_[i];
  }
  if (!buffer || !size) return;
  static_assert(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES == CU_JIT_INFO_LOG_BUFFER + 1 &&
                CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES == CU_JIT_ERROR_LOG_BUFFER + 1);
  // The size is that of the buffer, then what was written. The driver keeps the low 32 bits.
  auto& capacity = capacity_[which == CU_JIT_INFO_LOG_BUFFER];
  if (!capacity) capacity = reinterpret_cast<uintptr_t>(*size) & 0xffffffff;
  if (!capacity) return;
  const size_t kept = std::min<size_t>(capacity - 1, message.size());
  std::memcpy(buffer, message.data(), kept);
  buffer[kept] = 0;
  *size = reinterpret_cast<void*>(kept);
}

namespace {

// What the assembler refuses, as it depends on the part: "" where it takes it.
std::string refusal(const Module& module, const Limits& limits) {
  for (const std::string& name : module.entries()) {
    const unsigned shared = module.entry(name)->static_shared;
    if (shared > limits.shared_per_block)
      return "kernel " + name + " declares " + std::to_string(shared) +
             " bytes of shared memory, more than " + std::to_string(limits.shared_per_block);
  }
  return "";
}

}  // namespace

std::shared_ptr<LoadedModule> load(Call& call, const std::shared_ptr<Context>& context,
                                   const std::string& text, const JitLog* log) {
  Driver& driver = call.driver;
  auto loaded = std::make_shared<LoadedModule>();
  loaded->context = context;
  require(!driver.allocation_fails(), CUDA_ERROR_OUT_OF_MEMORY);
  try {
    loaded->module = std::make_shared<Module>(text, driver.limits, *driver.memory);
  } catch (const ptx::Error& error) {
    if (log) log->error(error.what());
    fail(CUDA_ERROR_INVALID_PTX);
  } catch (const NoImage& error) {
    if (log) log->error(error.what());
    fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
  }
  if (const std::string why = refusal(*loaded->module, driver.limits); !why.empty()) {
    if (log) log->error(why);
    fail(CUDA_ERROR_INVALID_PTX);
  }
  driver.modules.add(loaded);
  return loaded;
}

std::shared_ptr<Function> function_of(Call& call, const std::shared_ptr<LoadedModule>& module,
                                      const std::string& name) {
  if (const auto it = module->functions.find(name); it != module->functions.end())
    return it->second;
  const FunctionInfo* info = module->module->entry(name);
  if (!info) return nullptr;
  auto function = std::make_shared<Function>();
  function->module = module;
  function->info = info;
  function->name = name;
  const int shared = static_cast<int>(call.driver.limits.shared_per_block);
  function->dynamic_shared = std::max(0, shared - static_cast<int>(info->static_shared));
  call.driver.functions.add(function);
  return module->functions[name] = function;
}

void unload(Call& call, const std::shared_ptr<LoadedModule>& module) {
  Driver& driver = call.driver;
  driver.worker.drain(call.lock, module->context.get());
  for (const auto& [name, function] : module->functions) driver.functions.remove(function->handle);
  driver.modules.remove(module->handle);
  std::lock_guard device(driver.device_mutex);
  module->module.reset();
}

void global_of(const LoadedModule& module, const char* name, CUdeviceptr* address, size_t* bytes) {
  uint64_t found_address = 0, found_bytes = 0;
  require(module.module->variable(name, &found_address, &found_bytes), CUDA_ERROR_NOT_FOUND);
  if (address) *address = found_address;
  if (bytes) *bytes = found_bytes;
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace emulator::driver

namespace {

// `image` is called under the lock, for its text.
template <class Image>
CUresult load_module(const char* name, CUmodule* module, unsigned options, CUjit_option* option,
                     void** values, Image&& image) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<Context> context = call.sound_context();
    require(module);
    const JitLog log(options, option, values);
    call.unsafe_in_capture();
    *module = load(call, context, image(), &log)->handle;
  });
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  return load_module("cuModuleLoad", module, 0, nullptr, nullptr, [&] {
    require(fname);
    const std::string bytes = read_file(fname);
    return text_of_image(bytes.c_str());
  });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load_module("cuModuleLoadData", module, 0, nullptr, nullptr, [&] {
    require(image);
    return text_of_image(image);
  });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  return load_module("cuModuleLoadDataEx", module, numOptions, options, optionValues, [&] {
    require(image);
    return text_of_image(image);
  });
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return load_module("cuModuleLoadFatBinary", module, 0, nullptr, nullptr, [&]() -> std::string {
    require(fatCubin);
    fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
  });
}

CUresult cuModuleUnload(CUmodule hmod) {
  return entry("cuModuleUnload", [&](Call& call) {
    const std::shared_ptr<Context> context = call.context();
    const std::shared_ptr<LoadedModule> module = call.driver.modules.at(hmod);
    require(!module->of_library, CUDA_ERROR_NOT_PERMITTED);
    call.unsafe_in_capture();
    unload(call, module);
    require(context->error == CUDA_SUCCESS, context->error);
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return entry("cuModuleGetLoadingMode", [&](Call&) {
    require(mode);
    *mode = CU_MODULE_EAGER_LOADING;
  });
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  return entry("cuModuleGetFunction", [&](Call& call) {
    call.sound_context();
    require(hfunc && name);
    const std::shared_ptr<Function> function =
        function_of(call, call.driver.modules.at(hmod), name);
    require(function != nullptr, CUDA_ERROR_NOT_FOUND);
    *hfunc = function->handle;
  });
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  return entry("cuModuleGetFunctionCount", [&](Call& call) {
    require(count);
    *count = static_cast<unsigned>(call.driver.modules.at(mod)->module->entries().size());
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions,
                                    CUmodule mod) {
  return entry("cuModuleEnumerateFunctions", [&](Call& call) {
    require(functions);
    const std::shared_ptr<LoadedModule> module = call.driver.modules.at(mod);
    const std::vector<std::string> names = module->module->entries();
    for (size_t i = 0; i < names.size() && i < numFunctions; ++i)
      functions[i] = function_of(call, module, names[i])->handle;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  return entry("cuModuleGetGlobal", [&](Call& call) {
    call.sound_context();
    require(name && (dptr || bytes));
    global_of(*call.driver.modules.at(hmod), name, dptr, bytes);
  });
}
