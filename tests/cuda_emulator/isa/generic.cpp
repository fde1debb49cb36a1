// Generic addresses: cvta and isspacep, by the windows of spaces.h. A cluster is one block, so its
// shared memory is the block's.

#include "tests/cuda_emulator/isa/convert.h"
#include "tests/cuda_emulator/machine/spaces.h"

namespace emulator {

using ptx::Type;

namespace {

// Takes .const, .global, .local, .shared{::cta, ::cluster} or .param{::entry}.
ptx::Space take_space(const Decoding& decoding, Modifiers& modifiers) {
  constexpr ptx::Space spaces[] = {ptx::Space::constant, ptx::Space::global, ptx::Space::local,
                                   ptx::Space::shared,   ptx::Space::shared, ptx::Space::shared,
                                   ptx::Space::param,    ptx::Space::param};
  const int found = modifiers.take_one({"const", "global", "local", "shared", "shared::cta",
                                        "shared::cluster", "param", "param::entry"});
  if (found < 0) decoding.fail("needs a state space");
  if (found == 4 || found == 5) require(decoding, 78, found == 5 ? 90 : 30);
  if (found >= 6) require(decoding, 77, 70);
  if (found == 7) require(decoding, 83, 70);
  return spaces[found];
}

// The window of parameters is part of the global one.
bool is_in(uint64_t address, ptx::Space space) {
  const ptx::Space found = space_of(address);
  return found == space || (space == ptx::Space::global && found == ptx::Space::param);
}

// Error where the operand is a variable of another space, as with an address that names one.
void check_space(Decoding& decoding, ptx::Space space) {
  const ptx::Operand& source = decoding.instruction->operands[1];
  if (source.kind != ptx::Operand::Kind::variable) return;
  ptx::Operand address;
  address.kind = ptx::Operand::Kind::address;
  address.elements.push_back(source);
  decoding.address(address, space);
}

Op decode_cvta(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool to = modifiers.take("to");
  const ptx::Space space = take_space(decoding, modifiers);
  modifiers.type({Type::u64});
  modifiers.end();
  const Run run =
      lanewise([](const Op& op, uint64_t a) { return a + static_cast<uint64_t>(op.imm[0]); });
  Op op = make_lanewise(decoding, Class::convert, run, Type::u64, {Type::u64});
  if (to && decoding.instruction->operands[1].kind != ptx::Operand::Kind::reg) {
    decoding.fail("a generic address comes in a register");
  }
  check_space(decoding, space);
  op.imm[0] = static_cast<int64_t>(to ? 0 - window_of(space) : window_of(space));
  return op;
}

void run_isspacep(Warp& warp, const Op& op, Mask lanes) {
  const Registers registers = warp.registers;
  const uint64_t* address = registers.in<uint64_t>(op.args[1]);
  const auto space = static_cast<ptx::Space>(op.mode[0]);
  const Mask value = mask_of(lanes, [&](int lane) { return is_in(address[lane], space); });
  registers.set_predicate(op.args[0], lanes, value,
                          defined_mask(lanes, registers.defined_in(op.args[1])));
}

Op decode_isspacep(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const ptx::Space space = take_space(decoding, modifiers);
  modifiers.end();
  Op op = make_lanewise(decoding, Class::convert, run_isspacep, Type::pred, {Type::u64});
  op.mode[0] = static_cast<uint32_t>(space);
  return op;
}

// Signed values of `bits` into `bits` with saturation.
uint32_t saturated(int32_t value, int bits, bool is_signed) {
  const int64_t largest = (int64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  const int64_t least = is_signed ? -largest - 1 : 0;
  const int64_t result = value < least ? least : value > largest ? largest : value;
  return static_cast<uint32_t>(result) & ((1u << bits) - 1);
}

struct PackedType {
  const char* name;
  int bits;
  bool is_signed;
};
constexpr PackedType kPackedTypes[] = {{"u16", 16, false}, {"s16", 16, true}, {"u8", 8, false},
                                       {"s8", 8, true},    {"u4", 4, false},  {"s4", 4, true},
                                       {"u2", 2, false},   {"s2", 2, true}};

uint32_t pack(const PackedType& type, int32_t a, int32_t b) {
  return saturated(a, type.bits, type.is_signed) << type.bits |
         saturated(b, type.bits, type.is_signed);
}

}  // namespace

// d = {a, b} saturated, below it c shifted up for types of eight bits and less.
Op decode_cvt_pack(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  modifiers.take("pack");
  if (!modifiers.take("sat")) decoding.fail("needs .sat");
  const int found = modifiers.take_one({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  if (found < 0) decoding.fail("needs a type of 16 bits or less");
  modifiers.type({Type::s32});
  const bool narrow = kPackedTypes[found].bits < 16;
  if (narrow) modifiers.type({Type::b32});
  modifiers.end();
  require(decoding, 65, kPackedTypes[found].bits < 8 ? 75 : 72);
  const Run run = narrow ? lanewise([](const Op& op, int32_t a, int32_t b, uint32_t c) {
    const PackedType& type = kPackedTypes[op.mode[0]];
    return pack(type, a, b) | c << (2 * type.bits);
  })
                         : lanewise([](const Op& op, int32_t a, int32_t b) {
                             return pack(kPackedTypes[op.mode[0]], a, b);
                           });
  Op op = narrow ? make_lanewise(decoding, Class::convert, run, Type::b32,
                                 {Type::s32, Type::s32, Type::b32})
                 : make_lanewise(decoding, Class::convert, run, Type::b32, {Type::s32, Type::s32});
  op.mode[0] = static_cast<uint32_t>(found);
  return op;
}

void add_generic_addresses(Decoders& decoders) {
  decoders.add("cvta", decode_cvta);
  decoders.add("isspacep", decode_isspacep);
}

}  // namespace emulator
