#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "runtime/host/workers.h"

namespace krait {

struct Workers::State {
  // oneTBB has no more workers than the machine, and says so on stderr when asked for more.
  explicit State(int threads) : arena(std::min(threads, available())) {}
  tbb::task_arena arena;
};

int Workers::available() { return std::max(1, tbb::info::default_concurrency()); }

Workers::Workers(int threads) : state_(std::make_unique<State>(threads)) {}

Workers::~Workers() = default;

void Workers::run(std::int64_t times, const std::function<void()>& work) {
  state_->arena.execute([&] {
    tbb::parallel_for(
        std::int64_t{0}, times, [&](std::int64_t) { work(); }, tbb::simple_partitioner());
  });
}

}  // namespace krait
