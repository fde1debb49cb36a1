// Logic and shifts. A bit of a result is defined where its value does not depend on an undefined
// one.

#include <algorithm>
#include <array>
#include <bit>

#include "tests/cuda_emulator/isa/lanewise.h"
#include "tests/cuda_emulator/isa/predicates.h"

namespace emulator {

using ptx::Type;

namespace {

struct And {
  template <class T>
  static T value(T a, T b) {
    return static_cast<T>(a & b);
  }
  template <class T>
  static T defined(Bits<T> a, Bits<T> b) {
    return static_cast<T>((a.defined & b.defined) | (a.defined & ~a.value) |
                          (b.defined & ~b.value));
  }
};
struct Or {
  template <class T>
  static T value(T a, T b) {
    return static_cast<T>(a | b);
  }
  template <class T>
  static T defined(Bits<T> a, Bits<T> b) {
    return static_cast<T>((a.defined & b.defined) | (a.defined & a.value) | (b.defined & b.value));
  }
};
struct Xor {
  template <class T>
  static T value(T a, T b) {
    return static_cast<T>(a ^ b);
  }
  template <class T>
  static T defined(Bits<T> a, Bits<T> b) {
    return static_cast<T>(a.defined & b.defined);
  }
};

template <Combination how>
void run_predicates(Warp& warp, const Op& op, Mask lanes) {
  const Predicate result = combine(how, read_predicate(warp.registers, op.args[1]),
                                   read_predicate(warp.registers, op.args[2]));
  warp.registers.set_predicate(op.args[0], lanes, result.value, result.defined);
}

template <class Operation, Combination how>
Op decode_binary(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::pred, Type::b16, Type::b32, Type::b64});
  modifiers.end();
  const Run run = type == Type::pred ? run_predicates<how> : for_bits(type, []<class T>(T) {
    return bitwise([](T a, T b) { return Operation::value(a, b); },
                   [](Bits<T> a, Bits<T> b) { return Operation::defined(a, b); });
  });
  return make_lanewise(decoding, Class::logic, run, type, {type, type});
}

void run_not_predicate(Warp& warp, const Op& op, Mask lanes) {
  const Predicate a = read_predicate(warp.registers, op.args[1]);
  warp.registers.set_predicate(op.args[0], lanes, ~a.value, a.defined);
}

Op decode_not(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::pred, Type::b16, Type::b32, Type::b64});
  modifiers.end();
  const Run run = type == Type::pred ? run_not_predicate : for_bits(type, []<class T>(T) {
    return bitwise([](T a) { return static_cast<T>(~a); }, [](Bits<T> a) { return a.defined; });
  });
  return make_lanewise(decoding, Class::logic, run, type, {type});
}

Op decode_cnot(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::b16, Type::b32, Type::b64});
  modifiers.end();
  const Run run = for_bits(type, []<class T>(T) {
    return bitwise([](T a) { return static_cast<T>(a == 0); },
                   [](Bits<T> a) {
                     return a.whole() || (a.value & a.defined) ? static_cast<T>(~T{0}) : T{0};
                   });
  });
  return make_lanewise(decoding, Class::logic, run, type, {type});
}

// The function of three bits whose values at 111, 110 ... 000 are the bits of a table.
struct Table {
  uint32_t minterm[8];
  explicit Table(uint32_t bits) {
    for (int i = 0; i < 8; ++i) minterm[i] = bits >> i & 1 ? ~0u : 0u;
  }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const auto by_c = [&](int i) { return (minterm[i + 1] & c) | (minterm[i] & ~c); };
    const uint32_t low = (by_c(2) & b) | (by_c(0) & ~b);
    const uint32_t high = (by_c(6) & b) | (by_c(4) & ~b);
    return (high & a) | (low & ~a);
  }
  // Bits whose value is the same whatever the undefined ones are.
  uint32_t defined(Bits<uint32_t> a, Bits<uint32_t> b, Bits<uint32_t> c) const {
    const auto may_be = [](Bits<uint32_t> x, bool one) {
      return (one ? x.value : ~x.value) | ~x.defined;
    };
    uint32_t ones = 0, zeros = 0;
    for (int i = 0; i < 8; ++i) {
      const uint32_t possible = may_be(a, i & 4) & may_be(b, i & 2) & may_be(c, i & 1);
      (minterm[i] ? ones : zeros) |= possible;
    }
    return ~(ones & zeros);
  }
};

struct LogicResult {
  uint32_t value[kLanes];
  uint32_t defined[kLanes];  // bits
};

