#pragma once

// Tokens of a PTX text. Views point into the text.

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/cuda_emulator/ptx/error.h"

namespace emulator::ptx {

// One or two characters of punctuation as a number.
constexpr uint16_t symbol(char first, char second = 0) {
  return static_cast<uint16_t>(static_cast<unsigned char>(first) |
                               (static_cast<unsigned char>(second) << 8));
}

struct Token {
  enum class Kind : uint8_t {
    end,
    word,         // an identifier; text
    dotted,       // .text, with its :: parts; text without the dot
    integer,      // bits
    single,       // 0f........; bits of an f32
    number,       // 0d................ or decimal; bits of an f64
    string,       // text between the quotes
    punctuation,  // symbol
  };
  Kind kind = Kind::end;
  bool is_unsigned = false;  // of integers: suffix U, or beyond the signed 64-bit range
  uint16_t symbol = 0;
  int line = 1;
  uint64_t bits = 0;
  std::string_view text;  // for punctuation and numbers: as written
};

class Lexer {
 public:
  explicit Lexer(std::string_view text)
      : at_(text.data()), end_(text.data() + text.size()), line_(1) {}

  Token next();
  // Passes over everything up to and including the next '}' outside comments.
  void skip_to_brace();

 private:
  void skip_space();
  void skip_comment();
  Token number(Token token);
  Token decimal(Token token, const char* start);
  void digits(Token& token, unsigned base);
  uint64_t hexadecimal(Token& token, int count);
  Token string(Token token);
  Token punctuation(Token token);
  char peek(int ahead = 0) const { return end_ - at_ > ahead ? at_[ahead] : '\0'; }
  [[noreturn]] void fail(const std::string& what) const { throw Error(line_, what); }

  const char* at_;
  const char* end_;
  int line_;
};

// Text from a source for messages: printable, in quotes, and short.
std::string quoted(std::string_view text);

}  // namespace emulator::ptx
