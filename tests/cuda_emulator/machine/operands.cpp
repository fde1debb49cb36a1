#include "tests/cuda_emulator/machine/operands.h"

#include <bit>

namespace emulator {
namespace {

using ptx::Type;

enum class Family { bits, integer, floating, packed, none };

Family family(Type type) {
  switch (type) {
    case Type::b8:
    case Type::b16:
    case Type::b32:
    case Type::b64:
    case Type::b128: return Family::bits;
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64: return Family::integer;
    case Type::f16:
    case Type::f16x2:
    case Type::f32:
    case Type::f64: return Family::floating;
    case Type::none:
    case Type::pred: return Family::none;
    default: return Family::packed;  // formats that registers hold as bits
  }
}

bool agree(Type reg, Type type) {
  const Family r = family(reg), t = family(type);
  if (r == Family::none || t == Family::none) return false;
  if (r == Family::bits || t == Family::bits) return true;
  if (r == Family::floating || t == Family::floating) return reg == type;
  return true;  // integers, and formats held in them
}

}  // namespace

bool operand_fits(Type reg, Type type, bool relaxed) {
  if (type == Type::pred || reg == Type::pred) return type == reg;
  if (ptx::bytes_of(reg) == ptx::bytes_of(type)) return agree(reg, type);
  if (!relaxed || ptx::bytes_of(reg) < ptx::bytes_of(type)) return false;
  // Wider registers: what a float or a format is read from has no kind of its own.
  if (family(type) == Family::floating) return family(reg) == Family::bits;
  return family(reg) == Family::bits || family(reg) == Family::integer;
}

std::string mismatch(const ptx::Function& function, const ptx::Operand& operand, Type reg,
                     Type type) {
  return function.registers.at(operand.index).name + " is of type ." + std::string(name_of(reg)) +
         ", which does not fit ." + std::string(name_of(type));
}

bool literal_bits(const ptx::Operand& operand, Type type, uint64_t* bits) {
  if (operand.negated) return false;
  using Kind = ptx::Operand::Kind;
  const bool real = type == Type::f32 || type == Type::f64;
  if (operand.kind == Kind::integer) {
    *bits = operand.bits;
    return family(type) == Family::integer || family(type) == Family::bits;
  }
  // Halves and formats have no literals.
  if (!real && family(type) != Family::bits) return false;
  const bool single = operand.kind == Kind::single;
  const double value = single ? std::bit_cast<float>(static_cast<uint32_t>(operand.bits))
                              : std::bit_cast<double>(operand.bits);
  if (type == Type::f32) {
    *bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  } else if (type == Type::f64) {
    *bits = std::bit_cast<uint64_t>(value);
  } else {
    *bits = operand.bits;
    return ptx::bytes_of(type) == (single ? 4 : 8);
  }
  return true;
}

}  // namespace emulator
