#pragma once

// The state behind the entry points, and what each of them does first.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda_emulator/driver/failure.h"
#include "tests/cuda_emulator/driver/graph.h"
#include "tests/cuda_emulator/driver/objects.h"
#include "tests/cuda_emulator/driver/table.h"
#include "tests/cuda_emulator/driver/work.h"

namespace emulator::driver {

using Lock = std::unique_lock<std::mutex>;

// Of streams; the least is 0.
inline constexpr int kGreatestPriority = -5;

// Calls that fail because a test asked for it.
struct Faults {
  struct Planned {
    uint64_t left = 0;
    CUresult result = CUDA_SUCCESS;
    bool sticky = false;
  };
  std::map<std::string, Planned, std::less<>> calls;
  CUresult lost = CUDA_SUCCESS;  // what every call returns from now on
  std::string lost_by;
  uint64_t allocation = 0;  // allocations until the one that fails; 0: none
};

class Driver {
 public:
  // Lives until the end of the process: programs call the driver from destructors.
  static Driver& get();

  std::mutex mutex;
  Worker worker{mutex};
  // Held while memory is copied or released; taken after `mutex`, never before.
  std::mutex device_mutex;

  bool initialized = false, deinitialized = false;
  uint64_t generation = 0;  // of resets
  Limits limits;
  std::unique_ptr<DeviceMemory> memory;
  Faults faults;

  Table<CUcontext, Context> contexts;
  std::shared_ptr<Context> primary;
  unsigned primary_count = 0, primary_flags = 0;
  Table<CUstream, Stream> streams;
  Table<CUevent, Event> events;
  Table<CUmodule, LoadedModule> modules;
  Table<CUfunction, Function> functions;
  Table<CUlibrary, Library> libraries;
  Table<CUkernel, Kernel> kernels;
  Table<CUgraph, Graph> graphs;
  Table<CUgraphNode, Node> nodes;
  Table<CUgraphExec, GraphExec> executables;
  Table<CUmemoryPool, Pool> pools;
  CUmemoryPool default_pool = nullptr, current_pool = nullptr;
  std::map<uint64_t, Allocation> allocations;  // by address
  std::atomic<int> pending_frees{0};           // cuMemFreeAsync that streams have not come to
  std::vector<std::shared_ptr<Capture>> captures;
  unsigned long long next_id = 1;

  // Settings, and results of launches.
  int major = 0, minor = 0;  // 0, 0: as the environment says, or 9.0
  uint64_t capacity = 0, seed = 0;
  unsigned threads = 0;
  std::string report, report_text, statistics_text;
  std::vector<LaunchStatistics> launches;
  std::vector<LaunchStatistics> earlier_launches;  // before resets, for the file

  // cuInit, once. INVALID_DEVICE for an architecture of the environment that is not known.
  void initialize();
  // As it was before cuInit.
  void reset(Lock& lock);
  void destroy_context(Lock& lock, const std::shared_ptr<Context>& context);
  // A new context; null streams included.
  std::shared_ptr<Context> make_context(unsigned flags);
  // The primary context, which keeps its handle; made active where it is not.
  std::shared_ptr<Context> active_primary();
  // Ends a capture without a graph.
  void abandon(const std::shared_ptr<Capture>& capture);
  // Says that the next allocation of device memory is to fail.
  bool allocation_fails();
  // The live allocation that holds an address, or null.
  const Allocation* allocation_at(uint64_t address) const;
  // Writes the counts of all launches of the process to KRAIT_EMULATOR_STATS.
  void write_statistics() const;

 private:
  Driver();
  void begin(const std::shared_ptr<Context>& context, unsigned flags);
};

// The contexts that are current to this thread, the top one last.
std::vector<std::shared_ptr<Context>>& context_stack();

// An entry point that runs: holds the driver's lock.
class Call {
 public:
  explicit Call(Driver& driver) : driver(driver), lock(driver.mutex) {}

  Driver& driver;
  Lock lock;

  // The current context: INVALID_CONTEXT where there is none, CONTEXT_IS_DESTROYED.
  std::shared_ptr<Context> context() const;
  // The same for calls that a failed launch makes fail.
  std::shared_ptr<Context> sound_context() const;
  void check_device(CUdevice device) const;
  // A stream by its handle or as one of the default streams of the current context. Fails with the
  // error of its context.
  std::shared_ptr<Stream> stream(CUstream handle) const;
  // The same without a look at that error.
  std::shared_ptr<Stream> any_stream(CUstream handle) const;
  // STREAM_CAPTURE_UNSUPPORTED where a capture forbids this thread calls that may synchronise; such
  // a call invalidates the capture.
  void unsafe_in_capture() const;
  // A capture that a blocking stream of the context takes part in, or null.
  Capture* blocking_capture(const Context& context) const;
  // STREAM_CAPTURE_IMPLICIT where a blocking stream of the context captures.
  void implicit_in_capture(const Context& context) const;

  // Has the stream do that, or its graph where it captures.
  std::shared_ptr<Work> submit(const std::shared_ptr<Stream>& stream, Action action);
  // Work that all of the stream's comes before: for waits.
  std::shared_ptr<Work> marker(const std::shared_ptr<Stream>& stream);
  // Waits, then fails with the error of the context.
  void finish(const std::shared_ptr<Context>& context, const std::shared_ptr<Work>& work);
  void synchronize(const std::shared_ptr<Context>& context);
};

// What an entry point begins with: planned faults, and the state of the driver.
// `name` is that of the entry point without version and suffix.
CUresult enter(std::string_view name, bool needs_init);
CUresult code_of_exception();

template <class F>
CUresult entry(std::string_view name, F&& body, bool needs_init = true) {
  try {
    if (const CUresult refused = enter(name, needs_init); refused != CUDA_SUCCESS) return refused;
    Call call(Driver::get());
    body(call);
    return CUDA_SUCCESS;
  } catch (...) {
    return code_of_exception();
  }
}

}  // namespace emulator::driver
