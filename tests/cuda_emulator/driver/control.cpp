// The functions of emulator.h.

#include <algorithm>
#include <stdexcept>

#include "tests/cuda_emulator/driver/driver.h"
#include "tests/cuda_emulator/driver/names.h"
#include "tests/cuda_emulator/driver/statistics.h"
// Its functions are exported.
#pragma GCC visibility push(default)
#include "tests/cuda_emulator/emulator.h"
#pragma GCC visibility pop

using namespace emulator::driver;

const char* cuda_emulator_report(void) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.report_text = driver.report;
  return driver.report_text.c_str();
}

const char* cuda_emulator_statistics(void) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.statistics_text = json_of(driver.launches);
  return driver.statistics_text.c_str();
}

void cuda_emulator_seed(uint64_t seed) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.seed = seed;
  if (seed) driver.worker.seed(seed);
}

int cuda_emulator_architecture(int major, int minor) {
  try {
    if (major || minor) emulator::limits_of(major, minor);
  } catch (const std::invalid_argument&) {
    return 1;
  }
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.major = major;
  driver.minor = minor;
  return 0;
}

void cuda_emulator_memory(uint64_t bytes) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.capacity = bytes;
}

void cuda_emulator_fail_allocation(uint64_t n) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.faults.allocation = n;
}

void cuda_emulator_fail_call(const char* entry_point, uint64_t n, int result, int sticky) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  const std::string name = plain_name(entry_point);
  if (n > 0) {
    driver.faults.calls[name] = {n, static_cast<CUresult>(result), sticky != 0};
    return;
  }
  driver.faults.calls.erase(name);
  if (driver.faults.lost_by == name) driver.faults.lost = CUDA_SUCCESS;
}

void cuda_emulator_alive(uint64_t counts[7]) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  const auto count = [](const auto& table, auto&& predicate) {
    return static_cast<uint64_t>(std::count_if(
        table.begin(), table.end(), [&](const auto& e) { return predicate(*e.second); }));
  };
  counts[0] = driver.allocations.size();
  counts[1] = driver.libraries.size() +
              count(driver.modules, [](const LoadedModule& module) { return !module.of_library; });
  counts[2] = driver.streams.size();
  counts[3] = driver.events.size();
  counts[4] = count(driver.graphs, [](const Graph& graph) { return !graph.nested; });
  counts[5] = driver.executables.size();
  counts[6] = driver.contexts.size();
}

void cuda_emulator_reset(void) {
  Driver& driver = Driver::get();
  Lock lock(driver.mutex);
  driver.reset(lock);
}
