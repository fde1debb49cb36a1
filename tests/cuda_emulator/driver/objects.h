#pragma once

// What handles stand for. All of it is guarded by the driver's lock; what work in streams needs of
// it is copied into that work.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/driver/action.h"
#include "tests/cuda_emulator/driver/work.h"
#include "tests/cuda_emulator/machine/device.h"

namespace emulator::driver {

struct Capture;

struct Context {
  CUcontext handle = nullptr;
  unsigned long long id = 0;
  unsigned flags = 0;
  bool primary = false;
  bool alive = true;
  CUresult error = CUDA_SUCCESS;  // sticky: of a launch that failed
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  std::map<CUlimit, size_t> limits;
  // Its null stream, and those of threads that use the per-thread default stream.
  std::shared_ptr<Stream> legacy;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread;
  // Work of blocking streams that were destroyed before it was done.
  std::vector<std::shared_ptr<Work>> orphans;
};

struct Stream {
  CUstream handle = nullptr;  // null for default streams
  std::shared_ptr<Context> context;
  unsigned long long id = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;
  std::deque<std::shared_ptr<Work>> queue;
  std::shared_ptr<Work> last;  // of all that was ever submitted
  // Capture: the graph that work goes into, and the nodes that the next one comes after.
  std::shared_ptr<Capture> capture;
  std::vector<CUgraphNode> tail;
  CUsynchronizationPolicy synchronization = CU_SYNC_POLICY_AUTO;
  CUaccessPolicyWindow access_window{};

  bool blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }
};

struct Event {
  CUevent handle = nullptr;
  std::shared_ptr<Context> context;
  unsigned flags = 0;
  std::shared_ptr<Work> work;  // null: never recorded
  // Where it was recorded last in a stream that captures: the nodes that it stands for.
  std::weak_ptr<Capture> capture;
  std::vector<CUgraphNode> nodes;
  bool captured = false;
};

// A module of the machine, and what of it the program has asked for.
struct LoadedModule {
  CUmodule handle = nullptr;
  std::shared_ptr<Context> context;
  std::shared_ptr<Module> module;  // null once it is unloaded; work that runs keeps its own
  std::map<std::string, std::shared_ptr<Function>> functions;
  bool of_library = false;
};

struct Function {
  CUfunction handle = nullptr;
  std::weak_ptr<LoadedModule> module;
  const FunctionInfo* info = nullptr;  // valid as long as the module is loaded
  std::string name;
  int dynamic_shared = 0;  // MAX_DYNAMIC_SHARED_SIZE_BYTES
  int carveout = CU_SHAREDMEM_CARVEOUT_DEFAULT;
  int cluster[3] = {0, 0, 0};
  int nonportable_cluster = 0, cluster_policy = 0;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
};

struct Kernel;

// Loaded into a context when that context first asks for one of its kernels.
struct Library {
  CUlibrary handle = nullptr;
  std::string text;
  std::map<CUcontext, std::shared_ptr<LoadedModule>> modules;
  std::map<std::string, std::shared_ptr<Kernel>> kernels;
};

struct Kernel {
  CUkernel handle = nullptr;
  std::weak_ptr<Library> library;
  std::string name;
};

enum class Origin { device, managed, host, registered, pool };

struct Allocation {
  uint64_t address = 0, bytes = 0;
  Origin origin = Origin::device;
  std::shared_ptr<Context> context;  // null for those of pools
  unsigned flags = 0;
  CUmemoryPool pool = nullptr;
  unsigned long long id = 0;
  bool synchronous = false;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
};

struct Pool {
  CUmemoryPool handle = nullptr;
  bool is_default = false;
  CUmemPoolProps properties{};
  std::map<CUmemPool_attribute, uint64_t> attributes;
  uint64_t used = 0, highest = 0;
};

}  // namespace emulator::driver
