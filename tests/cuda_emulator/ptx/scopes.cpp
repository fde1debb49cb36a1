#include "tests/cuda_emulator/ptx/scopes.h"

#include "tests/cuda_emulator/ptx/lexer.h"

namespace emulator::ptx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number written in the digits, or -1 where it is not written as a count would be.
int64_t number_of(std::string_view digits) {
  if (digits.empty() || digits.size() > 10 || (digits.size() > 1 && digits[0] == '0')) return -1;
  int64_t value = 0;
  for (char c : digits) {
    if (!is_digit(c)) return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

void fail_declared_twice(std::string_view name, int line, int first_line) {
  throw Error(line, quoted(name) + " is declared already in line " + std::to_string(first_line));
}

void Scopes::open(int line) {
  if (scopes_.size() == kDepth) throw Error(line, "scopes nested too deep");
  scopes_.emplace_back();
}

Symbol Scopes::find_in(const Scope& scope, std::string_view name) {
  if (!scope.ranges.empty() && is_digit(name.back())) {
    for (const Range& range : scope.ranges) {
      const size_t length = range.prefix.size();
      if (name.size() <= length || name.substr(0, length) != range.prefix) continue;
      const int64_t number = number_of(name.substr(length));
      if (number < 0 || number >= range.count) continue;
      Symbol symbol = range.symbol;
      symbol.index += static_cast<uint32_t>(number);
      return symbol;
    }
  }
  if (scope.symbols.empty()) return {};
  const auto found = scope.symbols.find(name);
  return found == scope.symbols.end() ? Symbol{} : found->second;
}

Symbol Scopes::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const Symbol symbol = find_in(*scope, name);
    if (symbol.kind != Symbol::Kind::none) return symbol;
  }
  return {};
}

Symbol Scopes::find_innermost(std::string_view name) const { return find_in(scopes_.back(), name); }

void Scopes::declare(std::string_view name, Symbol symbol) {
  const Symbol first = find_innermost(name);
  if (first.kind != Symbol::Kind::none) fail_declared_twice(name, symbol.line, first.line);
  scopes_.back().symbols.emplace(name, symbol);
}

// Whether a name belongs to both: where one prefix is the other and digits, its names are those
// whose number begins with these digits.
bool Scopes::overlap(const Range& a, const Range& b) {
  const Range& shorter = a.prefix.size() <= b.prefix.size() ? a : b;
  const Range& longer = &shorter == &a ? b : a;
  const size_t length = shorter.prefix.size();
  if (longer.prefix.substr(0, length) != shorter.prefix) return false;
  const std::string_view digits = longer.prefix.substr(length);
  if (digits.empty()) return true;
  const int64_t number = number_of(digits);
  return number > 0 && number * 10 < shorter.count;
}

void Scopes::declare_range(std::string_view prefix, uint32_t count, Symbol symbol) {
  Scope& scope = scopes_.back();
  if (scope.ranges.size() == kRanges) throw Error(symbol.line, "too many ranges of registers");
  const Range fresh{prefix, count, symbol};
  for (const Range& range : scope.ranges) {
    if (overlap(range, fresh)) {
      fail_declared_twice(fresh.prefix.size() > range.prefix.size() ? fresh.prefix : range.prefix,
                          symbol.line, range.symbol.line);
    }
  }
  for (const auto& [name, single] : scope.symbols) {
    if (name.size() <= prefix.size() || name.substr(0, prefix.size()) != prefix) continue;
    const int64_t number = number_of(name.substr(prefix.size()));
    if (number >= 0 && number < count) fail_declared_twice(name, symbol.line, single.line);
  }
  scope.ranges.push_back(fresh);
}

}  // namespace emulator::ptx
