// set, setp, selp and slct.

#include "tests/cuda_emulator/isa/compare.h"

#include <cmath>

#include "tests/cuda_emulator/isa/formats.h"
#include "tests/cuda_emulator/isa/predicates.h"

namespace emulator {

using ptx::Type;

Relation take_relation(const Decoding& decoding, Modifiers& modifiers, bool* unsigned_only) {
  const int found = modifiers.take_one({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu",
                                        "leu", "gtu", "geu", "num", "nan", "lo", "ls", "hi", "hs"});
  if (found < 0) decoding.fail("needs a comparison");
  *unsigned_only = found >= 14;
  // lo ls hi hs are lt le gt ge.
  return static_cast<Relation>(found >= 14 ? found - 12 : found);
}

void check_relation(const Decoding& decoding, Relation relation, bool unsigned_only, Type type) {
  const bool untyped = type == Type::b16 || type == Type::b32 || type == Type::b64;
  const bool number = ptx::is_float(type);
  const bool allowed = unsigned_only              ? !untyped && !number && !ptx::is_signed(type)
                       : relation <= Relation::ne ? true
                       : relation <= Relation::ge ? !untyped
                                                  : number;
  if (!allowed) decoding.fail("values of that type are not compared so");
}

namespace {

template <class T>
T flushed(T value, bool flush) {
  return flush && std::fabs(value) < 0x1p-126f ? T{0} : value;
}
// Zeros of either sign compare alike.
float half_operand(uint16_t bits, bool flush) {
  const float value = half_value(bits);
  return flush && std::fabs(value) < 0x1p-14f ? 0.0f : value;
}

}  // namespace

Mask compare_lanes(Relation relation, Type type, bool flush, Mask lanes, const Registers& registers,
                   Arg a, Arg b) {
  const auto as = [&]<class T>(T, auto value) {
    return compare_lanes(relation, lanes, registers.in<Cell<T>>(a), registers.in<Cell<T>>(b),
                         value);
  };
  const auto plain = [&]<class T>(T zero) {
    return as(zero, [](Cell<T> cell) { return from_cell<T>(cell); });
  };
  switch (type) {
    case Type::b16:
    case Type::u16: return plain(uint16_t{});
    case Type::b32:
    case Type::u32: return plain(uint32_t{});
    case Type::b64:
    case Type::u64: return plain(uint64_t{});
    case Type::s16: return plain(int16_t{});
    case Type::s32: return plain(int32_t{});
    case Type::s64: return plain(int64_t{});
    case Type::f64: return plain(double{});
    case Type::f32:
      if (!flush) return plain(float{});
      return as(float{}, [](uint32_t cell) { return flushed(from_cell<float>(cell), true); });
    case Type::f16:
      return as(float{}, [flush](uint32_t cell) {
        return half_operand(static_cast<uint16_t>(cell), flush);
      });
    case Type::bf16:
      return as(float{}, [](uint32_t cell) { return bfloat_value(static_cast<uint16_t>(cell)); });
    default: return 0;
  }
}

Mask compare_halves(Relation relation, Type type, int half, bool flush, Mask lanes,
                    const Registers& registers, Arg a, Arg b) {
  const int shift = 16 * half;
  const uint32_t *x = registers.in<uint32_t>(a), *y = registers.in<uint32_t>(b);
  if (type == Type::f16x2) {
    return compare_lanes(relation, lanes, x, y, [=](uint32_t cell) {
      return half_operand(static_cast<uint16_t>(cell >> shift), flush);
    });
  }
  return compare_lanes(relation, lanes, x, y, [=](uint32_t cell) {
    return bfloat_value(static_cast<uint16_t>(cell >> shift));
  });
}

namespace {

// What an Op of set and setp keeps in mode[0] and mode[1].
struct Comparison {
  Relation relation = Relation::eq;
  Combination combination = Combination::none;
  bool flush = false;
  Type type = Type::none;

