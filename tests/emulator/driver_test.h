#pragma once

// What the tests of the driver's entry points share.

#include <array>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "tests/cuda_emulator/emulator.h"
#include "tests/emulator/harness.h"

// The entry point that cuda.h maps the name to, with its type: API(cuMemAlloc)(&address, 4).
#define DRIVER_TEST_TEXT(name) #name
#define DRIVER_TEST_NAME(name) DRIVER_TEST_TEXT(name)
#define API(name) (emulator_test::call<decltype(&name)>(DRIVER_TEST_NAME(name)))
// The same, and it must succeed.
#define OK(name, ...) emulator_test::require_success(API(name)(__VA_ARGS__), #name)

namespace emulator_test {

// An emulator as before cuInit, and again so afterwards, whatever a test has set.
class Fresh {
 public:
  Fresh() { forget(); }
  ~Fresh() { forget(); }
  Fresh(const Fresh&) = delete;

  static void forget() {
    API(cuda_emulator_reset)();
    API(cuda_emulator_memory)(0);
    API(cuda_emulator_architecture)(9, 0);
    API(cuda_emulator_seed)(0);
  }
};

// With a context of its own that is current.
class Started : public Fresh {
 public:
  Started() {
    OK(cuInit, 0);
    OK(cuCtxCreate, &context, nullptr, 0, 0);
  }
  CUcontext context = nullptr;
};

inline std::array<uint64_t, 7> alive() {
  std::array<uint64_t, 7> counts{};
  API(cuda_emulator_alive)(counts.data());
  return counts;
}

// PTX of kernels, for every part.
//   fill(address, value, count): *[address + 4 i] = value + i
//   scale(from, to, count): to[i] = 2 from[i] + 1
//   append(address, digit): *address = 10 *address + digit, by one thread
//   wild(address): writes 4 bytes there
//   stop(): trap
inline const std::string& kernels() {
  static const std::string text = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .const .align 4 .u32 table[4] = {1, 2, 3, 4};
.visible .entry fill(.param .u64 p_address, .param .u32 p_value, .param .u32 p_count) {
  .reg .b32 %i, %n, %v, %b, %t; .reg .b64 %a, %o; .reg .pred %out;
  ld.param.u64 %a, [p_address]; ld.param.u32 %v, [p_value]; ld.param.u32 %n, [p_count];
  mov.u32 %b, %ctaid.x; mov.u32 %t, %ntid.x; mov.u32 %i, %tid.x; mad.lo.s32 %i, %b, %t, %i;
  setp.ge.u32 %out, %i, %n; @%out ret;
  mul.wide.u32 %o, %i, 4; add.s64 %a, %a, %o; add.s32 %v, %v, %i; st.global.u32 [%a], %v; ret;
}
.visible .entry scale(.param .u64 p_from, .param .u64 p_to, .param .u32 p_count) {
  .reg .b32 %i, %n, %v, %b, %t; .reg .b64 %f, %o, %a; .reg .pred %out;
  ld.param.u64 %f, [p_from]; ld.param.u64 %a, [p_to]; ld.param.u32 %n, [p_count];
  mov.u32 %b, %ctaid.x; mov.u32 %t, %ntid.x; mov.u32 %i, %tid.x; mad.lo.s32 %i, %b, %t, %i;
  setp.ge.u32 %out, %i, %n; @%out ret;
  mul.wide.u32 %o, %i, 4; add.s64 %f, %f, %o; add.s64 %a, %a, %o;
  ld.global.u32 %v, [%f]; mad.lo.s32 %v, %v, 2, 1; st.global.u32 [%a], %v; ret;
}
.visible .entry append(.param .u64 p_address, .param .u32 p_digit) {
  .reg .b32 %v, %d; .reg .b64 %a;
  ld.param.u64 %a, [p_address]; ld.param.u32 %d, [p_digit];
  ld.global.u32 %v, [%a]; mad.lo.s32 %v, %v, 10, %d; st.global.u32 [%a], %v; ret;
}
.visible .entry wild(.param .u64 p_address) {
  .reg .b32 %v; .reg .b64 %a;
  ld.param.u64 %a, [p_address]; mov.u32 %v, 1; st.global.u32 [%a], %v; ret;
}
.visible .entry stop() { trap; }
.visible .entry bounded() .maxntid 64, 1, 1 { ret; }
.visible .entry exact() .reqntid 32, 2, 1 { ret; }
.visible .entry shared(.param .u64 p_address) {
  .shared .align 4 .b8 block[1024];
  .reg .b32 %v; .reg .b64 %a;
  ld.param.u64 %a, [p_address]; mov.u32 %v, 5; st.shared.u32 [block], %v;
  ld.shared.u32 %v, [block]; st.global.u32 [%a], %v; ret;
}
)";
  return text;
}

class Kernels {
 public:
  explicit Kernels(const std::string& text = kernels()) {
    OK(cuModuleLoadData, &module, text.c_str());
  }
  CUfunction operator[](const char* name) const {
    CUfunction function = nullptr;
    OK(cuModuleGetFunction, &function, module, name);
    return function;
  }
  CUmodule module = nullptr;
};

// Kernel arguments as pointers to copies of the values.
template <class... Args>
class Arguments {
 public:
  explicit Arguments(Args... args) : values_(args...) {
    size_t i = 0;
    std::apply([&](auto&... value) { ((pointers_[i++] = &value), ...); }, values_);
  }
  operator void**() { return pointers_; }

 private:
  std::tuple<Args...> values_;
  void* pointers_[sizeof...(Args) + 1] = {};
};

template <class... Args>
CUresult launch(CUfunction function, unsigned grid, unsigned block, CUstream stream, Args... args) {
  Arguments<Args...> arguments(args...);
  return API(cuLaunchKernel)(function, grid, 1, 1, block, 1, 1, 0, stream, arguments, nullptr);
}

// A host function that holds its stream, and with it all that comes behind, until it is opened.
class Gate {
 public:
  explicit Gate(CUstream stream) { OK(cuLaunchHostFunc, stream, &Gate::wait, this); }
  ~Gate() { open(); }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  static void wait(void* gate) {
    Gate& self = *static_cast<Gate*>(gate);
    std::unique_lock lock(self.mutex_);
    self.changed_.wait(lock, [&] { return self.open_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// 32-bit numbers of the device, set before streams that do not block can come to them.
class Numbers {
 public:
  explicit Numbers(size_t count, unsigned value = 0) : count_(count) {
    OK(cuMemAlloc, &address_, count * 4);
    OK(cuMemsetD32, address_, value, count);
    OK(cuStreamSynchronize, nullptr);
  }
  ~Numbers() { API(cuMemFree)(address_); }
  Numbers(const Numbers&) = delete;
  CUdeviceptr address() const { return address_; }
  std::vector<unsigned> read() const {
    std::vector<unsigned> values(count_);
    OK(cuMemcpyDtoH, values.data(), address_, count_ * 4);
    return values;
  }

 private:
  CUdeviceptr address_ = 0;
  size_t count_ = 0;
};

}  // namespace emulator_test
