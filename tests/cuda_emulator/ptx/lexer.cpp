#include "tests/cuda_emulator/ptx/lexer.h"

#include <array>
#include <bit>
#include <charconv>
#include <limits>

namespace emulator::ptx {

namespace {

enum : uint8_t { kFollow = 1, kStart = 2, kDigit = 4, kSpace = 8 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 'a' + 'A'] = kFollow | kStart;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kFollow | kDigit;
  classes['_'] = classes['$'] = kFollow | kStart;
  for (char c : {' ', '\t', '\r', '\f', '\v', '\n'})
    classes[static_cast<unsigned char>(c)] = kSpace;
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

bool is(char c, uint8_t kind) { return kClasses[static_cast<unsigned char>(c)] & kind; }

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 60)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > 60) out += "...";
  return out + "'";
}

void Lexer::skip_comment() {
  if (peek(1) == '/') {
    while (at_ != end_ && *at_ != '\n' && *at_ != '\0') ++at_;
    return;
  }
  const int start = line_;
  for (at_ += 2; at_ != end_ && *at_ != '\0'; ++at_) {
    if (*at_ == '\n') ++line_;
    if (*at_ == '*' && peek(1) == '/') {
      at_ += 2;
      return;
    }
  }
  throw Error(start, "the comment that begins here does not end");
}

void Lexer::skip_space() {
  for (;;) {
    const char c = peek();
    if (is(c, kSpace)) {
      if (c == '\n') ++line_;
      ++at_;
    } else if (c == '/' && (peek(1) == '/' || peek(1) == '*')) {
      skip_comment();
    } else {
      return;
    }
  }
}

void Lexer::skip_to_brace() {
  const int start = line_;
  for (;;) {
    skip_space();
    const char c = peek();
    if (c == '\0') throw Error(start, "the text ends within a section");
    ++at_;
    if (c == '}') return;
  }
}

Token Lexer::next() {
  skip_space();
  Token token;
  token.line = line_;
  const char c = peek();
  if (c == '\0') return token;
  const char* start = at_;
  if (is(c, kStart) || (c == '%' && is(peek(1), kFollow))) {
    do ++at_;
    while (at_ != end_ && is(*at_, kFollow));
    token.kind = Token::Kind::word;
    token.text = {start, static_cast<size_t>(at_ - start)};
    return token;
  }
  if (c == '.' && is(peek(1), kFollow)) {
    do {
      ++at_;
      if (*at_ == ':' && peek(1) == ':' && is(peek(2), kFollow)) at_ += 2;
    } while (at_ != end_ && is(*at_, kFollow));
    token.kind = Token::Kind::dotted;
    token.text = {start + 1, static_cast<size_t>(at_ - start - 1)};
    return token;
  }
  if (is(c, kDigit)) return number(token);
  if (c == '"') return string(token);
  return punctuation(token);
}

Token Lexer::string(Token token) {
  const char* start = ++at_;
  while (at_ != end_ && *at_ != '"' && *at_ != '\n' && *at_ != '\0') at_ += *at_ == '\\' ? 2 : 1;
  if (at_ >= end_ || *at_ != '"') throw Error(token.line, "the string does not end in its line");
  token.kind = Token::Kind::string;
  token.text = {start, static_cast<size_t>(at_ - start)};
  ++at_;
  return token;
}

Token Lexer::punctuation(Token token) {
  const char c = *at_, d = peek(1);
  token.kind = Token::Kind::punctuation;
  const bool doubled = c == d && (c == '<' || c == '>' || c == '&' || c == '|' || c == '=');
  const bool with_equal = d == '=' && (c == '<' || c == '>' || c == '!');
  if (doubled || with_equal) {
    token.symbol = symbol(c, d);
    token.text = {at_, 2};
    at_ += 2;
    return token;
  }
  if (std::string_view("[]{}()<>,;:=@!|&^~+-*/%?").find(c) == std::string_view::npos) {
    fail("unexpected character " + quoted({at_, 1}));
  }
  token.symbol = symbol(c);
  token.text = {at_, 1};
  ++at_;
  return token;
}

// The digits of an integer in that base, its suffix, and the value.
void Lexer::digits(Token& token, unsigned base) {
  uint64_t value = 0;
  int count = 0;
  for (; at_ != end_ && digit_of(*at_) < static_cast<int>(base); ++at_, ++count) {
    const auto digit = static_cast<unsigned>(digit_of(*at_));
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / base) {
      fail("an integer beyond 64 bits");
    }
    value = value * base + digit;
  }
  if (count == 0) fail("a number without digits");
  token.kind = Token::Kind::integer;
  token.bits = value;
  token.is_unsigned = value >> 63;
  if (peek() == 'U') {
    token.is_unsigned = true;
    ++at_;
  }
}

// Exactly that many hexadecimal digits.
uint64_t Lexer::hexadecimal(Token& token, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i, ++at_) {
    const int digit = digit_of(peek());
    if (digit > 15) {
      throw Error(token.line, "a float in hexadecimal needs " + std::to_string(count) + " digits");
    }
    value = value << 4 | static_cast<unsigned>(digit);
  }
  return value;
}

// A decimal integer or floating-point number.
Token Lexer::decimal(Token token, const char* start) {
  const char* p = start;
  while (p != end_ && is(*p, kDigit)) ++p;
  const bool exponent = p != end_ && (*p == 'e' || *p == 'E');
  if (p == end_ || (*p != '.' && !exponent)) {
    digits(token, *start == '0' && p - start > 1 ? 8 : 10);
    return token;
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(start, end_, value);
  if (error != std::errc()) fail("a number that no double holds");
  at_ = rest;
  token.kind = Token::Kind::number;
  token.bits = std::bit_cast<uint64_t>(value);
  return token;
}

Token Lexer::number(Token token) {
  const char* start = at_;
  const char kind = *at_ == '0' ? peek(1) : '\0';
  if (kind == 'x' || kind == 'X') {
    at_ += 2;
    digits(token, 16);
  } else if (kind == 'b' || kind == 'B') {
    at_ += 2;
    digits(token, 2);
  } else if (kind == 'f' || kind == 'F') {
    at_ += 2;
    token.bits = hexadecimal(token, 8);
    token.kind = Token::Kind::single;
  } else if (kind == 'd' || kind == 'D') {
    at_ += 2;
    token.bits = hexadecimal(token, 16);
    token.kind = Token::Kind::number;
  } else {
    token = decimal(token, start);
  }
  if (is(peek(), kFollow)) fail("malformed number");
  token.text = {start, static_cast<size_t>(at_ - start)};
  return token;
}

}  // namespace emulator::ptx
