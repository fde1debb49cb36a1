#include "tests/cuda_emulator/driver/driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <stdexcept>

#include "tests/cuda_emulator/driver/memory.h"

namespace emulator::driver {
namespace {

uint64_t number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 0) : 0;
}

struct Stack {
  uint64_t generation = 0;
  std::vector<std::shared_ptr<Context>> contexts;
};
thread_local Stack stack;

void at_exit() {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.deinitialized = true;
  driver.worker.stop(lock);
  driver.write_statistics();
}

}  // namespace

Driver& Driver::get() {
  static Driver* const driver = new Driver;
  return *driver;
}

Driver::Driver() { std::atexit(at_exit); }

void Driver::initialize() {
  if (initialized) return;
  int wanted_major = major ? major : 9, wanted_minor = minor;
  const char* text = std::getenv("KRAIT_EMULATED_ARCH");
  if (text && !major) {
    if (std::sscanf(text, "%d.%d", &wanted_major, &wanted_minor) != 2)
      fail(CUDA_ERROR_INVALID_DEVICE);
  }
  try {
    limits = limits_of(wanted_major, wanted_minor);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "cuda_emulator: KRAIT_EMULATED_ARCH: %s\n", error.what());
    fail(CUDA_ERROR_INVALID_DEVICE);
  }
  if (capacity || number_of("KRAIT_EMULATOR_MEMORY"))
    limits.memory = capacity ? capacity : number_of("KRAIT_EMULATOR_MEMORY");
  if (!seed) seed = number_of("KRAIT_EMULATOR_SEED");
  threads = static_cast<unsigned>(number_of("KRAIT_EMULATOR_THREADS"));
  if (seed) worker.seed(seed);
  memory = std::make_unique<DeviceMemory>(limits.memory);
  auto pool = std::make_shared<Pool>();
  pool->is_default = true;
  pool->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  default_pool = current_pool = pools.add(std::move(pool));
  initialized = true;
}

void Driver::abandon(const std::shared_ptr<Capture>& capture) {
  for (const std::shared_ptr<Stream>& stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  if (!capture->given) destroy_graph(*this, capture->graph);
  std::erase(captures, capture);
}

void Driver::destroy_context(Lock& lock, const std::shared_ptr<Context>& context) {
  worker.drain(lock, context.get());
  const auto captures_now = captures;
  for (const std::shared_ptr<Capture>& capture : captures_now) {
    if (std::any_of(capture->streams.begin(), capture->streams.end(),
                    [&](const auto& stream) { return stream->context == context; }))
      abandon(capture);
  }
  context->alive = false;
  const auto within = [&](const auto& object) { return object.context == context; };
  streams.remove_if(within);
  events.remove_if(within);
  functions.remove_if([&](const Function& function) {
    const std::shared_ptr<LoadedModule> module = function.module.lock();
    return !module || within(*module);
  });
  for (const auto& [handle, library] : libraries) library->modules.erase(context->handle);
  for (const auto& [handle, module] : modules) {
    if (!within(*module)) continue;
    std::lock_guard device(device_mutex);
    module->module.reset();
  }
  modules.remove_if(within);
  std::vector<uint64_t> owned;
  for (const auto& [address, allocation] : allocations) {
    if (allocation.context == context) owned.push_back(address);
  }
  for (const uint64_t address : owned) release(*this, address);
  context->legacy = nullptr;
  context->per_thread.clear();
  context->orphans.clear();
  contexts.remove(context->handle);
}

std::shared_ptr<Context> Driver::make_context(unsigned flags) {
  auto context = std::make_shared<Context>();
  contexts.add(context);
  begin(context, flags);
  return context;
}

std::shared_ptr<Context> Driver::active_primary() {
  if (primary && primary->alive) return primary;
  if (!primary) {
    primary = make_context(primary_flags);
    primary->primary = true;
  } else {
    contexts.restore(primary);
    begin(primary, primary_flags);
  }
  return primary;
}

void Driver::begin(const std::shared_ptr<Context>& context, unsigned flags) {
  context->alive = true;
  context->error = CUDA_SUCCESS;
  context->flags = flags;
  context->id = next_id++;
  context->limits = {{CU_LIMIT_STACK_SIZE, 1024},
                     {CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                     {CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
                     {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                     {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                     {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                     {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
  context->legacy = std::make_shared<Stream>();
  context->legacy->context = context;
  context->legacy->legacy = true;
  context->legacy->id = next_id++;
}

void Driver::reset(Lock& lock) {
  faults = {};
  if (!initialized) return;
  worker.drain(lock, nullptr);
  while (contexts.size() > 0) destroy_context(lock, contexts.begin()->second);
  executables.clear();
  graphs.clear();
  nodes.clear();
  libraries.clear();
  kernels.clear();
  functions.clear();
  while (!allocations.empty()) release(*this, allocations.begin()->first);
  pools.clear();
  memory.reset();
  primary = nullptr;
  primary_count = primary_flags = 0;
  report.clear();
  if (std::getenv("KRAIT_EMULATOR_STATS"))
    std::move(launches.begin(), launches.end(), std::back_inserter(earlier_launches));
  launches.clear();
  write_statistics();
  initialized = false;
  ++generation;
}

bool Driver::allocation_fails() { return faults.allocation > 0 && --faults.allocation == 0; }

const Allocation* Driver::allocation_at(uint64_t address) const {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin()) return nullptr;
  --it;
  return address - it->first < it->second.bytes ? &it->second : nullptr;
}

std::vector<std::shared_ptr<Context>>& context_stack() {
  const uint64_t generation = Driver::get().generation;
  if (stack.generation != generation) {
    stack.contexts.clear();
    stack.generation = generation;
  }
  return stack.contexts;
}

CUresult enter(std::string_view name, bool needs_init) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  if (driver.deinitialized) return CUDA_ERROR_DEINITIALIZED;
  if (Worker::in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  if (driver.faults.lost != CUDA_SUCCESS) return driver.faults.lost;
  if (const auto it = driver.faults.calls.find(name);
      it != driver.faults.calls.end() && it->second.left > 0 && --it->second.left == 0) {
    if (it->second.sticky) {
      driver.faults.lost = it->second.result;
      driver.faults.lost_by = it->first;
    }
    return it->second.result;
  }
  if (needs_init && !driver.initialized) return CUDA_ERROR_NOT_INITIALIZED;
  return CUDA_SUCCESS;
}

CUresult code_of_exception() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_emulator: %s\n", error.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace emulator::driver
