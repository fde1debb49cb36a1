#include "tests/emulator/harness.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "tests/cuda_emulator/emulator.h"

namespace emulator_test {
namespace {

void* library() {
  static void* const opened = [] {
    void* const found = dlopen(KRAIT_EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!found) throw std::runtime_error(dlerror());
    return found;
  }();
  return opened;
}

// Counts devices, so that a buffer knows whether its own is still there.
uint64_t& generation() {
  static uint64_t count = 0;
  return count;
}

std::string name_of(CUresult code) {
  const char* name = nullptr;
  if (entry_point("cuGetErrorName")) {
    call<decltype(&cuGetErrorName)>("cuGetErrorName")(code, &name);
  }
  return name ? name : "code " + std::to_string(int(code));
}

std::string last_report() {
  return call<decltype(&cuda_emulator_report)>("cuda_emulator_report")();
}

unsigned at(const std::vector<unsigned>& sizes, size_t dimension) {
  return dimension < sizes.size() ? sizes[dimension] : 1;
}

}  // namespace

void* entry_point(const char* name) { return dlsym(library(), name); }

void require_success(CUresult code, const char* call) {
  if (code == CUDA_SUCCESS) {
    SUCCEED();
    return;
  }
  FAIL(call << ": " << name_of(code) << "\n" << last_report());
}

Buffer::Buffer(uint64_t bytes) : bytes_(bytes), generation_(generation()) {
  if (bytes == 0) return;
  require_success(call<CUresult (*)(CUdeviceptr*, size_t)>("cuMemAlloc_v2")(&address_, bytes),
                  "cuMemAlloc");
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  generation_ = other.generation_;
  return *this;
}

Buffer::~Buffer() { release(); }

// After a fault the context refuses; there is nothing to tell then.
void Buffer::release() noexcept {
  if (!address_ || generation_ != generation()) return;
  call<CUresult (*)(CUdeviceptr)>("cuMemFree_v2")(address_);
}

void Buffer::write(const void* from, uint64_t bytes, uint64_t offset) {
  if (bytes == 0) return;
  require_success(call<CUresult (*)(CUdeviceptr, const void*, size_t)>("cuMemcpyHtoD_v2")(
                      address_ + offset, from, bytes),
                  "cuMemcpyHtoD");
}

void Buffer::copy_out(void* to) const {
  if (bytes_ == 0) return;
  require_success(
      call<CUresult (*)(void*, CUdeviceptr, size_t)>("cuMemcpyDtoH_v2")(to, address_, bytes_),
      "cuMemcpyDtoH");
}

Device::Device(int major, int minor) : major_(major), minor_(minor) { start(); }

void Device::start() {
  ++generation();
  modules_.clear();
  call<decltype(&cuda_emulator_reset)>("cuda_emulator_reset")();
  if (call<decltype(&cuda_emulator_architecture)>("cuda_emulator_architecture")(major_, minor_)) {
    FAIL("no such architecture: " << major_ << "." << minor_);
  }
  if (seed_) seed(seed_);
  require_success(call<CUresult (*)(unsigned)>("cuInit")(0), "cuInit");
  CUdevice device = 0;
  require_success(call<CUresult (*)(CUdevice*, int)>("cuDeviceGet")(&device, 0), "cuDeviceGet");
  CUcontext context = nullptr;
  require_success(
      call<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&context, device),
      "cuDevicePrimaryCtxRetain");
  require_success(call<CUresult (*)(CUcontext)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
}

Device::~Device() {
  const bool lost = call<CUresult (*)()>("cuCtxSynchronize")() != CUDA_SUCCESS;
  if (!lost) {
    unload();
    uint64_t alive[7] = {};
    call<decltype(&cuda_emulator_alive)>("cuda_emulator_alive")(alive);
    static const char* const names[] = {"allocations", "modules", "streams",
                                        "events",      "graphs",  "executable graphs"};
    for (int kind = 0; kind < 6; ++kind) {
      INFO(names[kind] << " alive at the end of a device");
      CHECK(alive[kind] == 0);
    }
  }
  ++generation();
  call<decltype(&cuda_emulator_reset)>("cuda_emulator_reset")();
}

CUresult Device::launch_with(CUfunction function, const std::vector<unsigned>& grid,
                             const std::vector<unsigned>& block, unsigned shared,
                             void** arguments) {
  const auto launch_kernel = call<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  const CUresult code =
      launch_kernel(function, at(grid, 0), at(grid, 1), at(grid, 2), at(block, 0), at(block, 1),
                    at(block, 2), shared, nullptr, arguments, nullptr);
  return code != CUDA_SUCCESS ? code : call<CUresult (*)()>("cuCtxSynchronize")();
}

CUfunction Device::load(const std::string& ptx, const std::string& kernel) {
  CUmodule module = nullptr;
  char log[1000] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const CUresult code = call<decltype(&cuModuleLoadDataEx)>("cuModuleLoadDataEx")(
      &module, ptx.c_str(), 2, options, values);
  INFO(log);
  require_success(code, "cuModuleLoadDataEx");
  modules_.push_back(module);
  CUfunction function = nullptr;
  require_success(call<CUresult (*)(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction")(
                      &function, module, kernel.c_str()),
                  ("cuModuleGetFunction of " + kernel).c_str());
  return function;
}

void Device::unload() {
  for (CUmodule module : modules_) call<CUresult (*)(CUmodule)>("cuModuleUnload")(module);
  modules_.clear();
}

void Device::allow_shared(CUfunction function, unsigned bytes) {
  require_success(call<CUresult (*)(CUfunction, CUfunction_attribute, int)>("cuFuncSetAttribute")(
                      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(bytes)),
                  "cuFuncSetAttribute");
}

void Device::revive() { start(); }

std::string Device::report() const { return last_report(); }

nlohmann::json Device::statistics() const {
  return nlohmann::json::parse(
      call<decltype(&cuda_emulator_statistics)>("cuda_emulator_statistics")());
}

void Device::seed(uint64_t value) {
  seed_ = value;
  call<decltype(&cuda_emulator_seed)>("cuda_emulator_seed")(value);
}

std::string source_file(const std::string& path) {
  std::ifstream in(std::string(KRAIT_SOURCE_DIRECTORY) + "/" + path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw std::runtime_error("cannot read " + path);
  return text.str();
}

}  // namespace emulator_test