void evaluate_table(const Warp& warp, const Op& op, Mask lanes, const Arg* sources,
                    LogicResult& result) {
  const Registers registers = warp.registers;
  const Table table(static_cast<uint32_t>(op.imm[0]));
  const uint32_t* from[3];
  const uint8_t* defined[3];
  for (int i = 0; i < 3; ++i) {
    from[i] = registers.in<uint32_t>(sources[i]);
    defined[i] = registers.defined_in(sources[i]);
  }
  each_lane(lanes, [&](int lane) {
    result.value[lane] = table(from[0][lane], from[1][lane], from[2][lane]);
    result.defined[lane] = ~0u;
  });
  if (all_defined(defined[0], defined[1], defined[2])) return;
  each_lane(lanes, [&](int lane) {
    const auto bits = [&](int i) {
      return Bits<uint32_t>{from[i][lane], static_cast<uint32_t>(bits_defined(defined[i][lane]))};
    };
    result.defined[lane] = table.defined(bits(0), bits(1), bits(2));
  });
}

void write_result(const Warp& warp, Mask lanes, Arg target, const LogicResult& result) {
  if (target.kind == Arg::Kind::sink) return;
  uint32_t* to = warp.registers.out<uint32_t>(target);
  uint8_t* defined = warp.registers.defined_out(target);
  each_lane(lanes, [&](int lane) {
    to[lane] = result.value[lane];
    defined[lane] = result.defined[lane] == ~0u ? 0xff : bytes_defined(result.defined[lane]);
  });
}

void run_lop3(Warp& warp, const Op& op, Mask lanes) {
  LogicResult result;
  evaluate_table(warp, op, lanes, op.args + 1, result);
  write_result(warp, lanes, op.args[0], result);
}

// args: d, p, a, b, c, q.
void run_lop3_predicate(Warp& warp, const Op& op, Mask lanes) {
  LogicResult result;
  evaluate_table(warp, op, lanes, op.args + 2, result);
  Predicate any;
  any.value = mask_of(lanes, [&](int lane) { return result.value[lane] != 0; });
  any.defined = mask_of(lanes, [&](int lane) {
    return result.defined[lane] == ~0u || (result.value[lane] & result.defined[lane]) != 0;
  });
  const Predicate p = combine(static_cast<Combination>(op.mode[0]), any,
                              read_predicate(warp.registers, op.args[5]));
  write_result(warp, lanes, op.args[0], result);
  warp.registers.set_predicate(op.args[1], lanes, p.value, p.defined);
}

Op make_lop3(Decoding& decoding, Run run, const std::vector<Arg>& args) {
  Op op = decoding.make(Class::logic, run, args);
  op.imm[0] = decoding.literal(4);
  if (op.imm[0] < 0 || op.imm[0] > 255) decoding.fail("the table must be of 0 to 255");
  return op;
}

Op decode_lop3(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const int combination = modifiers.take_one({"and", "or"});
  modifiers.type({Type::b32});
  modifiers.end();
  require(decoding, 43, 50);
  decoding.expect_operands(combination < 0 ? 5 : 6);
  std::vector<Arg> args;
  const ptx::Operand& target = decoding.instruction->operands[0];
  if ((combination >= 0) != (target.second != nullptr)) {
    decoding.fail("d|p goes with .and or .or");
  }
  args.push_back(decoding.target(0, Type::b32, false, combination >= 0));
  if (combination >= 0) args.push_back(decoding.target(*target.second, Type::pred));
  for (size_t i = 1; i <= 3; ++i) args.push_back(decoding.source(i, Type::b32));
  if (combination < 0) return make_lop3(decoding, run_lop3, args);
  require(decoding, 82, 70);
  args.push_back(decoding.source(5, Type::pred));
  Op op = make_lop3(decoding, run_lop3_predicate, args);
  op.mode[0] = static_cast<uint32_t>(combination + 1);
  return op;
}

// Shifts by the width or more: all zeros, or copies of the sign.
template <class T>
T shift_left(T a, uint32_t by) {
  return by < 8 * sizeof(T) ? static_cast<T>(Wrapping<T>(a) << by) : T{0};
}
template <class T>
T shift_right(T a, uint32_t by) {
  return static_cast<T>(by < 8 * sizeof(T) ? a >> by : a < 0 ? T(-1) : T{0});
}

Op decode_shl(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::b16, Type::b32, Type::b64});
  modifiers.end();
  const Run run = for_bits(type, []<class T>(T) {
    return bitwise([](T a, uint32_t by) { return shift_left(a, by); },
                   [](Bits<T> a, Bits<uint32_t> by) {
                     if (!by.whole()) return T{0};
                     return static_cast<T>(~shift_left(static_cast<T>(~a.defined), by.value));
                   });
  });
  return make_lanewise(decoding, Class::logic, run, type, {type, Type::u32});
}

