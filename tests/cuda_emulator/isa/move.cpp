// mov: registers, literals, special registers, addresses; packing of small registers into a wide
// one and the reverse. What is undefined stays so byte by byte.

#include <algorithm>
#include <iterator>

#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

using ptx::Type;

namespace {

template <class T>
void run_move(Warp& warp, const Op& op, Mask lanes) {
  const Registers registers = warp.registers;
  const T* from = registers.in<T>(op.args[1]);
  const uint8_t* from_defined = registers.defined_in(op.args[1]);
  T* to = registers.out<T>(op.args[0]);
  uint8_t* to_defined = registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) { to[lane] = from[lane]; });
  each_lane(lanes, [&](int lane) { to_defined[lane] = from_defined[lane]; });
}

void run_move_predicate(Warp& warp, const Op& op, Mask lanes) {
  warp.registers.set_predicate(op.args[0], lanes, warp.registers.predicate(op.args[1]),
                               warp.registers.predicate_defined(op.args[1]));
}

// The two halves of a 16-byte register: values in pairs, definedness two units apart.
constexpr int kHalfDefined = 2 * kLanes;

void run_move_128(Warp& warp, const Op& op, Mask lanes) {
  const Registers registers = warp.registers;
  const uint64_t* from = registers.in<uint64_t>(op.args[1]);
  const uint8_t* from_defined = registers.defined_in(op.args[1]);
  uint64_t* to = registers.out<uint64_t>(op.args[0]);
  uint8_t* to_defined = registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[2 * lane] = from[2 * lane];
    to[2 * lane + 1] = from[2 * lane + 1];
    to_defined[lane] = from_defined[lane];
    to_defined[lane + kHalfDefined] = from_defined[lane + kHalfDefined];
  });
}

// Packing into and out of the halves of 16 bytes: by T, which is a half or half of one.
template <class T>
void run_pack_128(Warp& warp, const Op& op, Mask lanes) {
  constexpr int count = 16 / sizeof(T);
  const Registers registers = warp.registers;
  T* to = registers.out<T>(op.args[0]);
  uint8_t* defined = registers.defined_out(op.args[0]);
  constexpr unsigned bytes = sizeof(T) == 8 ? 0xff : 15;
  for (int i = 0; i < count; ++i) {
    const T* from = registers.in<T>(op.args[1 + i]);
    const uint8_t* from_defined = registers.defined_in(op.args[1 + i]);
    uint8_t* half_defined = defined + (i >= count / 2 ? kHalfDefined : 0);
    const unsigned shift = sizeof(T) * static_cast<unsigned>(i) % 8;
    each_lane(lanes, [&](int lane) {
      to[count * lane + i] = from[lane];
      half_defined[lane] = static_cast<uint8_t>((half_defined[lane] & ~(bytes << shift)) |
                                                (from_defined[lane] & bytes) << shift);
    });
  }
}

template <class T>
void run_unpack_128(Warp& warp, const Op& op, Mask lanes) {
  constexpr int count = 16 / sizeof(T);
  const Registers registers = warp.registers;
  const T* from = registers.in<T>(op.args[count]);
  const uint8_t* from_defined = registers.defined_in(op.args[count]);
  for (int i = 0; i < count; ++i) {
    if (op.args[i].kind == Arg::Kind::sink) continue;
    T* to = registers.out<T>(op.args[i]);
    uint8_t* defined = registers.defined_out(op.args[i]);
    const uint8_t* half_defined = from_defined + (i >= count / 2 ? kHalfDefined : 0);
    const unsigned shift = sizeof(T) * static_cast<unsigned>(i) % 8;
    each_lane(lanes, [&](int lane) {
      to[lane] = from[count * lane + i];
      defined[lane] = static_cast<uint8_t>(half_defined[lane] >> shift | kAbsent<T>);
    });
  }
}

// Bytes of an element, the bits that it has of a cell, and those of its definedness.
template <class T, int count>
struct Element {
  static constexpr int kBytes = sizeof(T) / count;
  static constexpr int kBits = 8 * kBytes;
  static constexpr uint32_t kMask = static_cast<uint32_t>((uint64_t{1} << kBits) - 1);
  static constexpr unsigned kDefined = (1u << kBytes) - 1;
};

template <class T, int count>
void run_pack(Warp& warp, const Op& op, Mask lanes) {
  using E = Element<T, count>;
  const Registers registers = warp.registers;
  const uint32_t* from[count];
  const uint8_t* from_defined[count];
  for (int i = 0; i < count; ++i) {
    from[i] = registers.in<uint32_t>(op.args[1 + i]);
    from_defined[i] = registers.defined_in(op.args[1 + i]);
  }
  Cell<T>* to = registers.out<Cell<T>>(op.args[0]);
  uint8_t* defined = registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    Cell<T> value = 0;
    for (int i = 0; i < count; ++i) value |= Cell<T>{from[i][lane]} << (E::kBits * i);
    to[lane] = value;
  });
  each_lane(lanes, [&](int lane) {
    unsigned bytes = kAbsent<T>;
    for (int i = 0; i < count; ++i)
      bytes |= (from_defined[i][lane] & E::kDefined) << (E::kBytes * i);
    defined[lane] = static_cast<uint8_t>(bytes);
  });
}

