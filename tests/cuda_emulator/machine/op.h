#pragma once

// A decoded instruction. isa/ makes these, machine/ runs them.

#include <cstdint>
#include <memory>

#include "tests/cuda_emulator/machine/lanes.h"
#include "tests/cuda_emulator/ptx/module.h"

namespace emulator {

class Warp;

// Classes of the statistics; an instruction is of exactly one.
enum class Class : uint8_t {
  integer,
  float16,
  float32,
  float64,
  convert,
  logic,
  compare,
  move,
  special,  // special: approximate
  load_global,
  store_global,
  load_shared,
  store_shared,
  load_local,
  store_local,
  load_constant,
  load_param,
  store_param,
  load_generic,
  store_generic,
  atomic,
  async_copy,
  matrix_move,
  mma,
  warp,
  barrier,
  fence,
  control,
  other
};
inline constexpr int kClasses = static_cast<int>(Class::other) + 1;
const char* name_of(Class c);

// How the machine treats an instruction beyond calling `run`.
enum class Flow : uint8_t {
  plain,    // run(warp, op, lanes), then the next one
  aligned,  // all lanes of the warp that have not exited must execute it together, guard true for
            // all: mma.sync, ldmatrix, ... The machine waits for the lanes that are elsewhere and
            // reports divergence where they cannot come.
  collective,  // *.sync with a member mask: the machine gathers the lanes of the mask, then runs
               // it. args[members] holds the mask. isa/warp.cpp says how.
  branch,
  branch_indirect,
  call,
  call_indirect,
  ret,
  exit,
  block_barrier,
  trap
};

struct Op {
  void (*run)(Warp&, const Op&, Mask) = nullptr;  // for plain, aligned and collective
  // Destinations first, then sources, in the order of the PTX text; vectors are spread out. The
  // decoder of the opcode says which is which.
  const Arg* args = nullptr;
  uint8_t arg_count = 0;
  uint8_t members = 0;  // collective: which of args is the member mask
  Class kind = Class::other;
  Flow flow = Flow::plain;
  bool counted = true;  // false for the reads of special registers that decoding adds
  bool guarded = false;
  Arg guard;  // a predicate, negated or not
  // Free for the decoder and run.
  int64_t imm[2] = {0, 0};
  uint32_t mode[2] = {0, 0};
  const void* extra = nullptr;  // owned by the program
  const ptx::Instruction* source = nullptr;
};

}  // namespace emulator
