#pragma once

// The emulated device: its limits, its memory, its modules. What the driver's entry points call.
// Nothing here is a CUDA type; errors are exceptions.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_emulator/machine/counters.h"
#include "tests/cuda_emulator/machine/report.h"

namespace emulator {

// Limits of a part, by compute capability; from the table "Technical Specifications per Compute
// Capability" of the CUDA C++ Programming Guide.
struct Limits {
  int major = 9, minor = 0;
  std::string name;
  unsigned multiprocessors = 0;
  unsigned threads_per_block = 1024, threads_per_multiprocessor = 2048,
           blocks_per_multiprocessor = 32;
  unsigned registers_per_block = 65536, registers_per_multiprocessor = 65536;
  unsigned shared_per_block = 49152;  // without opting in
  unsigned shared_per_block_opt_in = 0;
  unsigned shared_per_multiprocessor = 0;
  unsigned shared_reserved = 1024;  // by the system, a block
  uint64_t memory = 0;              // bytes of the device
  unsigned constant = 65536;
};
// For 7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 12.0, 12.1; throws std::invalid_argument that names
// what is allowed.
Limits limits_of(int major, int minor);

// Device memory: allocations at addresses far apart, never used again after free.
class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t capacity);
  ~DeviceMemory();

  // 0 where the capacity is used up. Aligned to 256 bytes at least; bytes >= 1. A name is that of a
  // module's variable, for reports.
  uint64_t allocate(uint64_t bytes, uint64_t alignment = 256, const std::string& name = {});
  // False unless address is the start of a live allocation.
  bool release(uint64_t address);
  // Host memory that kernels may use at its own address.
  uint64_t adopt(void* host, uint64_t bytes);

  // Where [address, address + bytes) lies within one live allocation. Bytes copied from outside are
  // defined; a copy between device addresses copies what is undefined too. False: nothing was done.
  bool contains(uint64_t address, uint64_t bytes) const;
  bool write(uint64_t address, const void* from, uint64_t bytes);
  bool read(void* to, uint64_t address, uint64_t bytes) const;
  bool copy(uint64_t to, uint64_t from, uint64_t bytes);
  bool fill(uint64_t address, const void* pattern, unsigned width, uint64_t count);
  // Start and size of the live allocation that holds the address.
  bool range(uint64_t address, uint64_t* start, uint64_t* bytes) const;

  uint64_t capacity() const;
  uint64_t used() const;
  size_t allocations() const;  // live ones, adopted too, those with a name aside

  struct Impl;
  std::unique_ptr<Impl> impl;
};

class Program;  // decoded functions of a module

struct FunctionInfo {
  std::string name;
  unsigned static_shared = 0;  // bytes
  unsigned constant = 0, local = 0;
  unsigned registers = 0;       // an estimate from liveness, capped by .maxntid as ptxas would
  unsigned max_threads = 1024;  // by .maxntid/.reqntid and registers
  unsigned required_threads[3] = {0, 0, 0};
  struct Parameter {
    unsigned offset, bytes;
  };
  std::vector<Parameter> parameters;
  unsigned parameter_bytes = 0;
  int ptx_version = 90, target = 90;  // 10 * major + minor; sm number
};

// A loaded module: its globals live in the device's memory until it is destroyed.
class Module {
 public:
  // Throws ptx::Error; NoImage if the target is not for this part; std::bad_alloc when globals do
  // not fit the device's memory.
  Module(const std::string& text, const Limits& limits, DeviceMemory& memory);
  ~Module();
  Module(const Module&) = delete;

  // Entries by name; null where there is none.
  const FunctionInfo* entry(const std::string& name) const;
  std::vector<std::string> entries() const;
  // Address and bytes of a global or constant variable; false where there is none.
  bool variable(const std::string& name, uint64_t* address, uint64_t* bytes) const;

  std::unique_ptr<Program> program;
};

struct NoImage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Launch {
  const Module* module = nullptr;
  const FunctionInfo* entry = nullptr;
  Dim grid, block;
  unsigned dynamic_shared = 0;
  std::vector<std::byte> parameters;  // laid out as FunctionInfo says
  uint64_t seed = 0;
  bool cooperative = false;
  unsigned threads = 0;  // host threads; 0: as many as the machine has
  // Warp instructions of one launch without any change to memory after which it is taken to hang.
  uint64_t patience = 20'000'000;
  // Those of one block after which it is taken to hang whatever it changes: for texts at random.
  uint64_t most_instructions = ~uint64_t{0};
};

struct LaunchStatistics {
  std::string kernel;
  Dim grid, block;
  unsigned dynamic_shared = 0, static_shared = 0;
  uint64_t seed = 0;
  Counters counters;
  DistinctSectors sectors;
  double seconds = 0;  // of the host, for tuning the emulator alone
};

// Runs all blocks to their end. Throws LaunchFailure with the first report. Limits on grid, block
// and shared memory are the caller's to check. Constant variables are read as they are at this
// time.
LaunchStatistics run(const Launch& launch, const Limits& limits, DeviceMemory& memory);

}  // namespace emulator
