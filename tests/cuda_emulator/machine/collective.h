#pragma once

// Instructions that the lanes of a member mask execute together, maybe at different places of the
// program: what each brings is gathered, then the results are made, then each takes its own.

#include "tests/cuda_emulator/machine/op.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {

// Only the lanes of `members` are set.
struct Exchange {
  Mask members = 0;  // of the mask that have not exited: all of them take part
  uint32_t in[3][kLanes];
  uint64_t wide[kLanes];
  uint8_t defined[3][kLanes];  // as of registers; that of `wide` is the first
  uint32_t out[kLanes];
  uint8_t out_defined[kLanes];
  Mask predicate = 0, predicate_defined = 0;
};

// What an Op of Flow::collective has as its `extra`. Two of the same kind with the same `mode`
// meet.
struct Collective {
  void (*gather)(const Registers& registers, const Op& op, Mask lanes, Exchange& exchange);
  void (*complete)(Warp& warp, const Op& op, Exchange& exchange);
  void (*scatter)(const Registers& registers, const Op& op, Mask lanes, const Exchange& exchange);
};

}  // namespace emulator
