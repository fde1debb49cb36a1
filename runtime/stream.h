// Stream: in which order a device does its work.
#pragma once

#include <cstddef>

namespace krait {

/// Work of one stream runs in the order in which it was given; that of two streams in any. The host
/// has one order only, and does its work at once.
class Stream {
 public:
  /// The device's own, which waits for no other and no other waits for.
  Stream() = default;
  /// A stream of the caller: a CUstream or cudaStream_t of the device's primary context, which is
  /// the one that the CUDA runtime and frameworks use. Null is the legacy default stream. It must
  /// outlive the memory that was made in its order (tensors, tapes).
  static Stream of(void* handle) { return Stream(handle != nullptr ? handle : marked(1)); }
  /// The default stream of each thread (CU_STREAM_PER_THREAD).
  static Stream per_thread() { return Stream(marked(2)); }

  /// Null: the device's own.
  void* handle() const { return handle_; }
  bool operator==(const Stream&) const = default;

 private:
  explicit Stream(void* handle) : handle_(handle) {}
  /// CU_STREAM_LEGACY is 1, CU_STREAM_PER_THREAD 2.
  static void* marked(std::size_t number) { return reinterpret_cast<void*>(number); }

  void* handle_ = nullptr;
};

}  // namespace krait
