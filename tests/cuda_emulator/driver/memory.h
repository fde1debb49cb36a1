#pragma once

#include "tests/cuda_emulator/driver/driver.h"

namespace emulator::driver {

// Memory of the current context (that of pools is of none); OUT_OF_MEMORY.
const Allocation& allocate(Call& call, uint64_t bytes, Origin origin, unsigned flags = 0);
// Frees what `allocate` gave or a call registered; INVALID_VALUE where no allocation starts there.
void release(Driver& driver, uint64_t address);
// Takes it out of the table alone, for memory that a stream will free.
Origin forget(Driver& driver, uint64_t address);
// Whether the bytes lie within one live allocation or global variable.
bool device_holds(Call& call, uint64_t address, uint64_t bytes);

}  // namespace emulator::driver
