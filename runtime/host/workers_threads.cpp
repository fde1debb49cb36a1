// In place of oneTBB, for programs that are linked without shared libraries: threads that are made
// for every call. Slow for short kernels.
#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/host/workers.h"

namespace krait {

struct Workers::State {};

int Workers::available() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Workers::Workers(int) {}

Workers::~Workers() = default;

void Workers::run(std::int64_t times, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::int64_t i = 1; i < times; ++i) threads.emplace_back(guarded);
    guarded();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace krait
