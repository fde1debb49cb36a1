#pragma once

// A text as a stream of tokens with one in view.

#include <string>
#include <string_view>

#include "tests/cuda_emulator/ptx/lexer.h"

namespace emulator::ptx {

class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(text), token_(lexer_.next()) {}

  const Token& token() const { return token_; }
  int line() const { return token_.line; }
  Token take() {
    Token token = token_;
    taken_ = token.line;
    token_ = lexer_.next();
    return token;
  }
  // The token after the one in view.
  Token following() const {
    Lexer copy = lexer_;
    return copy.next();
  }
  // With a '{' in view: on behind its '}', whatever is between them.
  void skip_braces();

  bool at(Token::Kind kind) const { return token_.kind == kind; }
  bool at(uint16_t symbol) const {
    return token_.kind == Token::Kind::punctuation && token_.symbol == symbol;
  }
  bool at(char c) const { return at(symbol(c)); }
  bool at_dotted(std::string_view text) const {
    return token_.kind == Token::Kind::dotted && token_.text == text;
  }
  bool accept(char c) {
    if (!at(c)) return false;
    take();
    return true;
  }
  bool accept_dotted(std::string_view text) {
    if (!at_dotted(text)) return false;
    take();
    return true;
  }
  void expect(char c) {
    if (!accept(c)) unexpected(std::string("'") + c + "'");
  }
  std::string_view word(const char* what) {
    if (token_.kind != Token::Kind::word) unexpected(what);
    return take().text;
  }

  // Fails for what was taken last, or for the token in view.
  [[noreturn]] void fail(const std::string& what) const { throw Error(taken_, what); }
  [[noreturn]] void fail_ahead(const std::string& what) const { throw Error(token_.line, what); }
  // Fails for the token in view where `expected` should be.
  [[noreturn]] void unexpected(const std::string& expected) const;

 private:
  Lexer lexer_;
  Token token_;
  int taken_ = 1;  // line of the token taken last
};

}  // namespace emulator::ptx
