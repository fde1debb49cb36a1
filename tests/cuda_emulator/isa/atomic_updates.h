#pragma once

// The operations of atom and red on the bytes of one location.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/cuda_emulator/ptx/module.h"

namespace emulator {

enum class Atomic : uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// One element: the new value from the old one and the operands. cas stores where it compares equal
// and leaves `fresh` alone elsewhere, with false.
using Element = bool (*)(const std::byte* old, const std::byte* b, const std::byte* c,
                         std::byte* fresh);

// Null where the ISA has no such operation on that type. `flush`: subnormal f32 operands and
// results are zero, as for additions in global memory.
Element element_of(Atomic operation, ptx::Type type, bool flush);

}  // namespace emulator
