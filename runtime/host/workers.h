// Threads that work together: of oneTBB, or of the standard library where that cannot be linked in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace krait {

class Workers {
 public:
  /// How many the process may use, at least 1.
  static int available();

  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Calls `work` `times` times, at once as far as there are threads, the calling one included, and
  /// returns when all have returned. What one throws is thrown here.
  void run(std::int64_t times, const std::function<void()>& work);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace krait
