#include "tests/cuda_emulator/ptx/variables.h"

#include <algorithm>
#include <bit>

namespace emulator::ptx {

namespace {

constexpr uint64_t kMostElements = uint64_t{1} << 31;
constexpr uint64_t kMostBytes = uint64_t{1} << 35;
constexpr uint64_t kMostAlignment = 65536;
constexpr size_t kMostDimensions = 16;

}  // namespace

bool is_fundamental(Type type) {
  switch (type) {
    case Type::none:
    case Type::bf16:
    case Type::bf16x2:
    case Type::tf32:
    case Type::u16x2:
    case Type::s16x2: return false;
    default: return type <= Type::f64;
  }
}

uint64_t VariableReader::alignment() {
  const int line = reader_.line();
  const uint64_t value = read_literal(reader_, 1, kMostAlignment, "an alignment");
  if (!std::has_single_bit(value)) throw Error(line, "an alignment must be a power of two");
  return value;
}

// .attribute(.managed), .attribute(.unified(a, b))
void VariableReader::attributes(Declared& declared) {
  reader_.expect('(');
  do {
    if (reader_.accept_dotted("managed")) {
      declared.managed = true;
    } else if (reader_.accept_dotted("unified")) {
      reader_.expect('(');
      read_integer(reader_, "an identity");
      reader_.expect(',');
      read_integer(reader_, "an identity");
      reader_.expect(')');
    } else {
      reader_.unexpected("an attribute");
    }
  } while (reader_.accept(','));
  reader_.expect(')');
}

Declared VariableReader::declared() {
  Declared out;
  for (;;) {
    if (!reader_.at(Token::Kind::dotted)) reader_.unexpected("a type");
    if (reader_.accept_dotted("align")) {
      if (out.alignment) reader_.fail("a second alignment");
      out.alignment = alignment();
    } else if (reader_.accept_dotted("attribute")) {
      attributes(out);
    } else if (reader_.at_dotted("v2") || reader_.at_dotted("v4")) {
      if (out.elements != 1) reader_.fail("a second vector size");
      out.elements = reader_.take().text == "v2" ? 2 : 4;
    } else if (reader_.at_dotted("texref") || reader_.at_dotted("samplerref") ||
               reader_.at_dotted("surfref")) {
      reader_.fail_ahead("textures and surfaces are not handled");
    } else {
      out.type = type_named(reader_.token().text);
      if (!is_fundamental(out.type)) reader_.unexpected("a type of variables");
      reader_.take();
      return out;
    }
  }
}

void VariableReader::dimensions(Variable& variable, uint64_t element) {
  dimensions_.clear();
  uint64_t count = 1;
  bool open = false;
  while (reader_.accept('[')) {
    if (dimensions_.size() == kMostDimensions) reader_.fail("too many dimensions");
    if (reader_.at(']')) {
      if (!dimensions_.empty()) reader_.fail("only the first dimension may be left out");
      open = true;
      dimensions_.push_back(0);
    } else {
      const uint64_t size = read_literal(reader_, 1, kMostElements, "the size of an array");
      count *= size;
      if (count > kMostElements) reader_.fail("an array of too many elements");
      dimensions_.push_back(size);
    }
    reader_.expect(']');
  }
  if (count * element > kMostBytes) reader_.fail("an array of too many bytes");
  variable.bytes = open ? 0 : count * element;
}

Variable VariableReader::declarator(const Declared& declared, Space space, std::string_view& name) {
  Variable variable;
  variable.line = reader_.line();
  name = reader_.word("the name of a variable");
  if (name == "_" || name == "WARP_SZ") {
    throw Error(variable.line, quoted(name) + " is not the name of a variable");
  }
  if (declared.type == Type::pred) {
    throw Error(variable.line, "predicates can only be registers");
  }
  variable.name = name;
  variable.space = space;
  variable.type = declared.type;
  variable.managed = declared.managed;
  const uint64_t vector = uint64_t{bytes_of(declared.type)} * declared.elements;
  variable.alignment = declared.alignment ? declared.alignment : vector;
  dimensions(variable, vector);
  element_bytes_ = bytes_of(declared.type);
  if (declared.elements > 1) dimensions_.push_back(declared.elements);
  return variable;
}

void VariableReader::initial(Variable& variable, const Symbols& symbols, const Module& module) {
  if (!reader_.accept('=')) return;
  if (variable.space != Space::global && variable.space != Space::constant) {
    reader_.fail("only variables in .global and .const have initial values");
  }
  if (variable.external) reader_.fail("an external variable has no initial value here");
  const uint64_t outermost = InitialReader(reader_, symbols, module, variable).read(dimensions_);
  if (dimensions_.empty() || dimensions_[0] != 0) return;
  uint64_t inner = element_bytes_;
  for (size_t i = 1; i < dimensions_.size(); ++i) inner *= dimensions_[i];
  variable.bytes = outermost * inner;
}

// .ptr, its space and its alignment, all of which only help a compiler.
void VariableReader::pointer_attributes() {
  for (const char* space : {"const", "global", "local", "shared"}) {
    if (reader_.accept_dotted(space)) break;
  }
  if (reader_.accept_dotted("align")) alignment();
}

Variable VariableReader::parameter(bool anonymous, bool pointers) {
  if (reader_.at_dotted("reg")) reader_.fail_ahead("parameters in registers are not handled");
  if (!reader_.accept_dotted("param")) reader_.unexpected(".param");
  const Declared what = declared();
  if (what.managed) reader_.fail("a parameter cannot be managed");
  if (what.elements != 1) reader_.fail("a parameter cannot be a vector");
  if (pointers && reader_.accept_dotted("ptr")) pointer_attributes();
  Variable variable;
  if (anonymous && reader_.at(Token::Kind::word) && reader_.token().text == "_") {
    variable.line = reader_.line();
    reader_.take();
    variable.name = "_";
    variable.space = Space::param;
    variable.type = what.type;
    if (what.type == Type::pred) reader_.fail("predicates can only be registers");
    variable.alignment = what.alignment ? what.alignment : bytes_of(what.type);
    dimensions(variable, bytes_of(what.type));
  } else {
    std::string_view name;
    variable = declarator(what, Space::param, name);
  }
  if (variable.bytes == 0) reader_.fail("parameters of unknown size are not handled");
  return variable;
}

std::vector<Variable> VariableReader::parameters(size_t most, bool anonymous, bool pointers) {
  std::vector<Variable> out;
  if (!reader_.accept('(')) return out;
  if (reader_.accept(')')) return out;
  do {
    if (out.size() == most) {
      reader_.fail("more than " + std::to_string(most) + (most == 1 ? " result" : " parameters"));
    }
    out.push_back(parameter(anonymous, pointers));
  } while (reader_.accept(','));
  reader_.expect(')');
  return out;
}

}  // namespace emulator::ptx
