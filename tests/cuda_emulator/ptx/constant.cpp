#include "tests/cuda_emulator/ptx/constant.h"

#include <bit>
#include <limits>

namespace emulator::ptx {

namespace {

constexpr int kDepth = 64;  // of nested parentheses and operators

Constant integer(uint64_t bits, bool is_unsigned) {
  return {is_unsigned ? Constant::Kind::unsigned_integer : Constant::Kind::signed_integer, bits};
}
Constant number(double value) { return {Constant::Kind::number, std::bit_cast<uint64_t>(value)}; }

double as_double(const Constant& c) {
  switch (c.kind) {
    case Constant::Kind::signed_integer: return static_cast<double>(static_cast<int64_t>(c.bits));
    case Constant::Kind::unsigned_integer: return static_cast<double>(c.bits);
    case Constant::Kind::single: return std::bit_cast<float>(static_cast<uint32_t>(c.bits));
    case Constant::Kind::number: return std::bit_cast<double>(c.bits);
  }
  return 0;
}

bool truth(const Constant& c) { return c.is_integer() ? c.bits != 0 : as_double(c) != 0; }

// How tight an operator binds, as in C; 0: not a binary operator.
int precedence(const Token& token) {
  if (token.kind != Token::Kind::punctuation) return 0;
  switch (token.symbol) {
    case symbol('*'):
    case symbol('/'):
    case symbol('%'): return 10;
    case symbol('+'):
    case symbol('-'): return 9;
    case symbol('<', '<'):
    case symbol('>', '>'): return 8;
    case symbol('<'):
    case symbol('>'):
    case symbol('<', '='):
    case symbol('>', '='): return 7;
    case symbol('=', '='):
    case symbol('!', '='): return 6;
    case symbol('&'): return 5;
    case symbol('^'): return 4;
    case symbol('|'): return 3;
    case symbol('&', '&'): return 2;
    case symbol('|', '|'): return 1;
    default: return 0;
  }
}

class Expression {
 public:
  explicit Expression(Reader& reader) : reader_(reader) {}

  Constant conditional() {
    const Level level(*this);
    const Constant condition = binary(1);
    if (!reader_.accept('?')) return condition;
    const Constant yes = conditional();
    reader_.expect(':');
    const Constant no = conditional();
    if (yes.is_integer() != no.is_integer()) reader_.fail("both values of ?: must be of one kind");
    Constant chosen = truth(condition) ? yes : no;
    if (chosen.is_integer()) {
      chosen.kind = yes.kind == no.kind ? yes.kind : Constant::Kind::unsigned_integer;
    }
    return chosen;
  }

 private:
  // Counts how deep expressions nest.
  struct Level {
    explicit Level(Expression& e) : expression(e) {
      if (++e.depth_ > kDepth) e.reader_.fail("expressions nested too deep");
    }
    ~Level() { --expression.depth_; }
    Expression& expression;
  };

  Constant binary(int least) {
    const Level level(*this);
    Constant left = unary();
    for (;;) {
      const int level_of = precedence(reader_.token());
      if (level_of == 0 || level_of < least) return left;
      const Token op = reader_.take();
      const Constant right = binary(level_of + 1);
      left = apply(op, left, right);
    }
  }

  Constant unary() {
    const Level level(*this);
    if (reader_.accept('+')) return unary();
    if (reader_.accept('-')) return negate(unary());
    if (reader_.accept('!')) return integer(!truth(unary()), false);
    if (reader_.accept('~')) {
      Constant value = unary();
      if (!value.is_integer()) reader_.fail("~ needs an integer");
      value.bits = ~value.bits;
      return value;
    }
    return primary();
  }

  static Constant negate(Constant value) {
    switch (value.kind) {
      case Constant::Kind::single: value.bits ^= uint64_t{1} << 31; break;
      case Constant::Kind::number: value.bits ^= uint64_t{1} << 63; break;
      default: value.bits = uint64_t{0} - value.bits;
    }
    return value;
  }

  Constant primary() {
    if (reader_.accept('(')) {
      if (reader_.at(Token::Kind::dotted)) return cast();
      const Constant value = conditional();
      reader_.expect(')');
      return value;
    }
    const Token& token = reader_.token();
    switch (token.kind) {
      case Token::Kind::integer: {
        const Token taken = reader_.take();
        return integer(taken.bits, taken.is_unsigned);
      }
      case Token::Kind::single: return {Constant::Kind::single, reader_.take().bits};
      case Token::Kind::number: return {Constant::Kind::number, reader_.take().bits};
      case Token::Kind::word:
        if (token.text == "WARP_SZ") {
          reader_.take();
          return integer(32, false);
        }
        reader_.fail_ahead(quoted(token.text) + " is not a constant");
      default: reader_.unexpected("a constant");
    }
  }

  Constant cast() {
    const bool to_unsigned = reader_.at_dotted("u64");
    if (!to_unsigned && !reader_.at_dotted("s64")) reader_.unexpected(".s64 or .u64");
    reader_.take();
    reader_.expect(')');
    const Constant value = unary();
    if (value.is_integer()) return integer(value.bits, to_unsigned);
    const double v = as_double(value);
    // Outside the range a conversion is not defined in C++ either.
    if (to_unsigned ? !(v > -1.0 && v < 0x1p64) : !(v >= -0x1p63 && v < 0x1p63)) {
      reader_.fail("a float that 64 bits do not hold");
    }
    return to_unsigned ? integer(static_cast<uint64_t>(v), true)
                       : integer(static_cast<uint64_t>(static_cast<int64_t>(v)), false);
  }

