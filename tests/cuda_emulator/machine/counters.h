#pragma once

// Exact counts of a launch, kept by each block and added up at its end.

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "tests/cuda_emulator/machine/op.h"

namespace emulator {

struct Counters {
  std::array<uint64_t, kClasses> warp_instructions{};    // executed with at least one lane
  std::array<uint64_t, kClasses> thread_instructions{};  // lanes
  uint64_t skipped = 0;  // warp instructions whose guard was false in all lanes
  uint64_t branches = 0, divergent_branches = 0;
  uint64_t barriers = 0;                // completed block barriers
  uint64_t mma_flops = 0;               // 2 m n k an instruction
  std::map<std::string, uint64_t> mma;  // by shape and types: "m16n8k16.f32.bf16.bf16.f32"
  // Global memory: bytes are lanes times the bytes of a lane, of a copy those that it reads.
  // Sectors are 32 bytes at addresses divisible by 32, those that a warp instruction touches, each
  // once an instruction. Copies (cp.async) are loads; atom and red are atomic alone.
  uint64_t global_load_bytes = 0, global_store_bytes = 0, global_atomic_bytes = 0;
  uint64_t global_load_sectors = 0, global_store_sectors = 0, global_atomic_sectors = 0;
  // Shared memory: lanes by bytes a lane (index: log2 of 1 2 4 8 16), wavefronts with conflicts,
  // and the wavefronts that the same access would take without any. There are 32 banks of four
  // bytes. Accesses of 8 bytes are done by half-warps, those of 16 by quarter-warps, narrower ones
  // by the whole warp; each of these that has lanes with the access takes as many wavefronts as
  // there are different words in one bank, at the most, and one without conflicts. atom, red and
  // mbarrier operations are not counted here; ldmatrix and stmatrix have counts of their own.
  std::array<uint64_t, 5> shared_load_lanes{}, shared_store_lanes{}, shared_async_lanes{};
  uint64_t shared_load_wavefronts = 0, shared_store_wavefronts = 0, shared_async_wavefronts = 0;
  uint64_t shared_load_ideal = 0, shared_store_ideal = 0, shared_async_ideal = 0;
  uint64_t ldmatrix = 0, ldmatrix_wavefronts = 0,
           ldmatrix_ideal = 0;  // instructions; ideal: .x4 is 4
  uint64_t stmatrix = 0, stmatrix_wavefronts = 0, stmatrix_ideal = 0;
  unsigned worst_bank_conflict = 1;  // wavefronts over ideal of one instruction, rounded up
  uint64_t blocks = 0;

  Counters& operator+=(const Counters& other);
};

// Sectors of global memory touched at least once by a launch; filled by the memory. An atomic
// operation reads and writes.
struct DistinctSectors {
  uint64_t read = 0, written = 0, any = 0;
};

}  // namespace emulator
