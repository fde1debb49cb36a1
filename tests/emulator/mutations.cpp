#include "tests/emulator/mutations.h"

#include <algorithm>
#include <utility>

namespace emulator_test {

namespace {

// What numbers are replaced with: what makes sizes, counts, shifts and offsets overflow.
constexpr const char* kExtremes[] = {"0",
                                     "1",
                                     "-1",
                                     "2",
                                     "31",
                                     "32",
                                     "33",
                                     "63",
                                     "64",
                                     "65",
                                     "127",
                                     "128",
                                     "255",
                                     "256",
                                     "1023",
                                     "1024",
                                     "1025",
                                     "65535",
                                     "65536",
                                     "0x7fffffff",
                                     "0x80000000",
                                     "0xffffffff",
                                     "4294967296",
                                     "0x7fffffffffffffff",
                                     "0x8000000000000000",
                                     "18446744073709551615",
                                     "99999999999999999999",
                                     "0f7FC00000",
                                     "0fFF800000",
                                     "0d7FF0000000000000",
                                     "1e308",
                                     "1.5",
                                     "1/0",
                                     "(1<<63)",
                                     "WARP_SZ"};

constexpr const char* kPieces[] = {
    "{",       "}",    "(",           ")",      "[",      "]",      "<",       ">",
    ";",       ",",    ":",           "|",      "!",      "@",      "_",       ".",
    "+",       "\"",   "/*",          "//",     ".align", ".v2",    ".v4",     ".b128",
    ".pred",   ".f64", ".u8",         ".param", ".reg",   "%tid.x", ".global", "%p1",
    ".shared", "ret;", "bar.sync 0;", "trap;",  "exit;",  "bra"};

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$';
}

struct Span {
  size_t start, length;
};

// Words with what may stand before them (. or %), and single other characters; no spaces.
std::vector<Span> tokens(std::string_view text) {
  std::vector<Span> out;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    if (is_word(text[i]) || text[i] == '.' || text[i] == '%') {
      do ++i;
      while (i < text.size() && is_word(text[i]));
    } else {
      ++i;
      if (text[start] <= ' ') continue;
    }
    out.push_back({start, i - start});
  }
  return out;
}

// What a token is taken to be like: registers those of their type, others what begins alike.
std::string_view kind_of(std::string_view token) {
  if (token[0] != '%') return token.substr(0, 1);
  return token.substr(0, token.find_first_of("0123456789"));
}

}  // namespace

Mutations::Mutations(uint64_t seed, std::vector<std::string> texts)
    : state_(seed), texts_(std::move(texts)) {
  for (const std::string& text : texts_) {
    for (const Span& span : tokens(text)) {
      const std::string_view token = std::string_view(text).substr(span.start, span.length);
      kinds_[kind_of(token)].push_back(token);
    }
  }
}

uint64_t Mutations::random() {
  // SplitMix64.
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

size_t Mutations::below(size_t bound) { return static_cast<size_t>(random() % bound); }

std::string Mutations::next() {
  std::string text = texts_[below(texts_.size())];
  for (size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) change(text);
  return text;
}

void Mutations::change(std::string& text) {
  const size_t kind = below(16);
  if (kind == 0) {
    change_bytes(text);
  } else if (kind == 1) {
    text.resize(below(text.size() + 1));
  } else if (kind < 4) {
    change_lines(text);
  } else {
    change_tokens(text);
  }
}

void Mutations::change_bytes(std::string& text) {
  const size_t at = below(text.size());
  switch (below(4)) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
    case 1: text[at] = static_cast<char>(below(256)); break;
    case 2: text.erase(at, 1 + below(8)); break;
    default: text.insert(at, 1 + below(3), static_cast<char>(' ' + below(95)));
  }
}

std::string_view Mutations::token_like(std::string_view token) {
  const auto found = kinds_.find(kind_of(token));
  return found == kinds_.end() ? token : found->second[below(found->second.size())];
}

void Mutations::change_tokens(std::string& text) {
  const std::vector<Span> spans = tokens(text);
  if (spans.empty()) return;
  const Span one = spans[below(spans.size())];
  const std::string token = text.substr(one.start, one.length);
  const bool number = token[0] >= '0' && token[0] <= '9';
  switch (below(12)) {
    case 0: text.erase(one.start, one.length); break;
    case 1: text.insert(one.start, token + (below(2) ? " " : "")); break;
    case 2: {
      Span other = spans[below(spans.size())], first = one;
      if (other.start < first.start) std::swap(first, other);
      if (first.start == other.start) break;
      const std::string a = text.substr(first.start, first.length);
      const std::string b = text.substr(other.start, other.length);
      text.replace(other.start, other.length, a);
      text.replace(first.start, first.length, b);
      break;
    }
    case 3: text.replace(one.start, one.length, kPieces[below(std::size(kPieces))]); break;
    case 4: text.insert(one.start, kPieces[below(std::size(kPieces))]); break;
    default:
      text.replace(one.start, one.length,
                   number ? kExtremes[below(std::size(kExtremes))] : token_like(token));
  }
}

// Deletes, doubles, moves or brings in a line.
void Mutations::change_lines(std::string& text) {
  const auto line_at = [&](const std::string& of) {
    const size_t at = below(of.size());
    const size_t before = of.rfind('\n', at == 0 ? 0 : at - 1);
    const size_t start = before == std::string::npos ? 0 : before + 1;
    const size_t end = of.find('\n', start);
    return Span{start, (end == std::string::npos ? of.size() : end + 1) - start};
  };
  const Span line = line_at(text);
  const std::string content = text.substr(line.start, line.length);
  const std::string& other = texts_[below(texts_.size())];
  switch (below(4)) {
    case 0: text.erase(line.start, line.length); break;
    case 1: text.insert(line.start, content); break;
    case 2:
      text.erase(line.start, line.length);
      if (!text.empty()) text.insert(line_at(text).start, content);
      break;
    default: {
      const Span from = line_at(other);
      text.insert(line.start, other.substr(from.start, from.length));
    }
  }
}

}  // namespace emulator_test
