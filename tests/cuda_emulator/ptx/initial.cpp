// Initial values of variables (PTX ISA 5.4.4).

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/cuda_emulator/ptx/variables.h"

namespace emulator::ptx {

namespace {

void put(Variable& variable, uint64_t offset, uint64_t bits, unsigned bytes) {
  if (variable.initial.size() < offset + bytes) variable.initial.resize(offset + bytes);
  std::memcpy(variable.initial.data() + offset, &bits, bytes);
}

// Whether an element of that many bytes holds the integer, as a signed or an unsigned one.
bool fits(const Constant& c, unsigned bytes) {
  if (bytes >= 8) return true;
  const unsigned width = 8 * bytes;
  const auto value = static_cast<int64_t>(c.bits);
  if (c.kind == Constant::Kind::signed_integer && value < 0) return value >= -(1ll << (width - 1));
  return c.bits >> width == 0;
}

}  // namespace

uint64_t InitialReader::read(const std::vector<uint64_t>& dimensions) {
  const uint64_t count = dimensions.empty() ? (value(0), 1) : list(dimensions, 0, 0);
  finish_masked();
  return count;
}

// A list for the elements from `start` on; gives how many of this level it has.
uint64_t InitialReader::list(const std::vector<uint64_t>& dimensions, size_t depth,
                             uint64_t start) {
  const uint64_t most = dimensions[depth];
  uint64_t inner = 1;
  for (size_t i = depth + 1; i < dimensions.size(); ++i) inner *= dimensions[i];
  reader_.expect('{');
  uint64_t count = 0;
  do {
    if (most != 0 && count == most) {
      reader_.fail_ahead("more than " + std::to_string(most) + " initial values");
    }
    if (depth + 1 < dimensions.size()) {
      list(dimensions, depth + 1, start + count * inner);
    } else {
      value((start + count) * bytes_of(variable_.type));
    }
    ++count;
  } while (reader_.accept(','));
  reader_.expect('}');
  return count;
}

void InitialReader::value(uint64_t offset) {
  const Token& token = reader_.token();
  if (token.kind == Token::Kind::word && token.text != "WARP_SZ") {
    finish_masked();
    Relocation relocation = symbol_address(offset);
    relocation.bytes = bytes_of(variable_.type);
    const bool fits = relocation.bytes == 4 || relocation.bytes == 8;
    if (!fits || is_float(variable_.type)) reader_.fail("an address does not fit the element");
    put(variable_, offset, 0, relocation.bytes);
    variable_.relocations.push_back(std::move(relocation));
  } else if (token.kind == Token::Kind::integer && reader_.following().symbol == symbol('(')) {
    masked_address(offset);
  } else {
    finish_masked();
    constant(offset);
  }
}

void InitialReader::constant(uint64_t offset) {
  const int line = reader_.line();
  const Constant c = read_constant(reader_);
  const unsigned bytes = bytes_of(variable_.type);
  if (bytes > 8) throw Error(line, "initial values of 128 bits are not handled");
  if (c.is_integer()) {
    if (!fits(c, bytes)) throw Error(line, "an initial value that does not fit the type");
    if (is_float(variable_.type)) {
      throw Error(line, "an integer for a variable of floating point");
    }
    put(variable_, offset, c.bits, bytes);
    return;
  }
  const double wide = c.kind == Constant::Kind::number
                          ? std::bit_cast<double>(c.bits)
                          : double{std::bit_cast<float>(static_cast<uint32_t>(c.bits))};
  switch (variable_.type) {
    case Type::f32:
      put(variable_, offset,
          c.kind == Constant::Kind::single ? c.bits
                                           : std::bit_cast<uint32_t>(static_cast<float>(wide)),
          4);
      break;
    case Type::f64: put(variable_, offset, std::bit_cast<uint64_t>(wide), 8); break;
    default: throw Error(line, "a float for a variable of integers");
  }
}

// symbol, symbol + addend, generic(symbol), generic(symbol) + addend
Relocation InitialReader::symbol_address(uint64_t offset) {
  Relocation out;
  out.offset = offset;
  const int line = reader_.line();
  std::string_view name = reader_.word("a name");
  if (name == "generic" && reader_.accept('(')) {
    out.generic = true;
    name = reader_.word("a name");
  }
  out.symbol = name;
  const Symbol symbol = symbols_.find(name);
  if (symbol.kind == Symbol::Kind::none) throw Error(line, quoted(name) + " is not declared");
  const bool function = symbol.kind == Symbol::Kind::function;
  if (!function && module_.variables[symbol.index].space == Space::shared) {
    throw Error(line, "the address of " + quoted(name) + " is not known before a launch");
  }
  if (out.generic) {
    if (function) throw Error(line, "functions have no generic address");
    reader_.expect(')');
  }
  if (reader_.at('+')) out.addend = read_integer(reader_, "an addend");
  if (function && out.addend != 0) throw Error(line, "an address within a function");
  return out;
}

// 0xFF(symbol), 0xFF00(symbol), ...: the bytes of an address one by one, from the lowest.
void InitialReader::masked_address(uint64_t offset) {
  const int line = reader_.line();
  if (bytes_of(variable_.type) != 1) reader_.fail_ahead("masked addresses are only for bytes");
  const uint64_t mask = reader_.take().bits;
  reader_.expect('(');
  Relocation relocation = symbol_address(offset);
  reader_.expect(')');
  const bool first = masked_bytes_ == 0;
  if (mask != uint64_t{0xff} << (8 * masked_bytes_) ||
      (!first && (relocation.symbol != masked_.symbol || relocation.addend != masked_.addend ||
                  relocation.generic != masked_.generic))) {
    throw Error(line, "masked addresses must give all bytes of an address from the lowest on");
  }
  if (first) masked_ = std::move(relocation);
  if (++masked_bytes_ < 8) return;
  put(variable_, masked_.offset, 0, 8);
  masked_.bytes = 8;
  variable_.relocations.push_back(std::move(masked_));
  masked_bytes_ = 0;
}

void InitialReader::finish_masked() {
  if (masked_bytes_ != 0) {
    reader_.fail("masked addresses must give all bytes of an address from the lowest on");
  }
}

}  // namespace emulator::ptx
