// Memory of a GPU in the order of streams, kept for the next one that asks.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/context.h"
#include "runtime/memory.h"

namespace krait {

/// Blocks come from the device's memory pool where it has one (cuMemAllocAsync), else from
/// cuMemAlloc, in some sizes only, so that they fit again. One that is given back is marked by an
/// event in its stream; it is lent again at once in that stream, and in another when the event has
/// passed. So nothing waits, and a call like an earlier one allocates nothing. Only where memory
/// runs out, everything idle is waited for and freed.
class CudaMemory : public MemorySource, public std::enable_shared_from_this<CudaMemory> {
 public:
  explicit CudaMemory(std::shared_ptr<const CudaContext> context);
  ~CudaMemory() override;

  /// Throws EnvironmentError that says what was asked for and what is free, UsageError in a stream
  /// that someone else captures.
  Memory take(std::int64_t bytes, Stream stream);
  void give_back(const Block& block) noexcept override;
  /// Frees what is idle, when it is; whether there was any.
  bool trim() noexcept;

 private:
  bool find_idle(std::int64_t size, Stream stream, Block& block);
  Block allocate(std::int64_t size, std::int64_t asked, Stream stream);
  void free(const Block& block) const noexcept;

  std::shared_ptr<const CudaContext> context_;
  const CudaDriver& driver_;
  bool pools_ = false;
  std::mutex mutex_;
  std::map<std::int64_t, std::vector<Block>> idle_;  // by size
};

/// Bytes that `bytes` take: multiples of 512, and of an eighth of the power of two below.
std::int64_t size_of_block(std::int64_t bytes);

/// What to say where `bytes` cannot be had.
[[noreturn]] void throw_out_of_memory(const CudaDriver& driver, std::int64_t bytes);

}  // namespace krait
