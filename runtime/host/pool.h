// The threads that run the grid of a host kernel, over Workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace krait {

/// A fixed number of threads, the calling one included. Several callers may use one Pool at once;
/// they share its threads.
class Pool {
 public:
  /// Runs items begin .. end-1. `scratch` is aligned to 64 bytes, belongs to this call alone, and
  /// has what an earlier call left in it.
  using Body = std::function<void(std::int64_t begin, std::int64_t end, void* scratch)>;

  /// 0 stands for all threads that the process may use; more than these do not run at once.
  /// Throws UsageError for less than 0.
  explicit Pool(int threads = 0);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  /// Calls `body` until every item of 0 .. count-1 is covered once, and returns when all are. How
  /// the items are cut depends on the number of threads and which thread takes what on chance, so
  /// `body` must treat each item alone. `scratch` is null when `scratch_bytes` is 0. An exception
  /// of `body` stops the calls not yet begun and is thrown here.
  void parallel_for(std::int64_t count, std::size_t scratch_bytes, const Body& body);

  /// Makes scratch of this size for every thread, so that later calls that ask for no more allocate
  /// none.
  void reserve_scratch(std::size_t bytes);

 private:
  struct State;

  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace krait