  explicit Comparison(const Op& op)
      : relation(static_cast<Relation>(op.mode[0] & 0xff)),
        combination(static_cast<Combination>(op.mode[0] >> 8 & 0xff)),
        flush(op.mode[0] >> 16 & 1),
        type(static_cast<Type>(op.mode[1])) {}
  Comparison() = default;
  void keep(Op& op) const {
    op.mode[0] = static_cast<uint32_t>(relation) | static_cast<uint32_t>(combination) << 8 |
                 (flush ? 1u << 16 : 0);
    op.mode[1] = static_cast<uint32_t>(type);
  }
  bool packed() const { return type == Type::f16x2 || type == Type::bf16x2; }
};

// The comparison of the lanes alone, of a half for packed types.
Predicate compared(const Comparison& how, const Registers& registers, Mask lanes, Arg a, Arg b,
                   int half = 0) {
  const uint8_t *x = registers.defined_in(a), *y = registers.defined_in(b);
  if (!how.packed()) {
    return {compare_lanes(how.relation, how.type, how.flush, lanes, registers, a, b),
            defined_mask(lanes, x, y)};
  }
  const unsigned bytes = 3u << (2 * half);
  return {compare_halves(how.relation, how.type, half, how.flush, lanes, registers, a, b),
          mask_of(lanes, [&](int lane) { return (x[lane] & y[lane] & bytes) == bytes; })};
}

// args: p, q, a, b and the combined predicate.
void run_setp(Warp& warp, const Op& op, Mask lanes) {
  const Comparison how(op);
  const Registers registers = warp.registers;
  const Predicate t = compared(how, registers, lanes, op.args[2], op.args[3]);
  const Predicate complement = how.packed()
                                   ? compared(how, registers, lanes, op.args[2], op.args[3], 1)
                                   : Predicate{~t.value, t.defined};
  const Predicate c =
      how.combination == Combination::none ? Predicate{} : read_predicate(registers, op.args[4]);
  const Predicate p = combine(how.combination, t, c), q = combine(how.combination, complement, c);
  registers.set_predicate(op.args[0], lanes, p.value, p.defined);
  registers.set_predicate(op.args[1], lanes, q.value, q.defined);
}

// The common case: one destination, nothing combined.
void run_setp_alone(Warp& warp, const Op& op, Mask lanes) {
  const Predicate p = compared(Comparison(op), warp.registers, lanes, op.args[2], op.args[3]);
  warp.registers.set_predicate(op.args[0], lanes, p.value, p.defined);
}

Comparison take_comparison(const Decoding& decoding, Modifiers& modifiers, bool* unsigned_only) {
  Comparison how;
  how.relation = take_relation(decoding, modifiers, unsigned_only);
  how.combination = take_combination(modifiers);
  how.flush = modifiers.take("ftz");
  return how;
}

void check_comparison(const Decoding& decoding, const Comparison& how, bool unsigned_only) {
  check_relation(decoding, how.relation, unsigned_only, how.type);
  if (how.flush && how.type != Type::f32 && how.type != Type::f16 && how.type != Type::f16x2) {
    decoding.fail(".ftz is for f32, f16 and f16x2");
  }
  if (how.type == Type::f16 || how.type == Type::f16x2) require(decoding, 42, 53);
  if (how.type == Type::bf16 || how.type == Type::bf16x2) require(decoding, 78, 90);
}

// Operands of packed types are any registers of 32 bits.
Type operand_type(Type type) {
  return type == Type::f16x2 || type == Type::bf16x2 ? Type::b32 : type;
}

bool is_format(Type type) {
  return type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2;
}
void check_formats(const Decoding& decoding, Type type) {
  if (!is_format(type)) return;
  require_format(decoding, 1, type);
  require_format(decoding, 2, type);
}

Op decode_setp(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  bool unsigned_only = false;
  Comparison how = take_comparison(decoding, modifiers, &unsigned_only);
  how.type = modifiers.type({Type::b16, Type::b32, Type::b64, Type::u16, Type::u32, Type::u64,
                             Type::s16, Type::s32, Type::s64, Type::f32, Type::f64, Type::f16,
                             Type::f16x2, Type::bf16, Type::bf16x2});
  modifiers.end();
  check_comparison(decoding, how, unsigned_only);
  decoding.expect_operands(how.combination == Combination::none ? 3 : 4);
  const ptx::Operand& target = decoding.instruction->operands[0];
  const bool half = how.type == Type::f16 || how.type == Type::bf16;
  if (how.packed() && !target.second) decoding.fail("needs two destinations p|q");
  if (half && target.second) decoding.fail("halves have one destination");
  if (target.second && target.kind == ptx::Operand::Kind::sink &&
      target.second->kind == ptx::Operand::Kind::sink) {
    decoding.fail("nothing is written");
  }
  std::vector<Arg> args{decoding.target(0, Type::pred, false, target.second != nullptr)};
  args.push_back(target.second ? decoding.target(*target.second, Type::pred, false, true) : Arg{});
  for (size_t i = 1; i <= 2; ++i) args.push_back(decoding.source(i, operand_type(how.type)));
  const bool alone = !target.second && how.combination == Combination::none;
  if (how.combination != Combination::none) args.push_back(decoding.source(3, Type::pred));
  check_formats(decoding, how.type);
  Op op = decoding.make(Class::compare, alone ? run_setp_alone : run_setp, args);
  how.keep(op);
  return op;
}

// args: d, a, b and the combined predicate; imm[0] is what true is, of one half for packed types.
void run_set(Warp& warp, const Op& op, Mask lanes) {
  const Comparison how(op);
  const Registers registers = warp.registers;
  const Predicate c =
      how.combination == Combination::none ? Predicate{} : read_predicate(registers, op.args[3]);
  uint32_t value[kLanes] = {};
  uint8_t defined[kLanes] = {};
  for (int half = 0; half < (how.packed() ? 2 : 1); ++half) {
    const Predicate t =
        combine(how.combination, compared(how, registers, lanes, op.args[1], op.args[2], half), c);
    const auto truth = static_cast<uint32_t>(op.imm[0]) << (16 * half);
    const unsigned bytes = how.packed() ? half ? 0xfc : 3 : 0xff;
    each_lane(lanes, [&](int lane) {
      if (t.value >> lane & 1) value[lane] |= truth;
      if (t.defined >> lane & 1) defined[lane] = static_cast<uint8_t>(defined[lane] | bytes);
    });
  }
  uint32_t* to = registers.out<uint32_t>(op.args[0]);
  uint8_t* to_defined = registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[lane] = value[lane];
    to_defined[lane] = static_cast<uint8_t>(defined[lane] | op.imm[1]);
  });
}

