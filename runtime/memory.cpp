#include "runtime/memory.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "dsl/error.h"

namespace krait {
namespace {

constexpr std::align_val_t alignment{64};

class HostSource : public MemorySource {
 public:
  void give_back(const Block& block) noexcept override { ::operator delete(block.data, alignment); }
};

}  // namespace

Memory host_memory(std::int64_t bytes) {
  static const auto source = std::make_shared<HostSource>();
  Block block;
  block.data = ::operator new(static_cast<std::size_t>(bytes), alignment, std::nothrow);
  block.bytes = bytes;
  if (!block.data) throw EnvironmentError(text("no memory for a tensor of ", bytes, " bytes"));
  return {source, block};
}

struct HostScratch::State {
  std::mutex mutex;
  std::vector<Block> idle;  // by size
  std::int64_t lent = 0;
};

HostScratch::HostScratch() : state_(std::make_unique<State>()) {}

HostScratch::~HostScratch() {
  for (const Block& block : state_->idle) ::operator delete(block.data, alignment);
}

Memory HostScratch::take(std::int64_t bytes) {
  const auto larger = [](const Block& block, std::int64_t size) { return block.bytes < size; };
  Block block;
  const std::scoped_lock lock(state_->mutex);
  const auto found = std::lower_bound(state_->idle.begin(), state_->idle.end(), bytes, larger);
  if (found != state_->idle.end()) {
    block = *found;
    state_->idle.erase(found);
  } else {
    // One that is too small goes: so there are never more than are used at once.
    if (!state_->idle.empty()) {
      ::operator delete(state_->idle.back().data, alignment);
      state_->idle.pop_back();
    }
    state_->idle.reserve(static_cast<std::size_t>(state_->lent) + 1 + state_->idle.size());
    block.data = ::operator new(static_cast<std::size_t>(bytes), alignment, std::nothrow);
    block.bytes = bytes;
    if (!block.data) throw EnvironmentError(text("no memory for temporaries of ", bytes, " bytes"));
  }
  ++state_->lent;
  return {shared_from_this(), block};
}

void HostScratch::give_back(const Block& block) noexcept {
  const std::scoped_lock lock(state_->mutex);
  --state_->lent;
  const auto at =
      std::upper_bound(state_->idle.begin(), state_->idle.end(), block.bytes,
                       [](std::int64_t size, const Block& other) { return size < other.bytes; });
  state_->idle.insert(at, block);  // room was made when it was taken
}

}  // namespace krait
