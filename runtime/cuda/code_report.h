// What is known of a kernel's code for a GPU before it runs: from the compiler's log, from the
// device image, from the limits of the part.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/cuda/cuda_target.h"
#include "runtime/compile.h"

namespace krait {

struct CodeReport {
  int registers = 0;  // of a thread
  /// Bytes of a thread.
  std::int64_t spill_stores = 0, spill_loads = 0, stack = 0;
  std::int64_t static_shared = 0;  // bytes of a block
  std::int64_t code_bytes = 0;     // of its machine code

  bool spills() const { return spill_stores > 0 || spill_loads > 0; }
};

/// Reads the log of ptxas and the image. Throws InternalError where the log tells no registers (it
/// is compiled without --ptxas-options=-v) or the image is no 64-bit ELF.
CodeReport code_report(const CompiledCode& code);

/// Blocks that one multiprocessor can run at once, 0 where not even one fits.
int blocks_per_multiprocessor(const CudaTarget& target, int threads, int registers,
                              std::int64_t shared_bytes);

}  // namespace krait