Op decode_shr(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type = modifiers.type({Type::b16, Type::b32, Type::b64, Type::u16, Type::u32,
                                    Type::u64, Type::s16, Type::s32, Type::s64});
  modifiers.end();
  // Of undefined bits: what a signed shift copies is as undefined as the sign.
  const Run run = for_integer(type, []<class T>(T) {
    return bitwise([](T a, uint32_t by) { return shift_right(a, by); },
                   [](Bits<T> a, Bits<uint32_t> by) {
                     using U = BitsOf<T>;
                     if (!by.whole()) return U{0};
                     const T undefined = static_cast<T>(~a.defined);
                     return static_cast<U>(~static_cast<U>(shift_right(undefined, by.value)));
                   });
  });
  return make_lanewise(decoding, Class::logic, run, type, {type, Type::u32});
}

template <bool left, bool wrap>
uint32_t funnel(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t by = wrap ? c & 31 : std::min(c, 32u);
  const uint64_t both = uint64_t{b} << 32 | a;
  return static_cast<uint32_t>(left ? both << by >> 32 : both >> by);
}

template <bool left, bool wrap>
Run funnel_run() {
  return bitwise([](uint32_t a, uint32_t b, uint32_t c) { return funnel<left, wrap>(a, b, c); },
                 [](Bits<uint32_t> a, Bits<uint32_t> b, Bits<uint32_t> c) {
                   return c.whole() ? funnel<left, wrap>(a.defined, b.defined, c.value) : 0u;
                 });
}

Op decode_shf(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const int right = modifiers.take_one({"l", "r"});
  const int wrap = modifiers.take_one({"clamp", "wrap"});
  if (right < 0 || wrap < 0) decoding.fail("needs .l or .r and .clamp or .wrap");
  modifiers.type({Type::b32});
  modifiers.end();
  require(decoding, 31, 32);
  const Run run = right  ? wrap ? funnel_run<false, true>() : funnel_run<false, false>()
                   : wrap ? funnel_run<true, true>()
                         : funnel_run<true, false>();
  return make_lanewise(decoding, Class::logic, run, Type::b32, {Type::b32, Type::b32, Type::u32});
}

// Selectors of the modes of prmt by the two low bits of the control.
constexpr std::array<std::array<uint16_t, 4>, 6> kPermutes = {{
    {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
    {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
    {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
    {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
    {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
    {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
}};

uint32_t permute(uint32_t a, uint32_t b, uint32_t control) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t selector = control >> (4 * i);
    const auto byte = static_cast<uint32_t>(both >> (8 * (selector & 7)) & 0xff);
    const uint32_t sign = byte & 0x80 ? 0xff : 0;
    result |= (selector & 8 ? sign : byte) << (8 * i);
  }
  return result;
}

// Of undefined bytes, a replicated sign is as defined as its byte.
uint32_t permute_defined(Bits<uint32_t> a, Bits<uint32_t> b, Bits<uint32_t> control) {
  return control.whole() ? permute(a.defined, b.defined, control.value & 0x7777) : 0;
}

template <size_t mode>
Run permute_run() {
  return bitwise(
      [](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, kPermutes[mode][c & 3]); },
      [](Bits<uint32_t> a, Bits<uint32_t> b, Bits<uint32_t> c) {
        return permute_defined(a, b, {kPermutes[mode][c.value & 3], c.defined});
      });
}

Op decode_prmt(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  modifiers.type({Type::b32});
  const int mode = modifiers.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  modifiers.end();
  const Run runs[] = {bitwise([](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, c); },
                              [](Bits<uint32_t> a, Bits<uint32_t> b, Bits<uint32_t> c) {
                                return permute_defined(a, b, c);
                              }),
                      permute_run<0>(),
                      permute_run<1>(),
                      permute_run<2>(),
                      permute_run<3>(),
                      permute_run<4>(),
                      permute_run<5>()};
  return make_lanewise(decoding, Class::logic, runs[mode + 1], Type::b32,
                       {Type::b32, Type::b32, Type::b32});
}

}  // namespace

void add_logic(Decoders& decoders) {
  decoders.add("and", decode_binary<And, Combination::conjunction>);
  decoders.add("or", decode_binary<Or, Combination::disjunction>);
  decoders.add("xor", decode_binary<Xor, Combination::exclusive>);
  decoders.add("not", decode_not);
  decoders.add("cnot", decode_cnot);
  decoders.add("lop3", decode_lop3);
  decoders.add("shl", decode_shl);
  decoders.add("shr", decode_shr);
  decoders.add("shf", decode_shf);
  decoders.add("prmt", decode_prmt);
}

}  // namespace emulator
