// Instructions and their operands.

#include "tests/cuda_emulator/ptx/body.h"
#include "tests/cuda_emulator/ptx/names.h"

namespace emulator::ptx {

namespace {

constexpr size_t kMostOperands = 64;   // of an instruction
constexpr size_t kMostElements = 256;  // of a vector; the largest are those of wgmma and tcgen05

Operand make(Operand::Kind kind) {
  Operand out;
  out.kind = kind;
  return out;
}

}  // namespace

// What a name means here: of the function, or of the module.
Symbol BodyReader::find(std::string_view name) const {
  const Symbol symbol = scopes_.find(name);
  return symbol.kind != Symbol::Kind::none ? symbol : symbols_.find(name);
}

uint32_t BodyReader::predicate(const Token& token) const {
  const Symbol symbol = find(token.text);
  if (symbol.kind == Symbol::Kind::none) {
    throw Error(token.line, quoted(token.text) + " is not declared");
  }
  if (symbol.kind != Symbol::Kind::reg || function_.registers[symbol.index].type != Type::pred) {
    throw Error(token.line, quoted(token.text) + " is not a predicate");
  }
  return symbol.index;
}

void BodyReader::guarded_instruction() {
  reader_.expect('@');
  const bool negated = reader_.accept('!');
  if (!reader_.at(Token::Kind::word)) reader_.unexpected("a predicate");
  const uint32_t guard = predicate(reader_.take());
  if (!reader_.at(Token::Kind::word)) reader_.unexpected("an instruction");
  instruction(reader_.take(), guard, negated);
}

void BodyReader::instruction(const Token& opcode, std::optional<uint32_t> guard, bool negated) {
  if (opcode.text[0] < 'a' || opcode.text[0] > 'z') {
    throw Error(opcode.line, "expected an instruction before " + quoted(opcode.text));
  }
  Instruction& out = function_.instructions.emplace_back();
  out.opcode = opcode.text;
  out.line = opcode.line;
  out.source = locations_.current();
  out.guard = guard;
  out.guard_negated = negated;
  while (reader_.at(Token::Kind::dotted)) out.modifiers.emplace_back(reader_.take().text);
  if (!reader_.at(';')) {
    if (out.opcode == "call") {
      call_operands(out);
    } else {
      operands(out);
    }
  }
  reader_.expect(';');
}

void BodyReader::operands(Instruction& instruction) {
  std::vector<Operand>& all = instruction.operands;
  all.reserve(4);
  do {
    if (all.size() == kMostOperands) reader_.fail("too many operands");
    if (instruction.opcode == "bra" && all.empty()) {
      all.push_back(reference(instruction, Symbol::Kind::label));
    } else if (instruction.opcode == "brx" && all.size() == 1) {
      all.push_back(reference(instruction, Symbol::Kind::branch_table));
    } else {
      all.push_back(operand());
    }
  } while (reader_.accept(','));
}

// The name of a label or a table, wherever in the scopes that is declared.
Operand BodyReader::reference(const Instruction& instruction, Symbol::Kind kind) {
  const bool label = kind == Symbol::Kind::label;
  Operand out = make(label ? Operand::Kind::label : Operand::Kind::table);
  const int line = reader_.line();
  const std::string_view name = reader_.word(label ? "a label" : "the name of a list");
  out.name = name;
  references_.back().push_back({name, line, kind,
                                static_cast<uint32_t>(function_.instructions.size() - 1),
                                static_cast<uint32_t>(instruction.operands.size()), false});
  return out;
}

// call (result), function, (arguments), prototype; where only the function must be there.
void BodyReader::call_operands(Instruction& instruction) {
  std::vector<Operand>& all = instruction.operands;
  if (reader_.at('(')) {
    all.push_back(call_list());
    reader_.expect(',');
  }
  all.push_back(callee());
  const bool indirect = all.back().kind == Operand::Kind::reg;
  if (reader_.at(';')) {
    if (indirect) reader_.unexpected("a prototype");
    return;
  }
  reader_.expect(',');
  if (reader_.at('(')) {
    all.push_back(call_list());
    if (!indirect) return;
    reader_.expect(',');
  } else if (!indirect) {
    reader_.unexpected("'('");
  }
  all.push_back(reference(instruction, Symbol::Kind::prototype));
}

Operand BodyReader::callee() {
  if (!reader_.at(Token::Kind::word)) reader_.unexpected("a function");
  const Token token = reader_.take();
  Operand out = named(token);
  const bool function =
      out.kind == Operand::Kind::variable && find(token.text).kind == Symbol::Kind::function;
  if (!function && out.kind != Operand::Kind::reg) {
    throw Error(token.line, quoted(token.text) + " is not a function");
  }
  return out;
}

Operand BodyReader::call_list() {
  Operand out = make(Operand::Kind::list);
  reader_.expect('(');
  if (reader_.accept(')')) return out;
  do {
    if (out.elements.size() == kMostParameters) reader_.fail("too many arguments");
    if (!reader_.at(Token::Kind::word) && !begins_constant(reader_.token())) {
      reader_.unexpected("an argument");
    }
    out.elements.push_back(operand());
  } while (reader_.accept(','));
  reader_.expect(')');
  return out;
}

Operand BodyReader::operand() {
  const Token& token = reader_.token();
  if (token.kind == Token::Kind::word && token.text != "WARP_SZ") {
    Operand out = word();
    const bool pair = out.kind == Operand::Kind::reg || out.kind == Operand::Kind::sink;
    if (pair && reader_.accept('|')) {
      if (!reader_.at(Token::Kind::word)) reader_.unexpected("a register");
      out.second = std::make_shared<Operand>(word());
      if (out.second->kind != Operand::Kind::reg && out.second->kind != Operand::Kind::sink) {
        reader_.fail("the second of two destinations must be a register");
      }
    }
    return out;
  }
  if (reader_.at('[')) return address();
  if (reader_.at('{')) return vector();
  if (reader_.at('!')) {
    const Token behind = reader_.following();
    if (behind.kind == Token::Kind::word && behind.text != "WARP_SZ") {
      reader_.take();
      Operand out = make(Operand::Kind::reg);
      out.index = predicate(reader_.take());
      out.negated = true;
      return out;
    }
  }
  return constant();
}

Operand BodyReader::word() {
  const Token token = reader_.take();
  if (token.text == "_") return make(Operand::Kind::sink);
  return named(token);
}

Operand BodyReader::named(const Token& token) {
  const Symbol symbol = find(token.text);
  Operand out = make(Operand::Kind::variable);
  switch (symbol.kind) {
    case Symbol::Kind::reg:
      out.kind = Operand::Kind::reg;
      out.index = symbol.index;
      if (reader_.at(Token::Kind::dotted)) reader_.fail("parts of registers are not handled");
      return out;
    case Symbol::Kind::local: out.name = function_.locals[symbol.index].name; break;
    case Symbol::Kind::parameter:
    case Symbol::Kind::result:
    case Symbol::Kind::variable:
    case Symbol::Kind::function: out.name = token.text; break;
    case Symbol::Kind::none: return special(token);
    default: throw Error(token.line, quoted(token.text) + " cannot be an operand");
  }
  if (reader_.at('+') || reader_.at('-')) out.offset = read_integer(reader_, "an offset");
  if (reader_.at('[')) reader_.fail("elements of arrays as operands are not handled");
  return out;
}

Operand BodyReader::special(const Token& token) {
  Operand out = make(Operand::Kind::special);
  out.name = token.text;
  switch (special_register(token.text)) {
    case Special::none: throw Error(token.line, quoted(token.text) + " is not declared");
    case Special::scalar: break;
    case Special::vector: {
      const std::string_view part =
          reader_.at(Token::Kind::dotted) ? reader_.token().text : std::string_view();
      if (part != "x" && part != "y" && part != "z" && part != "w") {
        reader_.fail(quoted(token.text) + " needs a part .x, .y, .z or .w");
      }
      reader_.take();
      out.name.append(".").append(part);
    }
  }
  if (reader_.at(Token::Kind::dotted)) reader_.unexpected("the next operand");
  return out;
}

Operand BodyReader::constant() {
  if (!begins_constant(reader_.token())) reader_.unexpected("an operand");
  const Constant value = read_constant(reader_);
  Operand out = make(value.is_integer()                     ? Operand::Kind::integer
                     : value.kind == Constant::Kind::single ? Operand::Kind::single
                                                            : Operand::Kind::number);
  out.bits = value.bits;
  return out;
}

Operand BodyReader::address() {
  reader_.expect('[');
  Operand out = make(Operand::Kind::address);
  const int line = reader_.line();
  if (reader_.at(Token::Kind::word) && reader_.token().text != "WARP_SZ") {
    Operand base = named(reader_.take());
    if (base.kind == Operand::Kind::special) throw Error(line, "an address needs a register");
    out.offset = base.offset;
    base.offset = 0;
    if (base.kind == Operand::Kind::reg && (reader_.at('+') || reader_.at('-'))) {
      out.offset = read_integer(reader_, "an offset");
    }
    out.elements.push_back(std::move(base));
  } else {
    Operand base = make(Operand::Kind::integer);
    base.bits = static_cast<uint64_t>(read_integer(reader_, "an address"));
    out.elements.push_back(std::move(base));
  }
  if (reader_.accept(',')) {
    Operand tensor = make(Operand::Kind::tensor);
    tensor.elements.push_back(std::move(out));
    if (!reader_.at('{')) reader_.unexpected("coordinates");
    tensor.elements.push_back(vector());
    out = std::move(tensor);
  }
  reader_.expect(']');
  return out;
}

Operand BodyReader::vector() {
  reader_.expect('{');
  Operand out = make(Operand::Kind::vector);
  do {
    if (out.elements.size() == kMostElements) reader_.fail("too many elements of a vector");
    if (reader_.at('{') || reader_.at('[')) reader_.unexpected("an element of a vector");
    if (reader_.at(Token::Kind::word) && reader_.token().text != "WARP_SZ") {
      out.elements.push_back(word());
    } else {
      out.elements.push_back(constant());
    }
  } while (reader_.accept(','));
  reader_.expect('}');
  return out;
}

}  // namespace emulator::ptx
