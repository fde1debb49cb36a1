#pragma once

// Declarations of variables and parameters, with their initial values.

#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/cuda_emulator/ptx/constant.h"
#include "tests/cuda_emulator/ptx/module.h"
#include "tests/cuda_emulator/ptx/reader.h"
#include "tests/cuda_emulator/ptx/scopes.h"

namespace emulator::ptx {

// Names of the module.
class Symbols {
 public:
  // Of kind none where there is none.
  Symbol find(std::string_view name) const {
    const auto found = symbols_.find(name);
    return found == symbols_.end() ? Symbol{} : found->second;
  }
  void add(std::string_view name, Symbol symbol) { symbols_.emplace(name, symbol); }

 private:
  std::unordered_map<std::string_view, Symbol> symbols_;
};

// What stands before the names of a declaration: `.align 4 .v2 .b32`.
struct Declared {
  Type type = Type::none;
  unsigned elements = 1;   // of .v2, .v4
  uint64_t alignment = 0;  // 0: not given
  bool managed = false;
};

// Whether a register or variable may be declared with the type.
bool is_fundamental(Type type);

class VariableReader {
 public:
  explicit VariableReader(Reader& reader) : reader_(reader) {}

  // Behind the directive of the space: alignment, vector and type.
  Declared declared();
  // A name with its dimensions. `name` gets the view of it.
  Variable declarator(const Declared& declared, Space space, std::string_view& name);
  // Behind declarator(): the initial value if there is one. Sets the size of an array without one.
  void initial(Variable& variable, const Symbols& symbols, const Module& module);
  // Lists of parameters in parentheses, or nothing at all; at most `most`. Anonymous ones, named _,
  // are for prototypes; `pointers`: those of an entry may say where they point to.
  std::vector<Variable> parameters(size_t most, bool anonymous, bool pointers);

 private:
  Variable parameter(bool anonymous, bool pointers);
  void attributes(Declared& declared);
  uint64_t alignment();
  void pointer_attributes();
  void dimensions(Variable& variable, uint64_t element);

  Reader& reader_;
  // Of the declarator read last, outermost first; 0 for an open one. Vectors add one.
  std::vector<uint64_t> dimensions_;
  uint64_t element_bytes_ = 1;
};

// The initial value of a variable, behind '='.
class InitialReader {
 public:
  InitialReader(Reader& reader, const Symbols& symbols, const Module& module, Variable& variable)
      : reader_(reader), symbols_(symbols), module_(module), variable_(variable) {}

  // A value, or the nested lists of an array of these dimensions, the outermost of which may be 0:
  // open. Gives the number of elements of the outermost list.
  uint64_t read(const std::vector<uint64_t>& dimensions);

 private:
  uint64_t list(const std::vector<uint64_t>& dimensions, size_t depth, uint64_t start);
  void value(uint64_t offset);
  void constant(uint64_t offset);
  void masked_address(uint64_t offset);
  Relocation symbol_address(uint64_t offset);
  void finish_masked();

  Reader& reader_;
  const Symbols& symbols_;
  const Module& module_;
  Variable& variable_;
  // An address that is being put together from masked bytes: those there are, 0 for none.
  Relocation masked_;
  unsigned masked_bytes_ = 0;
};

}  // namespace emulator::ptx
