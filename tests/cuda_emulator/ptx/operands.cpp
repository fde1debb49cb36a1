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
      all.push_back(label());
    } else if (instruction.opcode == "brx" && all.size() == 1) {
      all.push_back(table(Symbol::Kind::branch_table));
    } else {
      all.push_back(operand());
    }
  } while (reader_.accept(','));
}

// The target of a branch, wherever in the scopes that is declared.
Operand BodyReader::label() {
  Operand out = make(Operand::Kind::label);
  const int line = reader_.line();
  const std::string_view name = reader_.word("a label");
  out.name = name;
  references_.back().push_back(
      {name, line, static_cast<uint32_t>(function_.instructions.size() - 1), 0, false});
  return out;
}

// A list of branch targets or a prototype.
Operand BodyReader::table(Symbol::Kind kind) {
  Operand out = make(Operand::Kind::table);
  const int line = reader_.line();
  out.name = reader_.word("the name of a list or a prototype");
  const Symbol symbol = find(out.name);
  if (symbol.kind == Symbol::Kind::none) throw Error(line, quoted(out.name) + " is not declared");
  if (symbol.kind != kind) {
    throw Error(line, quoted(out.name) + (kind == Symbol::Kind::prototype
                                              ? " is not a prototype"
                                              : " is not a list of branch targets"));
  }
  out.index = symbol.index;
  return out;
}

// call (result), function, (arguments), prototype; where only the function must be there.
void BodyReader::call_operands(Instruction& instruction) {
  std::vector<Operand>& all = instruction.operands;
  if (reader_.at('(')) {
    all.push_back(call_list());
    reader_.expect(',');
  }
  if (!reader_.at(Token::Kind::word)) reader_.unexpected("a function");
  const Symbol function = find(reader_.token().text);
  all.push_back(callee());
  const bool indirect = all.back().kind == Operand::Kind::reg;
  if (!reader_.at(';') || indirect) {
    reader_.expect(',');
    if (reader_.at('(')) {
      all.push_back(call_list());
      if (indirect) reader_.expect(',');
    } else if (!indirect) {
      reader_.unexpected("'('");
    }
  }
  if (indirect) {
    all.push_back(table(Symbol::Kind::prototype));
    const Prototype& prototype = function_.prototypes[all.back().index];
    check_call(instruction, prototype.results, prototype.parameters);
  } else {
    const Function& callee = module_.functions[function.index];
    check_call(instruction, callee.results, callee.parameters);
  }
}

// Results and arguments must be as many as are declared, and as large.
void BodyReader::check_call(const Instruction& instruction, const std::vector<Variable>& results,
                            const std::vector<Variable>& parameters) const {
  const std::vector<Operand>& all = instruction.operands;
  static const std::vector<Operand> kNothing;
  const auto check = [&](const std::vector<Operand>& given, const std::vector<Variable>& declared,
                         const char* what) {
    if (given.size() != declared.size()) {
      throw Error(instruction.line, "a call with " + std::to_string(given.size()) + what +
                                        " instead of " + std::to_string(declared.size()));
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const Variable& passed = function_.locals[given[i].index];
      if (passed.bytes != declared[i].bytes) {
        throw Error(instruction.line, quoted(passed.name) + " has " + std::to_string(passed.bytes) +
                                          " bytes instead of " + std::to_string(declared[i].bytes));
      }
    }
  };
  const bool has_results = all[0].kind == Operand::Kind::list;
  const size_t behind = has_results ? 2 : 1;
  const bool has_arguments = all.size() > behind && all[behind].kind == Operand::Kind::list;
  check(has_results ? all[0].elements : kNothing, results, " results");
  check(has_arguments ? all[behind].elements : kNothing, parameters, " arguments");
}

// With a word in view.
Operand BodyReader::callee() {
  const Token token = reader_.take();
  const Symbol symbol = find(token.text);
  Operand out = named(token);
  if (symbol.kind != Symbol::Kind::function && symbol.kind != Symbol::Kind::reg) {
    throw Error(token.line, quoted(token.text) + " is not a function");
  }
  if (symbol.kind == Symbol::Kind::function && module_.functions[symbol.index].entry) {
    throw Error(token.line, quoted(token.text) + " is an entry, which cannot be called");
  }
  return out;
}

// Variables in .param of the body.
Operand BodyReader::call_list() {
  Operand out = make(Operand::Kind::list);
  reader_.expect('(');
  if (reader_.accept(')')) return out;
  do {
    if (out.elements.size() == kMostParameters) reader_.fail("too many arguments");
    if (begins_constant(reader_.token()))
      reader_.fail_ahead("constants as arguments are not handled");
    if (!reader_.at(Token::Kind::word)) reader_.unexpected("an argument");
    const Token token = reader_.take();
    const Symbol symbol = find(token.text);
    if (symbol.kind == Symbol::Kind::none) {
      throw Error(token.line, quoted(token.text) + " is not declared");
    }
    if (symbol.kind == Symbol::Kind::reg) {
      throw Error(token.line, "registers as arguments are not handled");
    }
    if (symbol.kind != Symbol::Kind::local ||
        function_.locals[symbol.index].space != Space::param) {
      throw Error(token.line, quoted(token.text) + " is not a variable in .param of the function");
    }
    Operand& argument = out.elements.emplace_back(make(Operand::Kind::variable));
    argument.name = function_.locals[symbol.index].name;
    argument.index = symbol.index;
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
      out.name = reader_.token().text;
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
      out.name = token.text;
      if (reader_.at(Token::Kind::dotted)) reader_.fail_ahead("parts of registers are not handled");
      return out;
    case Symbol::Kind::local:
      out.name = function_.locals[symbol.index].name;
      out.index = symbol.index;
      break;
    case Symbol::Kind::parameter:
    case Symbol::Kind::result:
    case Symbol::Kind::variable: out.name = token.text; break;
    case Symbol::Kind::function: out.name = token.text; return out;
    case Symbol::Kind::none: return special(token);
    default: throw Error(token.line, quoted(token.text) + " cannot be an operand");
  }
  if (reader_.at('+')) out.offset = read_integer(reader_, "an offset");
  if (reader_.at('[')) reader_.fail_ahead("elements of arrays as operands are not handled");
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
    if (base.kind == Operand::Kind::reg && reader_.at('+')) {
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
