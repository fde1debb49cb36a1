// Memory that goes back to where it came from, in the order of a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/stream.h"

namespace krait {

/// A piece of a device's memory. What it holds to begin with is not said.
struct Block {
  void* data = nullptr;
  std::int64_t bytes = 0;
  Stream stream;         ///< in whose order it was made, may be used, and is given back
  void* mark = nullptr;  ///< of the source
};

/// Safe to use from several threads at once.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Work of the block's stream may still use it.
  virtual void give_back(const Block& block) noexcept = 0;
};

/// The one owner of a block. Keeps its source alive.
class Memory {
 public:
  Memory() = default;
  Memory(std::shared_ptr<MemorySource> source, const Block& block)
      : source_(std::move(source)), block_(block) {}
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    Memory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Memory() {
    if (source_) source_->give_back(block_);
  }

  void* data() const { return block_.data; }

 private:
  void swap(Memory& other) noexcept {
    source_.swap(other.source_);
    std::swap(block_, other.block_);
  }

  std::shared_ptr<MemorySource> source_;
  Block block_;
};

/// Memory of this process, aligned to 64 bytes. Throws EnvironmentError where there is none.
Memory host_memory(std::int64_t bytes);

/// Host memory that is kept for the next one: taking what was given back before allocates nothing.
class HostScratch : public MemorySource, public std::enable_shared_from_this<HostScratch> {
 public:
  HostScratch();
  ~HostScratch() override;
  Memory take(std::int64_t bytes);
  void give_back(const Block& block) noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace krait
