#pragma once

// Conversions between numbers: what the files of cvt share.

#include "tests/cuda_emulator/isa/formats.h"
#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

// What a cvt with one scalar source does, kept as the Op's extra.
struct Conversion {
  ptx::Type to = ptx::Type::none, from = ptx::Type::none;
  Rounding rounding = Rounding::nearest;
  bool integral = false;  // to a whole number: .rni and the like
  bool ftz = false, sat = false, relu = false, satfinite = false;
  bool plain = false;  // nearest and none of the above
  // Bytes of the registers, which may be wider than integer types.
  unsigned to_register = 0, from_register = 0;
  // Converts cells of `from` into cells of `to`.
  void (*convert)(const Conversion&, Mask lanes, const void* from, void* to) = nullptr;
};

// The function for two scalar types; null where there is none.
decltype(Conversion::convert) conversion(ptx::Type to, ptx::Type from);

// Nearest or towards zero, with .relu and .satfinite: of the formats with infinities.
uint16_t to_half(double value, Rounding rounding, bool relu, bool satfinite);
uint16_t to_bfloat(double value, Rounding rounding, bool relu, bool satfinite);

// Where the instruction has a packed or small format, its Op; these are decoded on their own.
bool is_packed_conversion(const ptx::Instruction& instruction);
Op decode_packed_conversion(Decoding& decoding);
Op decode_cvt_pack(Decoding& decoding);
void add_generic_addresses(Decoders& decoders);  // cvta isspacep

}  // namespace emulator
