// What actions do, on the worker's thread.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "tests/cuda_emulator/driver/copies.h"
#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {
namespace {

CUresult code_of(Fault fault) {
  switch (fault) {
    case Fault::out_of_bounds:
    case Fault::freed:
    case Fault::read_only: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::misaligned: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::assertion: return CUDA_ERROR_ASSERT;
    case Fault::trap:
    case Fault::illegal: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case Fault::deadlock: return CUDA_ERROR_LAUNCH_TIMEOUT;
    default: return CUDA_ERROR_LAUNCH_FAILED;
  }
}

CUresult report(const std::string& text, CUresult code) {
  Driver& driver = Driver::get();
  std::fprintf(stderr, "%s\n", text.c_str());
  if (const char* file = std::getenv("KRAIT_EMULATOR_REPORTS"))
    std::ofstream(file, std::ios::app) << text << '\n';
  Lock lock(driver.mutex);
  driver.report = text;
  return code;
}

// Never 0, which stands for none.
uint64_t drawn_seed() {
  static std::random_device device;
  return uint64_t{device()} << 1 | 1;
}

CUresult run_kernel(const KernelAction& action) {
  Driver& driver = Driver::get();
  Launch launch;
  std::shared_ptr<const Module> module;  // may be unloaded meanwhile, from another context
  launch.grid = action.grid;
  launch.block = action.block;
  launch.dynamic_shared = action.dynamic_shared;
  launch.parameters = action.parameters;
  launch.cooperative = action.cooperative;
  {
    Lock lock(driver.mutex);
    module = action.module->module;
    if (!module) return CUDA_ERROR_LAUNCH_FAILED;  // unloaded between launch and run
    launch.module = module.get();
    launch.entry = action.function->info;
    launch.seed = driver.seed ? driver.seed : drawn_seed();
    launch.threads = driver.threads;
  }
  try {
    LaunchStatistics statistics = run(launch, driver.limits, *driver.memory);
    Lock lock(driver.mutex);
    driver.launches.push_back(std::move(statistics));
    return CUDA_SUCCESS;
  } catch (const LaunchFailure& failure) {
    return report(failure.what(), code_of(failure.report.fault));
  } catch (const std::exception& error) {
    return report("launch of " + action.function->name + ": " + error.what(),
                  CUDA_ERROR_LAUNCH_FAILED);
  }
}

// One row of bytes.
bool move(const Side& to, uint64_t to_address, const Side& from, uint64_t from_address,
          uint64_t bytes) {
  DeviceMemory& memory = *Driver::get().memory;
  if (to.host && from.host) {
    std::memmove(reinterpret_cast<void*>(to_address), reinterpret_cast<void*>(from_address), bytes);
    return true;
  }
  if (to.host) return memory.read(reinterpret_cast<void*>(to_address), from_address, bytes);
  if (from.host)
    return memory.write(to_address, reinterpret_cast<const void*>(from_address), bytes);
  return memory.copy(to_address, from_address, bytes);
}

CUresult run_copy(const CopyAction& copy) {
  // A graph may be launched when the host's memory that it names is gone.
  for (const Side* side : {&copy.to, &copy.from}) {
    if (side->host && !mapped(reinterpret_cast<const void*>(side->address), extent(copy, *side)))
      return report("a copy reads or writes memory of the host that is not mapped",
                    CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  std::unique_lock device(Driver::get().device_mutex);
  const bool whole =
      copy.depth == 1 &&
      (copy.height == 1 || (copy.to.pitch == copy.width && copy.from.pitch == copy.width));
  const uint64_t rows = whole ? 1 : copy.height,
                 width = whole ? copy.width * copy.height : copy.width;
  for (uint64_t z = 0; z < copy.depth; ++z) {
    for (uint64_t y = 0; y < rows; ++y) {
      const uint64_t to = copy.to.address + z * copy.to.slice + y * copy.to.pitch;
      const uint64_t from = copy.from.address + z * copy.from.slice + y * copy.from.pitch;
      if (move(copy.to, to, copy.from, from, width)) continue;
      device.unlock();
      return report("a copy reads or writes memory that is not allocated any more",
                    CUDA_ERROR_ILLEGAL_ADDRESS);
    }
  }
  return CUDA_SUCCESS;
}

CUresult run_fill(const CUDA_MEMSET_NODE_PARAMS& fill) {
  std::unique_lock device(Driver::get().device_mutex);
  for (size_t y = 0; y < fill.height; ++y) {
    if (Driver::get().memory->fill(fill.dst + y * fill.pitch, &fill.value, fill.elementSize,
                                   fill.width))
      continue;
    device.unlock();
    return report("a memset writes memory that is not allocated any more",
                  CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  return CUDA_SUCCESS;
}

CUresult run_host(const HostAction& action, CUresult error) {
  Driver::get().worker.call_host([&] {
    if (action.callback) {
      action.callback(action.stream, error, action.data);
    } else {
      action.function(action.data);
    }
  });
  return CUDA_SUCCESS;
}

}  // namespace

CUresult perform(const Action& action, CUresult context_error) {
  if (const auto* kernel = std::get_if<KernelAction>(&action)) return run_kernel(*kernel);
  if (const auto* copy = std::get_if<CopyAction>(&action)) return run_copy(*copy);
  if (const auto* fill = std::get_if<FillAction>(&action)) return run_fill(fill->given);
  if (const auto* host = std::get_if<HostAction>(&action)) return run_host(*host, context_error);
  if (const auto* freed = std::get_if<FreeAction>(&action)) {
    std::lock_guard device(Driver::get().device_mutex);
    Driver::get().memory->release(freed->address);
    --Driver::get().pending_frees;
  }
  return CUDA_SUCCESS;
}

CUresult perform(const Body& body, uint64_t seed, CUresult context_error) {
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed));
  std::vector<bool> done(body.steps.size());
  const auto ready = [&](size_t i) {
    for (const size_t before : body.steps[i].after) {
      if (!done[before]) return false;
    }
    return !done[i];
  };
  for (size_t count = 0; count < body.steps.size(); ++count) {
    size_t i = random() % body.steps.size();
    while (!ready(i)) i = (i + 1) % body.steps.size();
    const Step& step = body.steps[i];
    if (step.enabled) {
      const CUresult error = step.child ? perform(*step.child, random(), context_error)
                                        : perform(step.action, context_error);
      if (error != CUDA_SUCCESS) return error;
    }
    done[i] = true;
  }
  return CUDA_SUCCESS;
}

}  // namespace emulator::driver
