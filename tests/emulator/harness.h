#pragma once

// The emulated driver as a test uses it: opened with dlopen as a program opens libcuda.so.1, called
// through the CUDA driver API alone; and NVRTC. Failures of calls that a test does not look at are
// Catch2 failures with the emulator's report.

#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace emulator_test {

// The entry point of that name, or null.
void* entry_point(const char* name);
// As a function: call<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(...). Throws std::runtime_error where
// there is none.
template <class F>
F call(const char* name);

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
  CUdeviceptr address_ = 0;
  uint64_t bytes_ = 0;
};

// One emulated device of an architecture with a current context; what it was before is forgotten.
class Device {
 public:
  explicit Device(int major = 9, int minor = 0);
  ~Device();  // fails the test where something of it is still alive

  // Code of the launch and its synchronisation. Arguments are passed as they are: CUdeviceptr,
  // float..
  template <class... Args>
  CUresult launch(CUfunction function, std::vector<unsigned> grid, std::vector<unsigned> block,
                  unsigned shared, Args... args);
  // The same, and requires success.
  template <class... Args>
  void run(CUfunction function, std::vector<unsigned> grid, std::vector<unsigned> block,
           unsigned shared, Args... args);
  // A module stays loaded until the device goes. Requires success.
  CUfunction load(const std::string& ptx, const std::string& kernel);
  // After a fault the context is lost: makes a new one (buffers and functions are gone).
  void revive();
  std::string report() const;
  nlohmann::json statistics() const;
  void seed(uint64_t value);
};

// PTX of a CUDA source by NVRTC, for "sm_90a" and the like; throws with its log where it fails.
// Options are added to --std=c++17 -arch.
std::string compile(const std::string& source, const std::string& architecture,
                    const std::vector<std::string>& options = {});

// Values of an instruction on `count` threads: body is PTX that reads %a0, %a1 ... (one a column)
// and writes %d0, %d1 ...; types are PTX names of registers (b32, f64, b16, pred is read as b32 0
// or 1).
struct Column {
  std::string type;
  std::vector<uint64_t> values;  // bits, as many in every column
};
std::vector<std::vector<uint64_t>> evaluate(Device& device, const std::string& body,
                                            const std::vector<std::string>& result_types,
                                            const std::vector<Column>& columns,
                                            const std::string& target = "sm_90a");

}  // namespace emulator_test
