// The emulated driver under krait, and beside it as another part of the program would use it.
#pragma once

#include <cuda.h>

#include <array>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "runtime/krait.h"
#include "tests/gpu/emulated.h"

namespace krait::testing {

/// A function of the emulated driver, by the name in the library:
/// driver<decltype(&cuMemAlloc)>("cuMemAlloc_v2").
template <class F>
F driver(const char* name) {
  return emulator_function<F>(name);
}

/// Of the device: allocations, modules, streams, events, graphs, executable graphs, contexts.
using Alive = std::array<std::uint64_t, 7>;
inline Alive alive() {
  Alive counts{};
  EMULATOR(cuda_emulator_alive)(counts.data());
  return counts;
}

/// An emulated GPU as it was when it was built, cuInit done; at its end nothing that was made on it
/// may be left.
class EmulatedGpu {
 public:
  explicit EmulatedGpu(int major = 9, int minor = 0) {
    ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
    EMULATOR(cuda_emulator_reset)();
    EMULATOR(cuda_emulator_architecture)(major, minor);
    begin();
  }
  ~EmulatedGpu() {
    CHECK(alive() == Alive{});
    EMULATOR(cuda_emulator_reset)();
    EMULATOR(cuda_emulator_architecture)(0, 0);
    begin();  // for those who come after it
  }
  EmulatedGpu(const EmulatedGpu&) = delete;

  static void fail_call(const char* name, std::uint64_t n, CUresult result, bool sticky = false) {
    EMULATOR(cuda_emulator_fail_call)(name, n, result, sticky);
  }
  static void fail_allocation(std::uint64_t n) { EMULATOR(cuda_emulator_fail_allocation)(n); }

 private:
  static void begin() {
    if (driver<decltype(&cuInit)>("cuInit")(0) != CUDA_SUCCESS) throw std::runtime_error("cuInit");
  }
};

inline void check(CUresult result) { REQUIRE(result == CUDA_SUCCESS); }

/// What a framework has of its own on the device: the primary context, a stream, memory.
class Framework {
 public:
  Framework() {
    check(driver<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context_, 0));
    check(driver<decltype(&cuCtxPushCurrent)>("cuCtxPushCurrent_v2")(context_));
    check(driver<decltype(&cuStreamCreate)>("cuStreamCreate")(&stream_, CU_STREAM_NON_BLOCKING));
  }
  ~Framework() {
    for (const CUdeviceptr memory : memory_) driver<decltype(&cuMemFree)>("cuMemFree_v2")(memory);
    driver<decltype(&cuStreamDestroy)>("cuStreamDestroy_v2")(stream_);
    CUcontext popped = nullptr;
    driver<decltype(&cuCtxPopCurrent)>("cuCtxPopCurrent_v2")(&popped);
    driver<decltype(&cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease_v2")(0);
  }
  Framework(const Framework&) = delete;

  CUcontext context() const { return context_; }
  Stream stream() const { return Stream::of(stream_); }

  /// Memory of f32 with these elements.
  void* put(const std::vector<float>& values) {
    CUdeviceptr made = 0;
    check(driver<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&made, 4 * values.size()));
    memory_.push_back(made);
    check(
        driver<decltype(&cuMemcpyHtoD)>("cuMemcpyHtoD_v2")(made, values.data(), 4 * values.size()));
    return reinterpret_cast<void*>(made);
  }
  /// After everything that the stream was given.
  std::vector<float> get(const void* memory, std::size_t count) {
    std::vector<float> values(count);
    check(driver<decltype(&cuMemcpyDtoHAsync)>("cuMemcpyDtoHAsync_v2")(
        values.data(), reinterpret_cast<CUdeviceptr>(memory), 4 * count, stream_));
    synchronize();
    return values;
  }
  void synchronize() {
    check(driver<decltype(&cuStreamSynchronize)>("cuStreamSynchronize")(stream_));
  }

 private:
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

/// Holds back the work that a stream is given, until it is opened.
class Gate {
 public:
  explicit Gate(Stream stream) {
    check(driver<decltype(&cuLaunchHostFunc)>("cuLaunchHostFunc")(
        static_cast<CUstream>(stream.handle()), wait, this));
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;

 private:
  static void wait(void* gate) {
    Gate& self = *static_cast<Gate*>(gate);
    std::unique_lock lock(self.mutex_);
    self.opened_.wait(lock, [&] { return self.open_; });
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace krait::testing
