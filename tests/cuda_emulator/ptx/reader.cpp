#include "tests/cuda_emulator/ptx/reader.h"

namespace emulator::ptx {

void Reader::unexpected(const std::string& expected) const {
  if (token_.kind == Token::Kind::end)
    fail_ahead("the text ends where " + expected + " is expected");
  std::string found = token_.kind == Token::Kind::dotted   ? "." + std::string(token_.text)
                      : token_.kind == Token::Kind::string ? '"' + std::string(token_.text) + '"'
                                                           : std::string(token_.text);
  fail_ahead("expected " + expected + " before " + quoted(found));
}

void Reader::skip_braces() {
  if (!at('{')) unexpected("'{'");
  lexer_.skip_to_brace();
  token_ = lexer_.next();
}

}  // namespace emulator::ptx
