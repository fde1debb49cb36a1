#pragma once

// The body of a function: statements (body.cpp), instructions and their operands (operands.cpp).

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/cuda_emulator/ptx/locations.h"
#include "tests/cuda_emulator/ptx/module.h"
#include "tests/cuda_emulator/ptx/reader.h"
#include "tests/cuda_emulator/ptx/scopes.h"
#include "tests/cuda_emulator/ptx/variables.h"

namespace emulator::ptx {

// Parameters of a function; the ISA limits their bytes only.
inline constexpr size_t kMostParameters = 4096;

class BodyReader {
 public:
  BodyReader(Reader& reader, Locations& locations, const Symbols& symbols, const Module& module,
             Function& function)
      : reader_(reader),
        locations_(locations),
        symbols_(symbols),
        module_(module),
        function_(function),
        variables_(reader) {}

  // From its '{' to its '}'. The body's registers are at most `registers`.
  void read(uint64_t registers);

 private:
  // A branch or an entry of a table of branch targets that names a label. That may be declared
  // behind its use, in the scope of the use or in one around it.
  struct Reference {
    std::string_view name;
    int line;
    uint32_t owner;     // an instruction, or a table
    uint32_t position;  // in the table
    bool in_table;
  };

  void declare_parameters();
  void statement();
  void directive();
  void registers();
  void local_variables(Space space);
  void labelled(const Token& name);
  void branch_targets(const Token& name);
  void prototype(const Token& name);
  void open_scope();
  void close_scope();
  std::string unique(std::string_view name);

  void instruction(const Token& opcode, std::optional<uint32_t> guard, bool guard_negated);
  void guarded_instruction();
  void operands(Instruction& instruction);
  void call_operands(Instruction& instruction);
  Operand call_list();
  Operand callee();
  Operand label();
  Operand table(Symbol::Kind kind);
  void check_call(const Instruction& instruction, const std::vector<Variable>& results,
                  const std::vector<Variable>& parameters) const;
  Operand operand();
  Operand word();
  Operand named(const Token& token);
  Operand special(const Token& token);
  Operand address();
  Operand vector();
  Operand constant();
  uint32_t predicate(const Token& token) const;
  Symbol find(std::string_view name) const;

  Reader& reader_;
  Locations& locations_;
  const Symbols& symbols_;
  const Module& module_;
  Function& function_;
  VariableReader variables_;
  Scopes scopes_;
  std::vector<std::vector<Reference>> references_;  // of each open scope
  std::unordered_set<std::string> names_;           // of variables and labels, made unique
  std::unordered_map<std::string, uint32_t> next_suffix_;
  uint64_t most_registers_ = 0;
};

}  // namespace emulator::ptx
