#include "tests/cuda_emulator/machine/decode.h"

namespace emulator {

void add_warp(Decoders&) {}

}  // namespace emulator