template <class T, int count>
void run_unpack(Warp& warp, const Op& op, Mask lanes) {
  using E = Element<T, count>;
  const Registers registers = warp.registers;
  const Cell<T>* from = registers.in<Cell<T>>(op.args[count]);
  const uint8_t* from_defined = registers.defined_in(op.args[count]);
  for (int i = 0; i < count; ++i) {
    if (op.args[i].kind == Arg::Kind::sink) continue;
    uint32_t* to = registers.out<uint32_t>(op.args[i]);
    uint8_t* defined = registers.defined_out(op.args[i]);
    each_lane(lanes, [&](int lane) {
      to[lane] = static_cast<uint32_t>(from[lane] >> (E::kBits * i)) & E::kMask;
    });
    each_lane(lanes, [&](int lane) {
      defined[lane] = static_cast<uint8_t>((from_defined[lane] >> (E::kBytes * i)) | ~E::kDefined);
    });
  }
}

struct Packing {
  Type whole;
  size_t count;
  Type element;
  Run pack, unpack;
};

const Packing kPackings[] = {
    {Type::b16, 2, Type::b8, run_pack<uint16_t, 2>, run_unpack<uint16_t, 2>},
    {Type::b32, 2, Type::b16, run_pack<uint32_t, 2>, run_unpack<uint32_t, 2>},
    {Type::b32, 4, Type::b8, run_pack<uint32_t, 4>, run_unpack<uint32_t, 4>},
    {Type::b64, 2, Type::b32, run_pack<uint64_t, 2>, run_unpack<uint64_t, 2>},
    {Type::b64, 4, Type::b16, run_pack<uint64_t, 4>, run_unpack<uint64_t, 4>},
    {Type::b128, 2, Type::b64, run_pack_128<uint64_t>, run_unpack_128<uint64_t>},
    {Type::b128, 4, Type::b32, run_pack_128<uint32_t>, run_unpack_128<uint32_t>},
};

const Packing& packing(const Decoding& decoding, Type whole, size_t count) {
  const auto found =
      std::find_if(std::begin(kPackings), std::end(kPackings),
                   [&](const Packing& p) { return p.whole == whole && p.count == count; });
  if (found == std::end(kPackings)) decoding.fail("mov has no such vector of that type");
  return *found;
}

Op decode_pack(Decoding& decoding, Type type) {
  const ptx::Operand& vector = decoding.instruction->operands[1];
  const Packing& packing_of = packing(decoding, type, vector.elements.size());
  std::vector<Arg> args{decoding.target(0, type)};
  for (const ptx::Operand& element : vector.elements) {
    args.push_back(decoding.source(element, packing_of.element));
  }
  return decoding.make(Class::move, packing_of.pack, args);
}

Op decode_unpack(Decoding& decoding, Type type) {
  const ptx::Operand& vector = decoding.instruction->operands[0];
  const Packing& packing_of = packing(decoding, type, vector.elements.size());
  std::vector<Arg> args;
  if (std::all_of(vector.elements.begin(), vector.elements.end(), [](const ptx::Operand& element) {
        return element.kind == ptx::Operand::Kind::sink;
      })) {
    decoding.fail("nothing is written");
  }
  for (const ptx::Operand& element : vector.elements) {
    args.push_back(decoding.target(element, packing_of.element, false, true));
  }
  args.push_back(decoding.source(1, type));
  return decoding.make(Class::move, packing_of.unpack, args);
}

Op decode_mov(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Type type =
      modifiers.type({Type::pred, Type::b16, Type::b32, Type::b64, Type::b128, Type::u16, Type::u32,
                      Type::u64, Type::s16, Type::s32, Type::s64, Type::f32, Type::f64});
  modifiers.end();
  decoding.expect_operands(2);
  if (type == Type::b128) require(decoding, 83, 70);
  const auto is_vector = [&](size_t i) {
    return decoding.instruction->operands[i].kind == ptx::Operand::Kind::vector;
  };
  if (is_vector(0) && is_vector(1)) decoding.fail("mov has a vector on one side");
  if (is_vector(1)) return decode_pack(decoding, type);
  if (is_vector(0)) return decode_unpack(decoding, type);
  const Run run = type == Type::pred         ? run_move_predicate
                  : type == Type::b128       ? run_move_128
                  : ptx::bytes_of(type) == 8 ? run_move<uint64_t>
                                             : run_move<uint32_t>;
  return make_lanewise(decoding, Class::move, run, type, {type});
}

}  // namespace

void add_move(Decoders& decoders) { decoders.add("mov", decode_mov); }

}  // namespace emulator
