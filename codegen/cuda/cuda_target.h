// What the passes and the emitter know of a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace krait {

struct CudaTarget {
  /// Compute capability, 75 for 7.5, and the name that compilers take, "sm_90a".
  int capability = 90;
  std::string architecture = "sm_90a";
  /// Bytes of shared memory that one block may have.
  std::int64_t shared_limit = 227 << 10;
  /// What the blocks share that one multiprocessor runs at once: bytes of shared memory (of which
  /// the system keeps `reserved` for each block), threads, and how many blocks it may run.
  std::int64_t multiprocessor_shared = 228 << 10, reserved = 1 << 10;
  int multiprocessor_threads = 2048, multiprocessor_blocks = 32;
  /// Of a common part of this kind.
  int multiprocessors = 132;
  /// Warps of a block, a power of two; fewer where a kernel has less to do.
  int warps = 8;
  /// Registers of one thread that fragments may take, of four bytes.
  std::int64_t fragment_registers = 96;
  /// Slots that buffers loaded in a loop may have, 1 or 2: with two, a turn's loads run beside the
  /// work of the turn before. Asked for: a kernel without the room for them is the caller's error.
  int stages = 2;
  bool stages_asked = false;
  /// Functions as the host computes them, bit by bit, in place of approximate instructions.
  bool exact = false;

  bool operator==(const CudaTarget&) const = default;
};

/// Of a part by ten times its compute capability. Throws UsageError for one that krait does not
/// know, with those that it does.
CudaTarget cuda_target(int capability);
/// Of those that it knows, lowest first.
std::vector<int> cuda_capabilities();
/// The same by text, "8.0". Throws UsageError that names `field`.
CudaTarget cuda_target(const std::string& capability, const std::string& field);

}  // namespace krait
