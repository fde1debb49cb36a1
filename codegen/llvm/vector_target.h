// What the host emitter and its passes know of the CPU. A plain value.
#pragma once

namespace krait {

/// A CPU with vector registers, fused multiply-add and rounding instructions.
struct VectorTarget {
  int vector_bits = 256;      // 128, 256 or 512
  int vector_registers = 16;  // of that width

  /// Elements of `bytes` bytes in one vector.
  int lanes(int bytes) const { return vector_bits / (8 * bytes); }
};

}  // namespace krait
