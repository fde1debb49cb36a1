#pragma once

// The generic address space: which window an address lies in (cvta, isspacep, generic accesses).

#include "tests/cuda_emulator/machine/memory.h"

namespace emulator {

// Generic address of offset 0 of a space; 0 for global, whose addresses are generic as they stand.
inline constexpr uint64_t window_of(ptx::Space space) {
  switch (space) {
    case ptx::Space::shared: return kSharedWindow;
    case ptx::Space::local: return kLocalWindow;
    case ptx::Space::constant: return kConstantWindow;
    case ptx::Space::param: return kParamWindow;
    default: return 0;
  }
}

// The space of a generic address; global for everything outside of the windows.
inline constexpr ptx::Space space_of(uint64_t address) {
  if (address - kSharedWindow >= 4 * kWindowBytes) return ptx::Space::global;
  switch ((address - kSharedWindow) / kWindowBytes) {
    case 0: return ptx::Space::shared;
    case 1: return ptx::Space::local;
    case 2: return ptx::Space::constant;
    default: return ptx::Space::param;
  }
}

}  // namespace emulator
