// Extended-precision arithmetic: instructions that write or read the carry of each lane, which is
// that of unsigned addition whatever the type. A subtraction's carry is its borrow.

#include "tests/cuda_emulator/isa/integer.h"
#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

using ptx::Type;

namespace {

constexpr auto kTypes = {Type::u32, Type::s32, Type::u64, Type::s64};

enum Carry : uint32_t { kReads = 1, kWrites = 2 };

struct Sum {
  template <class T>
  static T apply(T a, T b, bool carry, bool* out) {
    const T sum = a + b;
    const T all = sum + (carry ? 1 : 0);
    *out = sum < a || all < sum;
    return all;
  }
};

struct Difference {
  template <class T>
  static T apply(T a, T b, bool borrow, bool* out) {
    *out = a < b || (a == b && borrow);
    return a - b - (borrow ? 1 : 0);
  }
};

// f(lane, carry, &carry out) gives the result of a lane.
template <class T, class F>
void run_carry(Warp& warp, const Op& op, Mask lanes, F&& f) {
  const Registers registers = warp.registers;
  const bool reads = op.mode[0] & kReads;
  const Predicate before = warp.carry;
  T* to = registers.out<T>(op.args[0]);
  uint8_t* defined = registers.defined_out(op.args[0]);
  Predicate after = before;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const Mask bit = Mask{1} << lane;
    unsigned all = !reads || (before.defined & bit) ? 0xff : 0;
    for (int i = 1; i < op.arg_count; ++i) all &= registers.defined_in(op.args[i])[lane];
    bool out = false;
    to[lane] = f(lane, reads && (before.value & bit), &out);
    defined[lane] = all == 0xff ? 0xff : kAbsent<T>;
    after.value = out ? after.value | bit : after.value & ~bit;
    after.defined = all == 0xff ? after.defined | bit : after.defined & ~bit;
  }
  if (op.mode[0] & kWrites) warp.carry = after;
}

template <class T, class Operation>
void run_sum(Warp& warp, const Op& op, Mask lanes) {
  const T* a = warp.registers.in<T>(op.args[1]);
  const T* b = warp.registers.in<T>(op.args[2]);
  run_carry<T>(warp, op, lanes, [&](int lane, bool carry, bool* out) {
    return Operation::apply(a[lane], b[lane], carry, out);
  });
}

template <class T, bool high>
void run_product(Warp& warp, const Op& op, Mask lanes) {
  using U = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  const T* a = warp.registers.in<T>(op.args[1]);
  const T* b = warp.registers.in<T>(op.args[2]);
  const U* c = warp.registers.in<U>(op.args[3]);
  run_carry<U>(warp, op, lanes, [&](int lane, bool carry, bool* out) {
    const Wide product = Wide(a[lane]) * Wide(b[lane]);
    const U part = static_cast<U>(high ? product >> (8 * sizeof(T)) : product);
    return Sum::apply(part, c[lane], carry, out);
  });
}

template <bool high>
Run product_run(Type type) {
  switch (type) {
    case Type::u32: return run_product<uint32_t, high>;
    case Type::s32: return run_product<int32_t, high>;
    case Type::u64: return run_product<uint64_t, high>;
    default: return run_product<int64_t, high>;
  }
}

template <class Operation>
Op make_sum(Decoding& decoding, Modifiers& modifiers, uint32_t carry) {
  const Type type = modifiers.type(kTypes);
  modifiers.end();
  const bool wide = type == Type::u64 || type == Type::s64;
  if (wide) require(decoding, 43, 20);
  Op op = make_lanewise(decoding, Class::integer,
                        wide ? run_sum<uint64_t, Operation> : run_sum<uint32_t, Operation>, type,
                        {type, type});
  op.mode[0] = carry;
  return op;
}

Op make_product(Decoding& decoding, Modifiers& modifiers, bool high, uint32_t carry) {
  const Type type = modifiers.type(kTypes);
  modifiers.end();
  if (type == Type::u64 || type == Type::s64) require(decoding, 43, 20);
  Op op = make_lanewise(decoding, Class::integer,
                        high ? product_run<true>(type) : product_run<false>(type), type,
                        {type, type, type});
  op.mode[0] = carry;
  return op;
}

uint32_t take_carry(Modifiers& modifiers) { return kReads | (modifiers.take("cc") ? kWrites : 0u); }

}  // namespace

Op decode_add_carry(Decoding& decoding, Modifiers& modifiers) {
  return make_sum<Sum>(decoding, modifiers, kWrites);
}
Op decode_sub_carry(Decoding& decoding, Modifiers& modifiers) {
  return make_sum<Difference>(decoding, modifiers, kWrites);
}
Op decode_mad_carry(Decoding& decoding, Modifiers& modifiers, bool high) {
  return make_product(decoding, modifiers, high, kWrites);
}

void add_carry(Decoders& decoders) {
  decoders.add("addc", [](Decoding& decoding) {
    Modifiers modifiers(*decoding.instruction);
    return make_sum<Sum>(decoding, modifiers, take_carry(modifiers));
  });
  decoders.add("subc", [](Decoding& decoding) {
    Modifiers modifiers(*decoding.instruction);
    return make_sum<Difference>(decoding, modifiers, take_carry(modifiers));
  });
  decoders.add("madc", [](Decoding& decoding) {
    Modifiers modifiers(*decoding.instruction);
    const int part = modifiers.take_one({"lo", "hi"});
    if (part < 0) decoding.fail("needs .lo or .hi");
    return make_product(decoding, modifiers, part == 1, take_carry(modifiers));
  });
}

}  // namespace emulator
