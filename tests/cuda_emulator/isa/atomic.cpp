// atom, red, membar, fence.

#include "tests/cuda_emulator/isa/memory_forms.h"

namespace emulator {

void add_atomic(Decoders&) {}

}  // namespace emulator
