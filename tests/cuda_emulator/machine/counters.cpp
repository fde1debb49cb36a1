#include "tests/cuda_emulator/machine/counters.h"

#include <algorithm>

namespace emulator {

const char* name_of(Class c) {
  static constexpr const char* names[kClasses] = {
      "integer",       "float16",     "float32",      "float64",      "convert",
      "logic",         "compare",     "move",         "special",      "load_global",
      "store_global",  "load_shared", "store_shared", "load_local",   "store_local",
      "load_constant", "load_param",  "store_param",  "load_generic", "store_generic",
      "atomic",        "async_copy",  "matrix_move",  "mma",          "warp",
      "barrier",       "fence",       "control",      "other"};
  return names[static_cast<int>(c)];
}

namespace {

template <size_t N>
void add(std::array<uint64_t, N>& to, const std::array<uint64_t, N>& from) {
  for (size_t i = 0; i < N; ++i) to[i] += from[i];
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
  add(warp_instructions, other.warp_instructions);
  add(thread_instructions, other.thread_instructions);
  add(shared_load_lanes, other.shared_load_lanes);
  add(shared_store_lanes, other.shared_store_lanes);
  add(shared_async_lanes, other.shared_async_lanes);
  for (const auto sum : {&Counters::skipped,
                         &Counters::branches,
                         &Counters::divergent_branches,
                         &Counters::barriers,
                         &Counters::mma_flops,
                         &Counters::global_load_bytes,
                         &Counters::global_store_bytes,
                         &Counters::global_atomic_bytes,
                         &Counters::global_load_sectors,
                         &Counters::global_store_sectors,
                         &Counters::global_atomic_sectors,
                         &Counters::shared_load_wavefronts,
                         &Counters::shared_store_wavefronts,
                         &Counters::shared_async_wavefronts,
                         &Counters::shared_load_ideal,
                         &Counters::shared_store_ideal,
                         &Counters::shared_async_ideal,
                         &Counters::ldmatrix,
                         &Counters::ldmatrix_wavefronts,
                         &Counters::ldmatrix_ideal,
                         &Counters::stmatrix,
                         &Counters::stmatrix_wavefronts,
                         &Counters::stmatrix_ideal,
                         &Counters::blocks})
    this->*sum += other.*sum;
  for (const auto& [shape, count] : other.mma) mma[shape] += count;
  worst_bank_conflict = std::max(worst_bank_conflict, other.worst_bank_conflict);
  return *this;
}

}  // namespace emulator