struct Truth {
  Type type;
  uint32_t value, packed_value;
  uint8_t absent;
};
// What set writes for true by the type of its destination.
const Truth kTruths[] = {
    {Type::u32, 0xffffffff, 0xffff, 0xf0}, {Type::s32, 0xffffffff, 0xffff, 0xf0},
    {Type::f32, 0x3f800000, 0, 0xf0},      {Type::u16, 0xffff, 0, 0xfc},
    {Type::s16, 0xffff, 0, 0xfc},          {Type::f16, 0x3c00, 0, 0xfc},
    {Type::bf16, 0x3f80, 0, 0xfc},         {Type::f16x2, 0, 0x3c00, 0xf0},
    {Type::bf16x2, 0, 0x3f80, 0xf0}};

// Whether set compares values of `from` into `to`.
bool set_types_fit(Type to, Type from) {
  const bool half = from == Type::f16, bfloat = from == Type::bf16;
  switch (to) {
    case Type::u32:
    case Type::s32: return true;
    case Type::f32: return !half && !bfloat && from != Type::f16x2 && from != Type::bf16x2;
    case Type::u16:
    case Type::s16: return half || bfloat;
    case Type::f16: return !bfloat && from != Type::f16x2 && from != Type::bf16x2;
    case Type::bf16: return from != Type::f16x2 && from != Type::bf16x2;
    default: return to == from;
  }
}

Op decode_set(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  bool unsigned_only = false;
  Comparison how = take_comparison(decoding, modifiers, &unsigned_only);
  const Type to = modifiers.type({Type::u32, Type::s32, Type::f32, Type::u16, Type::s16, Type::f16,
                                  Type::bf16, Type::f16x2, Type::bf16x2});
  how.type = modifiers.type({Type::b16, Type::b32, Type::b64, Type::u16, Type::u32, Type::u64,
                             Type::s16, Type::s32, Type::s64, Type::f32, Type::f64, Type::f16,
                             Type::f16x2, Type::bf16, Type::bf16x2});
  modifiers.end();
  if (!set_types_fit(to, how.type)) decoding.fail("set has no such pair of types");
  check_comparison(decoding, how, unsigned_only);
  if (how.flush && to == Type::bf16) decoding.fail("bf16 has no .ftz");
  if (to == Type::f16 || to == Type::f16x2) require(decoding, 42, 53);
  if (to == Type::bf16 || to == Type::bf16x2) require(decoding, 78, 90);
  decoding.expect_operands(how.combination == Combination::none ? 3 : 4);
  std::vector<Arg> args{decoding.target(0, operand_type(to))};
  for (size_t i = 1; i <= 2; ++i) args.push_back(decoding.source(i, operand_type(how.type)));
  if (how.combination != Combination::none) args.push_back(decoding.source(3, Type::pred));
  check_formats(decoding, how.type);
  if (is_format(to)) require_format(decoding, 0, to);
  Op op = decoding.make(Class::compare, run_set, args);
  how.keep(op);
  for (const Truth& truth : kTruths) {
    if (truth.type != to) continue;
    op.imm[0] = how.packed() ? truth.packed_value : truth.value;
    op.imm[1] = truth.absent;
  }
  return op;
}

