// Calls written down as CUDA graphs.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/context.h"
#include "runtime/device.h"

namespace krait {

/// What one captured call allocates, kept as long as the call, or a tensor that was made in it:
/// every replay works in it. Freed when the last replay is done, which is waited for.
class CaptureMemory : public MemorySource, public std::enable_shared_from_this<CaptureMemory> {
 public:
  explicit CaptureMemory(std::shared_ptr<const CudaContext> context);
  ~CaptureMemory() override;

  /// What is given back while a call is captured is lent again to what it does next. Throws as
  /// CudaMemory does.
  Memory take(std::int64_t bytes, Stream stream);
  void give_back(const Block& block) noexcept override;
  /// A replay was given to the stream; the context is current.
  void replayed(CUstream stream) const;

 private:
  std::shared_ptr<const CudaContext> context_;
  const CudaDriver& driver_;
  CUevent last_ = nullptr;
  std::mutex mutex_;
  std::vector<Block> idle_;
};

/// The streams that a device captures at the moment, each with the memory of its call.
class Captures {
 public:
  void begin(Stream stream, std::shared_ptr<CaptureMemory> memory);
  void end(Stream stream);
  /// Null where the stream is not captured.
  std::shared_ptr<CaptureMemory> find(Stream stream);

 private:
  std::mutex mutex_;
  std::vector<std::pair<Stream, std::shared_ptr<CaptureMemory>>> now_;
};

std::unique_ptr<CapturedCall> capture_cuda(std::shared_ptr<const CudaContext> context,
                                           std::shared_ptr<Captures> captures,
                                           const CapturedCall::Call& call);

}  // namespace krait