  Constant apply(const Token& op, const Constant& a, const Constant& b) {
    if (op.symbol == symbol('&', '&')) return integer(truth(a) && truth(b), false);
    if (op.symbol == symbol('|', '|')) return integer(truth(a) || truth(b), false);
    if (!a.is_integer() || !b.is_integer()) return apply_floats(op, as_double(a), as_double(b));
    const bool shift = op.symbol == symbol('<', '<') || op.symbol == symbol('>', '>');
    const bool is_unsigned = a.kind == Constant::Kind::unsigned_integer ||
                             (!shift && b.kind == Constant::Kind::unsigned_integer);
    if (precedence(op) == 6 || precedence(op) == 7) {
      return integer(is_unsigned ? compare(op.symbol, a.bits, b.bits)
                                 : compare(op.symbol, static_cast<int64_t>(a.bits),
                                           static_cast<int64_t>(b.bits)),
                     false);
    }
    return integer(arithmetic(op, a.bits, b.bits, is_unsigned), is_unsigned);
  }

  template <class T>
  static bool compare(uint16_t op, T a, T b) {
    switch (op) {
      case symbol('<'): return a < b;
      case symbol('>'): return a > b;
      case symbol('<', '='): return a <= b;
      case symbol('>', '='): return a >= b;
      case symbol('=', '='): return a == b;
      default: return a != b;
    }
  }

  uint64_t arithmetic(const Token& op, uint64_t a, uint64_t b, bool is_unsigned) {
    switch (op.symbol) {
      case symbol('+'): return a + b;
      case symbol('-'): return a - b;
      case symbol('*'): return a * b;
      case symbol('&'): return a & b;
      case symbol('|'): return a | b;
      case symbol('^'): return a ^ b;
      case symbol('/'):
      case symbol('%'): return divide(op, a, b, is_unsigned);
      default: return shift(op, a, b, is_unsigned);
    }
  }

  uint64_t divide(const Token& op, uint64_t a, uint64_t b, bool is_unsigned) {
    if (b == 0) throw Error(op.line, "division by zero");
    const bool quotient = op.symbol == symbol('/');
    if (is_unsigned) return quotient ? a / b : a % b;
    const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
    if (y == -1) return quotient ? uint64_t{0} - a : 0;
    return static_cast<uint64_t>(quotient ? x / y : x % y);
  }

  uint64_t shift(const Token& op, uint64_t a, uint64_t b, bool is_unsigned) {
    if (b > 63) throw Error(op.line, "a shift by more than 63 bits");
    if (op.symbol == symbol('<', '<')) return a << b;
    return is_unsigned ? a >> b : static_cast<uint64_t>(static_cast<int64_t>(a) >> b);
  }

  Constant apply_floats(const Token& op, double a, double b) {
    switch (op.symbol) {
      case symbol('+'): return number(a + b);
      case symbol('-'): return number(a - b);
      case symbol('*'): return number(a * b);
      case symbol('/'):
        if (b == 0) throw Error(op.line, "division by zero");
        return number(a / b);
      default:
        if (precedence(op) != 6 && precedence(op) != 7) {
          throw Error(op.line, quoted(op.text) + " needs integers");
        }
        return integer(compare(op.symbol, a, b), false);
    }
  }

  Reader& reader_;
  int depth_ = 0;
};

}  // namespace

bool begins_constant(const Token& token) {
  switch (token.kind) {
    case Token::Kind::integer:
    case Token::Kind::single:
    case Token::Kind::number: return true;
    case Token::Kind::word: return token.text == "WARP_SZ";
    case Token::Kind::punctuation:
      return token.symbol == symbol('-') || token.symbol == symbol('+') ||
             token.symbol == symbol('~') || token.symbol == symbol('(') ||
             token.symbol == symbol('!');
    default: return false;
  }
}

Constant read_constant(Reader& reader) { return Expression(reader).conditional(); }

int64_t read_integer(Reader& reader, const char* what) {
  if (!begins_constant(reader.token())) reader.unexpected(what);
  const int line = reader.line();
  const Constant value = read_constant(reader);
  if (!value.is_integer()) throw Error(line, std::string(what) + " must be an integer");
  return static_cast<int64_t>(value.bits);
}

uint64_t read_count(Reader& reader, uint64_t least, uint64_t most, const char* what) {
  const int line = reader.line();
  const auto value = static_cast<uint64_t>(read_integer(reader, what));
  if (value < least || value > most) {
    throw Error(line, std::string(what) + " must be from " + std::to_string(least) + " to " +
                          std::to_string(most));
  }
  return value;
}

uint64_t read_literal(Reader& reader, uint64_t least, uint64_t most, const char* what) {
  if (!reader.at(Token::Kind::integer)) reader.unexpected(what);
  const Token token = reader.take();
  if (token.bits < least || token.bits > most) {
    throw Error(token.line, std::string(what) + " must be from " + std::to_string(least) + " to " +
                                std::to_string(most));
  }
  return token.bits;
}

}  // namespace emulator::ptx
