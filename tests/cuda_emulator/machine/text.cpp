#include "tests/cuda_emulator/machine/text.h"

#include <cinttypes>
#include <cstdio>

namespace emulator {
namespace {

std::string text_of(const ptx::Operand& operand);

std::string joined(const std::vector<ptx::Operand>& operands, char open, char close) {
  std::string text(1, open);
  for (size_t i = 0; i < operands.size(); ++i) text += (i ? ", " : "") + text_of(operands[i]);
  return text + close;
}

std::string hexadecimal(const char* prefix, uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "%s%" PRIX64, prefix, bits);
  return text;
}

std::string with_offset(const std::string& base, int64_t offset) {
  return offset == 0 ? base : base + "+" + std::to_string(offset);
}

std::string text_of(const ptx::Operand& operand) {
  using Kind = ptx::Operand::Kind;
  std::string text = operand.negated ? "!" : "";
  switch (operand.kind) {
    case Kind::integer: text += std::to_string(static_cast<int64_t>(operand.bits)); break;
    case Kind::single: text += hexadecimal("0f", operand.bits); break;
    case Kind::number: text += hexadecimal("0d", operand.bits); break;
    case Kind::variable: text += with_offset(operand.name, operand.offset); break;
    case Kind::address:
      text += '[';
      if (!operand.elements.empty()) {
        text += with_offset(text_of(operand.elements[0]), operand.offset);
      }
      text += ']';
      break;
    case Kind::tensor: text += joined(operand.elements, '[', ']'); break;
    case Kind::vector: text += joined(operand.elements, '{', '}'); break;
    case Kind::list: text += joined(operand.elements, '(', ')'); break;
    case Kind::sink: text += "_"; break;
    default: text += operand.name;
  }
  if (operand.second) text += "|" + text_of(*operand.second);
  return text;
}

}  // namespace

std::string text_of(const ptx::Instruction& instruction) {
  std::string text = instruction.opcode;
  for (const std::string& modifier : instruction.modifiers) text += "." + modifier;
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    text += (i ? ", " : " ") + text_of(instruction.operands[i]);
  }
  return text;
}

}  // namespace emulator
