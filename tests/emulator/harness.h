#pragma once

// The emulated driver as a test uses it: opened with dlopen as a program opens libcuda.so.1, called
// through the CUDA driver API alone; and NVRTC. Failures of calls that a test does not look at are
// Catch2 failures with the emulator's report.

#include <cuda.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace emulator_test {

// The entry point of that name, or null.
void* entry_point(const char* name);
// As a function: call<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(...). Throws std::runtime_error where
// there is none.
template <class F>
F call(const char* name);

// Fails the test, with the call's name, the code's name and the emulator's report, unless the code
// is CUDA_SUCCESS.
void require_success(CUresult code, const char* call);

// Bytes of device memory, freed at the end of its life.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(uint64_t bytes);  // undefined content
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  template <class T>
  static Buffer of(const std::vector<T>& values);
  template <class T>
  std::vector<T> read() const;
  void write(const void* from, uint64_t bytes, uint64_t offset = 0);
  CUdeviceptr address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void copy_out(void* to) const;
  void release() noexcept;

  CUdeviceptr address_ = 0;
  uint64_t bytes_ = 0;
  uint64_t generation_ = 0;  // of the device it belongs to: a lost one's addresses mean nothing
};

// One emulated device of an architecture with a current context; what it was before is forgotten.
class Device {
 public:
  explicit Device(int major = 9, int minor = 0);
  ~Device();  // fails the test where something of it is still alive, unless a fault lost it
  Device(const Device&) = delete;

  // Code of the launch and its synchronisation. Arguments are passed as they are: CUdeviceptr,
  // float..
  template <class... Args>
  CUresult launch(CUfunction function, std::vector<unsigned> grid, std::vector<unsigned> block,
                  unsigned shared, Args... args);
  // The same, and requires success.
  template <class... Args>
  void run(CUfunction function, std::vector<unsigned> grid, std::vector<unsigned> block,
           unsigned shared, Args... args);
  // The same as launch, with the addresses of the arguments.
  CUresult launch_with(CUfunction function, const std::vector<unsigned>& grid,
                       const std::vector<unsigned>& block, unsigned shared, void** arguments);
  // A module stays loaded until the device goes, or until unload(). Requires success.
  CUfunction load(const std::string& ptx, const std::string& kernel);
  // The module of the last load, for cuModuleGetGlobal and the like.
  CUmodule module() const { return modules_.empty() ? nullptr : modules_.back(); }
  // All modules.
  void unload();
  // Opts in for that much dynamic shared memory. Requires success.
  void allow_shared(CUfunction function, unsigned bytes);
  // After a fault the context is lost: makes a new one (buffers and functions are gone).
  void revive();
  std::string report() const;
  nlohmann::json statistics() const;
  void seed(uint64_t value);

 private:
  void start();

  int major_, minor_;
  uint64_t seed_ = 0;
  std::vector<CUmodule> modules_;
};

struct Header {
  std::string name, text;
};

// Whether there is an NVRTC here; tests of kernels in CUDA C++ end early without one.
bool has_nvrtc();

// PTX of a CUDA source by NVRTC, for "sm_90a" and the like; throws with its log where it fails.
// Options are added to --std=c++17 -arch. Headers are found by their names before any file. The
// same request again is answered from memory.
std::string compile(const std::string& source, const std::string& architecture,
                    const std::vector<std::string>& options = {},
                    const std::vector<Header>& headers = {});

// Content of a file of the source tree, by its path from there.
std::string source_file(const std::string& path);

// Values of an instruction on `count` threads: body is PTX that reads %a0, %a1 ... (one a column)
// and writes %d0, %d1 ...; types are PTX names of registers (b32, f64, b16, pred is read as b32 0
// or 1). Up to 1024 threads are one block, threads and values in order.
struct Column {
  std::string type;
  std::vector<uint64_t> values;  // bits, as many in every column
};
std::vector<std::vector<uint64_t>> evaluate(Device& device, const std::string& body,
                                            const std::vector<std::string>& result_types,
                                            const std::vector<Column>& columns,
                                            const std::string& target = "sm_90a");

template <class F>
F call(const char* name) {
  void* const found = entry_point(name);
  if (!found) throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<F>(found);
}

template <class T>
Buffer Buffer::of(const std::vector<T>& values) {
  Buffer buffer(values.size() * sizeof(T));
  buffer.write(values.data(), buffer.bytes());
  return buffer;
}

template <class T>
std::vector<T> Buffer::read() const {
  std::vector<T> values(bytes_ / sizeof(T));
  if (values.size() * sizeof(T) != bytes_) throw std::runtime_error("a size that is no multiple");
  copy_out(values.data());
  return values;
}

template <class... Args>
CUresult Device::launch(CUfunction function, std::vector<unsigned> grid,
                        std::vector<unsigned> block, unsigned shared, Args... args) {
  static_assert((std::is_trivially_copyable_v<Args> && ...));
  std::array<void*, sizeof...(Args) + 1> arguments{static_cast<void*>(&args)..., nullptr};
  return launch_with(function, grid, block, shared, arguments.data());
}

template <class... Args>
void Device::run(CUfunction function, std::vector<unsigned> grid, std::vector<unsigned> block,
                 unsigned shared, Args... args) {
  require_success(launch(function, grid, block, shared, args...), "launch");
}

}  // namespace emulator_test
