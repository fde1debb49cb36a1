#include "tests/cuda_emulator/machine/decode.h"

namespace emulator {

void add_convert(Decoders&) {}

}  // namespace emulator
