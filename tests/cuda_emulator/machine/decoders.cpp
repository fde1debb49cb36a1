#include "tests/cuda_emulator/machine/decode.h"

namespace emulator {

bool Modifiers::take(std::string_view name) {
  if (peek() != name || !more()) return false;
  ++next_;
  return true;
}

int Modifiers::take_one(std::initializer_list<std::string_view> names) {
  int index = 0;
  for (std::string_view name : names) {
    if (take(name)) return index;
    ++index;
  }
  return -1;
}

std::string_view Modifiers::peek() const {
  return more() ? std::string_view(instruction_.modifiers[next_]) : std::string_view();
}

ptx::Type Modifiers::type(std::initializer_list<ptx::Type> allowed) {
  const ptx::Type found = ptx::type_named(peek());
  bool fits = found != ptx::Type::none && allowed.size() == 0;
  std::string names;
  for (ptx::Type type : allowed) {
    fits |= type == found;
    names += (names.empty() ? "." : ", .") + std::string(name_of(type));
  }
  if (!fits) {
    throw ptx::Error(instruction_.line, instruction_.opcode + ": a type must come here" +
                                            (names.empty() ? "" : ", one of " + names) +
                                            (more() ? ", not ." + std::string(peek()) : ""));
  }
  ++next_;
  return found;
}

void Modifiers::end() const {
  if (!more()) return;
  throw ptx::Error(instruction_.line, instruction_.opcode + ": the modifier ." +
                                          std::string(peek()) +
                                          " is not known, or not in this place");
}

void Decoders::add(std::string_view opcode, Decoder decoder) {
  all_[std::string(opcode)] = std::move(decoder);
}

void Decoders::add(std::string_view opcode, std::initializer_list<ptx::Type> types,
                   Decoder decoder) {
  for (ptx::Type type : types) typed_[std::string(opcode)][type] = decoder;
}

Op Decoders::decode(Decoding& decoding) const {
  const ptx::Instruction& instruction = *decoding.instruction;
  if (const auto typed = typed_.find(instruction.opcode); typed != typed_.end()) {
    for (auto m = instruction.modifiers.rbegin(); m != instruction.modifiers.rend(); ++m) {
      const ptx::Type type = ptx::type_named(*m);
      if (type == ptx::Type::none) continue;
      if (const auto found = typed->second.find(type); found != typed->second.end()) {
        return found->second(decoding);
      }
      break;
    }
  }
  if (const auto found = all_.find(instruction.opcode); found != all_.end()) {
    return found->second(decoding);
  }
  const bool typed = typed_.count(instruction.opcode) != 0;
  throw ptx::Error(instruction.line, typed ? "there is no " + instruction.opcode + " of that type"
                                           : "the opcode " + instruction.opcode + " is not known");
}

const Decoders& decoders() {
  static const Decoders all = [] {
    Decoders made;
    add_integer(made);
    add_logic(made);
    add_floating(made);
    add_half(made);
    add_approximate(made);
    add_compare(made);
    add_convert(made);
    add_move(made);
    add_memory(made);
    add_atomic(made);
    add_async(made);
    add_mbarrier(made);
    add_matrix(made);
    add_mma(made);
    add_warp(made);
    add_control(made);
    return made;
  }();
  return all;
}

}  // namespace emulator
