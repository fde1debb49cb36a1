#include "runtime/host/pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "dsl/error.h"
#include "runtime/host/workers.h"

namespace krait {
namespace {

constexpr std::align_val_t alignment{64};

/// Pieces of a thread's share: enough to even out unequal items, few enough to cost nothing.
constexpr std::int64_t chunks_per_thread = 8;

class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::size_t size)
      : bytes_(static_cast<std::byte*>(::operator new(size, alignment))), size_(size) {}
  std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, alignment); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_ = 0;
};

}  // namespace

struct Pool::State {
  explicit State(int threads) : workers(threads) {}

  /// Takes a block that no other call holds, the one returned last if it is large enough.
  Scratch take(std::size_t bytes) {
    if (bytes == 0) return {};
    {
      const std::scoped_lock lock(mutex);
      if (!idle.empty()) {
        Scratch block = std::move(idle.back());
        idle.pop_back();
        if (block.size() >= bytes) return block;
      }
    }
    return Scratch(bytes);
  }

  void give_back(Scratch block) {
    if (!block.data()) return;
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(block));
  }

  Workers workers;
  std::mutex mutex;
  std::vector<Scratch> idle;
};

Pool::Pool(int threads) : threads_(threads) {
  if (threads < 0) {
    throw UsageError("threads", std::to_string(threads), "1 or more, or 0 for all");
  }
  if (threads == 0) threads_ = Workers::available();
  state_ = std::make_unique<State>(threads_);
}

Pool::~Pool() = default;

void Pool::reserve_scratch(std::size_t bytes) {
  std::vector<Scratch> blocks;
  for (int i = 0; i < threads_; ++i) blocks.push_back(state_->take(bytes));
  for (Scratch& block : blocks) state_->give_back(std::move(block));
}

void Pool::parallel_for(std::int64_t count, std::size_t scratch_bytes, const Body& body) {
  if (count <= 0) return;
  const std::int64_t chunk = std::max<std::int64_t>(1, count / (threads_ * chunks_per_thread));
  std::atomic<std::int64_t> next = 0;
  // Every thread that comes takes chunks until none is left: no thread waits for one that is late,
  // and the items next to each other are worked on at about the same time.
  const auto work = [&] {
    Scratch scratch;
    for (;;) {
      const std::int64_t begin = next.fetch_add(chunk);
      if (begin >= count) break;
      if (scratch_bytes != 0 && !scratch.data()) scratch = state_->take(scratch_bytes);
      body(begin, std::min(count, begin + chunk), scratch.data());
    }
    state_->give_back(std::move(scratch));
  };
  const std::int64_t workers = std::min<std::int64_t>(threads_, (count + chunk - 1) / chunk);
  if (workers == 1) return work();
  // By reference, so that the function object needs no memory of its own.
  state_->workers.run(workers, std::cref(work));
}

}  // namespace krait
