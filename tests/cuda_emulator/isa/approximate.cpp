// Approximate functions of f32 and f64.

#include "tests/cuda_emulator/isa/floating.h"

namespace emulator {

Op decode_div_approximate(Decoding& decoding, Modifiers&, bool) {
  decoding.fail("approximate division is not known");
}
Op decode_rcp_approximate(Decoding& decoding, Modifiers&) {
  decoding.fail("approximate reciprocals are not known");
}
Op decode_sqrt_approximate(Decoding& decoding, Modifiers&) {
  decoding.fail("approximate roots are not known");
}

void add_approximate(Decoders&) {}

}  // namespace emulator
