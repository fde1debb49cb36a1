#pragma once

// Decoding of one function: twice over all instructions, the first time to learn which registers
// each reads and writes, the second with the units that these got.

#include <string>
#include <vector>

#include "tests/cuda_emulator/machine/allocate.h"
#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/flow.h"
#include "tests/cuda_emulator/machine/program.h"

namespace emulator {

// Where a call takes its arguments and leaves its results; offsets are in .param space of the
// caller and of the callee.
struct Transfer {
  uint64_t from = 0, to = 0;
  unsigned bytes = 0;
};

enum class Builtin : uint8_t { none, vprintf, assertfail };

struct Call {
  const Code* callee = nullptr;  // null: indirect or built in
  Builtin builtin = Builtin::none;
  Arg address;  // of an indirect call
  bool no_return = false;
  std::vector<Transfer> arguments, results;
  std::vector<uint32_t> results_bytes, arguments_bytes;  // as the prototype says
};

class FunctionDecoding final : public Decoding {
 public:
  FunctionDecoding(Program& program, size_t function);
  void run();

  [[noreturn]] void fail(const std::string& what) const override;
  void expect_operands(size_t least, size_t most) const override;
  using Decoding::expect_operands;
  Arg source(const ptx::Operand& operand, ptx::Type type, bool relaxed) override;
  using Decoding::source;
  Arg target(const ptx::Operand& operand, ptx::Type type, bool relaxed, bool sink) override;
  using Decoding::target;
  int64_t literal(const ptx::Operand& operand) const override;
  using Decoding::literal;
  const std::vector<ptx::Operand>& elements(const ptx::Operand& operand,
                                            size_t count) const override;
  Address address(const ptx::Operand& operand, ptx::Space space) override;
  const Arg* keep(const std::vector<Arg>& args) override;
  const void* keep(std::shared_ptr<const void> object) override;
  ptx::Type register_type(const ptx::Operand& operand) const override;
  int version() const override;
  int architecture() const override { return program_.architecture; }

  // For call and ret.
  Op call();
  bool in_entry() const { return function_.entry; }

 private:
  void first_pass();
  void assign();
  void second_pass();
  void link(const std::vector<uint32_t>& starts);
  Op decode_one(uint32_t index);

  uint32_t add_temporary(ptx::Type type);
  Arg read_of(uint32_t reg);
  Arg written(uint32_t reg);
  Arg constant(uint64_t bits, ptx::Type type);
  Arg special(const ptx::Operand& operand, ptx::Type type, bool relaxed);
  Arg address_of(const ptx::Operand& operand, ptx::Type type);
  // The address of a variable: a constant, or an extra read in functions, whose local memory moves.
  Arg place_of(const ptx::Variable& variable, int64_t offset, ptx::Type type);
  Arg widened(const ptx::Operand& operand);
  Op before(void (*run)(Warp&, const Op&, Mask), const std::vector<Arg>& args);
  const ptx::Variable& variable_of(const ptx::Operand& operand) const;
  Transfer transfer(const ptx::Operand& operand, const ptx::Variable& parameter) const;
  std::vector<Transfer> transfers(const ptx::Operand* list,
                                  const std::vector<ptx::Variable>& parameters,
                                  const char* kind) const;

  void place_transfers(Call& how, const std::vector<ptx::Variable>& results,
                       const std::vector<ptx::Variable>& arguments);

  Program& program_;
  const size_t index_;
  const ptx::Function& function_;
  Code& code_;
  FlowGraph graph_;
  std::vector<ptx::Type> types_;  // of registers, then of temporaries
  std::vector<Accesses> accesses_;
  std::vector<uint32_t> temporaries_;  // first one, by instruction
  Allocation allocation_;
  bool second_ = false;

  // Of the instruction that is decoded.
  uint32_t current_ = 0, next_temporary_ = 0;
  unsigned pairs_ = 0;  // second destinations that were asked for
  std::vector<Op> before_;
  std::vector<std::unique_ptr<Arg[]>> scratch_;
  std::vector<std::shared_ptr<const void>> scratch_objects_;
};

// Reads of special registers; null where there is none of that name. isa/special.cpp.
struct Special {
  ptx::Type type = ptx::Type::u32;
  void (*run)(Warp&, const Op&, Mask) = nullptr;
  int64_t which = 0;
};
const Special* special_register(std::string_view name);

}  // namespace emulator
