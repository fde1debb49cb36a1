#pragma once

// Parts of add_integer, a file each.

#include "tests/cuda_emulator/machine/decode.h"

namespace emulator {

void add_bits(Decoders&);   // popc clz bfind fns brev bfe bfi bmsk szext
void add_carry(Decoders&);  // addc subc madc
void add_video(Decoders&);  // vadd2 vadd4 and the like
// The .cc forms of add, sub and mad, once `cc` was taken.
Op decode_add_carry(Decoding& decoding, Modifiers& modifiers);
Op decode_sub_carry(Decoding& decoding, Modifiers& modifiers);
Op decode_mad_carry(Decoding& decoding, Modifiers& modifiers, bool high);

}  // namespace emulator