// d = chosen(lane) ? a : b with the bytes of what was chosen; undefined where the choice is.
template <class T, class Chosen>
void select(const Registers& registers, const Op& op, Mask lanes, Mask defined, Chosen chosen) {
  const T *a = registers.in<T>(op.args[1]), *b = registers.in<T>(op.args[2]);
  const uint8_t *a_defined = registers.defined_in(op.args[1]),
                *b_defined = registers.defined_in(op.args[2]);
  T* to = registers.out<T>(op.args[0]);
  uint8_t* to_defined = registers.defined_out(op.args[0]);
  const auto absent = static_cast<uint8_t>(op.imm[0]);
  each_lane(lanes, [&](int lane) {
    const bool first = chosen(lane);
    to[lane] = first ? a[lane] : b[lane];
    const uint8_t bytes = first ? a_defined[lane] : b_defined[lane];
    to_defined[lane] = defined >> lane & 1 ? bytes : absent;
  });
}

template <class T>
void run_selp(Warp& warp, const Op& op, Mask lanes) {
  const Mask choice = warp.registers.predicate(op.args[3]);
  select<T>(warp.registers, op, lanes, warp.registers.predicate_defined(op.args[3]),
            [choice](int lane) { return (choice >> lane & 1) != 0; });
}

// -0 is not less than 0, and so is a negative subnormal number that is flushed.
template <class T>
void run_slct(Warp& warp, const Op& op, Mask lanes) {
  const Registers registers = warp.registers;
  const uint32_t* c = registers.in<uint32_t>(op.args[3]);
  const Mask defined = defined_mask(lanes, registers.defined_in(op.args[3]));
  const auto type = static_cast<Type>(op.mode[1]);
  const bool flush = op.mode[0];
  if (type == Type::s32) {
    select<T>(registers, op, lanes, defined,
              [c](int lane) { return static_cast<int32_t>(c[lane]) >= 0; });
  } else {
    select<T>(registers, op, lanes, defined,
              [c, flush](int lane) { return flushed(from_cell<float>(c[lane]), flush) >= 0; });
  }
}

constexpr auto kSelected = {Type::b16, Type::b32, Type::b64, Type::u16, Type::u32, Type::u64,
                            Type::s16, Type::s32, Type::s64, Type::f32, Type::f64};

int64_t absent_bytes(Type type) { return 0xff & (0xff << ptx::bytes_of(type)); }

Op decode_selp(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type(kSelected);
  modifiers.end();
  Op op = make_lanewise(decoding, Class::compare,
                        ptx::bytes_of(type) == 8 ? run_selp<uint64_t> : run_selp<uint32_t>, type,
                        {type, type, Type::pred});
  op.imm[0] = absent_bytes(type);
  return op;
}

Op decode_slct(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const bool flush = modifiers.take("ftz");
  const Type type = modifiers.type(kSelected);
  const Type choice = flush ? modifiers.type({Type::f32}) : modifiers.type({Type::s32, Type::f32});
  modifiers.end();
  Op op = make_lanewise(decoding, Class::compare,
                        ptx::bytes_of(type) == 8 ? run_slct<uint64_t> : run_slct<uint32_t>, type,
                        {type, type, choice});
  op.mode[0] = flush;
  op.mode[1] = static_cast<uint32_t>(choice);
  op.imm[0] = absent_bytes(type);
  return op;
}

}  // namespace

void add_compare(Decoders& decoders) {
  decoders.add("setp", decode_setp);
  decoders.add("set", decode_set);
  decoders.add("selp", decode_selp);
  decoders.add("slct", decode_slct);
}

}  // namespace emulator
