#pragma once

// Names of a function's body: registers, variables, labels and tables, by nested scopes.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/cuda_emulator/ptx/error.h"

namespace emulator::ptx {

struct Symbol {
  enum class Kind : uint8_t {
    none,
    reg,
    parameter,
    result,
    local,
    variable,  // of the module
    function,
    label,
    branch_table,
    prototype
  };
  Kind kind = Kind::none;
  uint32_t index = 0;  // into what holds its kind
  int line = 0;
};

class Scopes {
 public:
  static constexpr size_t kDepth = 128;
  static constexpr size_t kRanges = 1024;  // of registers in a scope, as every look-up tries all

  void clear() { scopes_.clear(); }
  bool empty() const { return scopes_.empty(); }
  size_t depth() const { return scopes_.size(); }
  void open(int line);
  void close() { scopes_.pop_back(); }

  // In the innermost scope; Error where that has the name already.
  void declare(std::string_view name, Symbol symbol);
  // Registers prefix0, prefix1, ... with consecutive indices from symbol.index.
  void declare_range(std::string_view prefix, uint32_t count, Symbol symbol);

  // The innermost symbol of that name, of kind none where there is none.
  Symbol find(std::string_view name) const;
  // The same in the innermost scope alone.
  Symbol find_innermost(std::string_view name) const;

 private:
  struct Range {
    std::string_view prefix;
    uint32_t count;
    Symbol symbol;
  };
  struct Scope {
    std::unordered_map<std::string_view, Symbol> symbols;
    std::vector<Range> ranges;
  };
  static Symbol find_in(const Scope& scope, std::string_view name);
  static bool overlap(const Range& a, const Range& b);

  std::vector<Scope> scopes_;
};

[[noreturn]] void fail_declared_twice(std::string_view name, int line, int first_line);

}  // namespace emulator::ptx
