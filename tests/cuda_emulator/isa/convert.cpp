// cvt between scalar types.

#include "tests/cuda_emulator/isa/convert.h"

#include <algorithm>

namespace emulator {

using ptx::Type;

namespace {

constexpr auto kScalars = {Type::u8,  Type::u16, Type::u32, Type::u64,  Type::s8,  Type::s16,
                           Type::s32, Type::s64, Type::f16, Type::bf16, Type::f32, Type::f64};

bool is_integer(Type type) { return !ptx::is_float(type); }
bool is_narrow(Type type) { return type == Type::f16 || type == Type::bf16; }

// Of the bytes of the result of an integer conversion, which are those of the source, copies of its
// sign or zeros.
uint8_t integer_defined(const Conversion& how, uint8_t from) {
  const unsigned from_bytes = ptx::bytes_of(how.from), to_bytes = ptx::bytes_of(how.to);
  unsigned result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned of_to = std::min(i, to_bytes - 1);  // the byte of the result that i extends
    const bool zero = i >= to_bytes && !ptx::is_signed(how.to);
    const bool extended = of_to >= from_bytes;
    const unsigned of_from = std::min(of_to, from_bytes - 1);
    const bool defined = zero || (extended && !ptx::is_signed(how.from)) || (from >> of_from & 1) ||
                         i >= how.to_register;
    result |= defined ? 1u << i : 0;
  }
  return static_cast<uint8_t>(result);
}

void define_conversion(const Conversion& how, const Registers& registers, const Op& op,
                       Mask lanes) {
  const uint8_t* from = registers.defined_in(op.args[1]);
  uint8_t* to = registers.defined_out(op.args[0]);
  if (all_defined(from)) {
    each_lane(lanes, [&](int lane) { to[lane] = 0xff; });
    return;
  }
  const bool bytewise = is_integer(how.to) && is_integer(how.from) && !how.sat;
  const unsigned bytes = (1u << ptx::bytes_of(how.from)) - 1;
  const auto absent = static_cast<uint8_t>(0xff << how.to_register);
  each_lane(lanes, [&](int lane) {
    to[lane] = bytewise                        ? integer_defined(how, from[lane])
               : (from[lane] & bytes) == bytes ? 0xff
                                               : absent;
  });
}

// Cells of a result that is narrower than its register: an integer, with its sign or zeros above.
void extend(const Conversion& how, Mask lanes, const uint32_t* from, void* to) {
  const int shift = 32 - 8 * static_cast<int>(ptx::bytes_of(how.to));
  const bool is_signed = ptx::is_signed(how.to);
  const auto extended = [&](int lane) -> int64_t {
    const uint32_t high = from[lane] << shift;
    return is_signed ? int64_t{static_cast<int32_t>(high) >> shift} : int64_t{high >> shift};
  };
  if (how.to_register == 8) {
    auto* out = static_cast<uint64_t*>(to);
    each_lane(lanes, [&](int lane) { out[lane] = static_cast<uint64_t>(extended(lane)); });
  } else {
    const uint32_t mask = how.to_register == 2 ? 0xffff : ~0u;
    auto* out = static_cast<uint32_t*>(to);
    each_lane(lanes, [&](int lane) { out[lane] = static_cast<uint32_t>(extended(lane)) & mask; });
  }
}

void run_cvt(Warp& warp, const Op& op, Mask lanes) {
  const auto& how = *static_cast<const Conversion*>(op.extra);
  const Registers registers = warp.registers;
  uint32_t narrow_from[kLanes], narrow_to[kLanes];
  const void* from = registers.in<uint32_t>(op.args[1]);
  if (how.from_register == 8 && ptx::bytes_of(how.from) < 8) {
    const auto* wide = registers.in<uint64_t>(op.args[1]);
    each_lane(lanes, [&](int lane) { narrow_from[lane] = static_cast<uint32_t>(wide[lane]); });
    from = narrow_from;
  }
  define_conversion(how, registers, op, lanes);
  void* to = registers.out<uint32_t>(op.args[0]);
  if (how.to_register == ptx::bytes_of(how.to)) {
    how.convert(how, lanes, from, to);
  } else {
    how.convert(how, lanes, from, narrow_to);
    extend(how, lanes, narrow_to, to);
  }
}

// {.rnd}{.ftz}{.sat} or .rn and .rz with {.relu}{.satfinite}, in the order of the ISA or with the
// last two exchanged.
void take_modifiers(Modifiers& modifiers, Conversion& how, bool* has_rounding) {
  constexpr Rounding roundings[] = {Rounding::nearest, Rounding::zero, Rounding::down,
                                    Rounding::up};
  const int whole = modifiers.take_one({"rni", "rzi", "rmi", "rpi"});
  const int rounding = whole >= 0 ? -1 : modifiers.take_one({"rn", "rz", "rm", "rp"});
  how.integral = whole >= 0;
  how.rounding = roundings[std::max({whole, rounding, 0})];
  *has_rounding = rounding >= 0;
  how.ftz = modifiers.take("ftz");
  how.sat = modifiers.take("sat");
  how.satfinite = modifiers.take("satfinite");
  how.relu = modifiers.take("relu");
  how.satfinite = how.satfinite || modifiers.take("satfinite");
}

// Whether every value of `from` is one of `to`, for integers.
bool includes(Type to, Type from) {
  const unsigned wide = ptx::bytes_of(to), narrow = ptx::bytes_of(from);
  if (ptx::is_signed(to) == ptx::is_signed(from)) return wide >= narrow;
  return ptx::is_signed(to) && wide > narrow;
}

// Whether the conversion between floats may lose digits, and so needs a rounding.
bool loses(Type to, Type from) {
  if (to == from) return false;
  if (to == Type::f64) return false;
  if (to == Type::f32) return from == Type::f64;
  return true;
}

void check_rounding(const Decoding& decoding, const Conversion& how, bool has_rounding) {
  const bool to_integer = is_integer(how.to), from_integer = is_integer(how.from);
  if (how.integral) {
    if (from_integer || (!to_integer && how.to != how.from)) {
      decoding.fail("integer rounding is for floats to integers or to their own type");
    }
  } else if (to_integer && !from_integer) {
    decoding.fail("needs .rni, .rzi, .rmi or .rpi");
  }
  const bool needed = !to_integer && (from_integer || loses(how.to, how.from));
  if (needed && !has_rounding) decoding.fail("needs .rn, .rz, .rm or .rp");
  const bool exact_bfloat = how.from == Type::bf16 && (how.to == Type::f32 || how.to == Type::f64);
  if (has_rounding && !needed && !exact_bfloat) {
    decoding.fail("a rounding where nothing is rounded");
  }
}

void check_saturation(const Decoding& decoding, const Conversion& how) {
  if (how.ftz && how.to != Type::f32 && how.from != Type::f32) decoding.fail(".ftz is for f32");
  if (how.sat) {
    if (how.to == Type::bf16 || how.from == Type::bf16) decoding.fail("bf16 has no .sat");
    if (is_integer(how.to) && is_integer(how.from) && includes(how.to, how.from)) {
      decoding.fail(".sat where everything fits");
    }
  }
  if (!how.relu && !how.satfinite) return;
  const bool allowed = is_narrow(how.to) && how.from == Type::f32 && !how.ftz && !how.sat &&
                       (how.rounding == Rounding::nearest || how.rounding == Rounding::zero);
  if (!allowed) decoding.fail(".relu and .satfinite do not go with this");
  if (how.relu) require(decoding, 70, 80);
  if (how.satfinite) require(decoding, 81, 0);
}

void check_architecture(const Decoding& decoding, const Conversion& how) {
  if (how.to == Type::f16 || how.from == Type::f16) require(decoding, 42, 53);
  if (how.to != Type::bf16 && how.from != Type::bf16) return;
  if (how.to == Type::bf16 && how.from == Type::f32) {
    require(decoding, 70, 80);
  } else if (how.to == Type::f32 && !how.ftz) {
    require(decoding, 71, 80);
  } else {
    require(decoding, 78, 90);
  }
}

// Bytes of an operand's register; of the type itself for literals.
unsigned register_bytes(const Decoding& decoding, size_t i, Type type) {
  const Type of = decoding.register_type(decoding.instruction->operands[i]);
  return of == Type::none ? ptx::bytes_of(type) : ptx::bytes_of(of);
}

Op decode_scalar(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  auto how = std::make_shared<Conversion>();
  bool has_rounding = false;
  take_modifiers(modifiers, *how, &has_rounding);
  how->to = modifiers.type(kScalars);
  how->from = modifiers.type(kScalars);
  modifiers.end();
  check_rounding(decoding, *how, has_rounding);
  check_saturation(decoding, *how);
  check_architecture(decoding, *how);
  decoding.expect_operands(2);
  how->convert = conversion(how->to, how->from);
  how->plain = !how->integral && !how->ftz && !how->sat && how->rounding == Rounding::nearest;
  // Integers may have wider registers, but for those of eight bits from and to bf16.
  const bool bfloat = how->to == Type::bf16 || how->from == Type::bf16;
  const auto relaxed = [&](Type type) {
    return is_integer(type) && !(bfloat && ptx::bytes_of(type) == 1);
  };
  const std::vector<Arg> args{decoding.target(0, how->to, relaxed(how->to)),
                              decoding.source(1, how->from, relaxed(how->from))};
  if (is_narrow(how->to)) require_format(decoding, 0, how->to);
  if (is_narrow(how->from)) require_format(decoding, 1, how->from);
  how->to_register = register_bytes(decoding, 0, how->to);
  how->from_register = register_bytes(decoding, 1, how->from);
  Op op = decoding.make(Class::convert, run_cvt, args);
  op.extra = decoding.keep(std::shared_ptr<const void>(how));
  return op;
}

Op decode_cvt(Decoding& decoding) {
  const ptx::Instruction& instruction = *decoding.instruction;
  if (!instruction.modifiers.empty() && instruction.modifiers[0] == "pack") {
    return decode_cvt_pack(decoding);
  }
  return is_packed_conversion(instruction) ? decode_packed_conversion(decoding)
                                           : decode_scalar(decoding);
}

}  // namespace

void add_convert(Decoders& decoders) {
  decoders.add("cvt", decode_cvt);
  add_generic_addresses(decoders);
}

}  // namespace emulator
