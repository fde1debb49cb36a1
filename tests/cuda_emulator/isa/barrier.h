#pragma once

#include <cstdint>

#include "tests/cuda_emulator/machine/op.h"

namespace emulator {

class Decoding;

// mode[0] of Flow::block_barrier; those from popc on reduce a predicate, their last argument.
enum class BarrierKind : uint32_t { sync, arrive, popc, all, any };

// Its `extra`: where its operands are.
struct BarrierOp {
  bool aligned = true;
  bool has_count = false;
  uint8_t id = 0, count = 0;  // of args
};

// bar.warp.sync, in warp.cpp.
Op decode_warp_barrier(Decoding& decoding);

}  // namespace emulator
