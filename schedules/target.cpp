#include "schedules/target.h"

#include <unistd.h>

#include <algorithm>

namespace krait {
namespace {

/// What the system says, or `fallback` where it says nothing.
std::int64_t system_value(int name, std::int64_t fallback) {
  const long value = sysconf(name);
  return value > 0 ? value : fallback;
}

}  // namespace

Target machine_target(int vector_bits) {
  Target target;
  target.vector_bits = vector_bits;
  target.threads = system_value(_SC_NPROCESSORS_ONLN, target.threads);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  target.l1_bytes = system_value(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = system_value(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
#endif
  target.l2_bytes = std::max(target.l2_bytes, target.l1_bytes);
  // A thread alone does not fill a memory channel, and there are not so many channels.
  target.memory_bytes_per_second =
      10e9 * static_cast<double>(std::min<std::int64_t>(target.threads, 16));
  std::int64_t bytes = 0;
  if (!__builtin_mul_overflow(system_value(_SC_PHYS_PAGES, 0), system_value(_SC_PAGESIZE, 4096),
                              &bytes) &&
      bytes > 0)
    target.memory_bytes = bytes;
  target.scratch_limit = std::min(target.scratch_limit, target.memory_bytes / (4 * target.threads));
  return target;
}

Target gpu_target(const std::string& name, std::int64_t multiprocessors,
                  std::int64_t memory_bytes) {
  Target target;
  target.name = name;
  target.threads = multiprocessors;
  target.vector_bits = 128 * 32;
  target.memory_bytes = memory_bytes;
  target.cycles_per_second = 1.5e9;
  target.memory_bytes_per_second = 2e12;
  return target;
}

}  // namespace krait
