#pragma once

// What a decoder of isa/ gets: the instruction, its operands checked and turned into Args.

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "tests/cuda_emulator/machine/op.h"

namespace emulator {

// Reads modifiers from the left, each once; whatever no one took is an error of the instruction.
class Modifiers {
 public:
  explicit Modifiers(const ptx::Instruction& instruction) : instruction_(instruction) {}

  // Takes the next modifier if it is that one.
  bool take(std::string_view name);
  // Takes the next modifier if it is one of these; gives its index, or -1.
  int take_one(std::initializer_list<std::string_view> names);
  // Takes a type, which must be one of those allowed (all if empty); Error names what is allowed.
  ptx::Type type(std::initializer_list<ptx::Type> allowed = {});
  bool more() const { return next_ < instruction_.modifiers.size(); }
  std::string_view peek() const;  // "" at the end
  // Error unless all were taken.
  void end() const;

 private:
  const ptx::Instruction& instruction_;
  size_t next_ = 0;
};

class Decoding {
 public:
  virtual ~Decoding() = default;

  const ptx::Instruction* instruction = nullptr;

  // Throws ptx::Error at the line of the instruction, with its text in front.
  [[noreturn]] virtual void fail(const std::string& what) const = 0;
  // Error unless the instruction has that many operands (between both).
  virtual void expect_operands(size_t least, size_t most) const = 0;
  void expect_operands(size_t count) const { expect_operands(count, count); }

  // Operand i as a source of that type. Registers: their width must fit by the rules of the ISA for
  // operands (9.4.1: same size, and kinds agree, where .b types fit everything of their size;
  // loads, stores and cvt may take wider registers: relaxed = true). Literals become constants of
  // that type, the addresses of variables constants of 64 (or 32) bits, special registers an extra
  // read. A pred type gives a predicate.
  virtual Arg source(const ptx::Operand& operand, ptx::Type type, bool relaxed = false) = 0;
  Arg source(size_t i, ptx::Type type, bool relaxed = false) {
    return source(instruction->operands.at(i), type, relaxed);
  }
  // Operand as a destination; a sink `_` is allowed where sink is true.
  virtual Arg target(const ptx::Operand& operand, ptx::Type type, bool relaxed = false,
                     bool sink = false) = 0;
  Arg target(size_t i, ptx::Type type, bool relaxed = false, bool sink = false) {
    return target(instruction->operands.at(i), type, relaxed, sink);
  }
  // A literal operand; Error for anything else.
  virtual int64_t literal(const ptx::Operand& operand) const = 0;
  int64_t literal(size_t i) const { return literal(instruction->operands.at(i)); }
  // Elements of a vector operand {..}, which must have that many.
  virtual const std::vector<ptx::Operand>& elements(const ptx::Operand& operand,
                                                    size_t count) const = 0;

  // The address of [reg + off], [variable + off] or [literal]: base is a source of 64 bits (32 for
  // shared, local, constant and param too), offset goes into op.imm[0]. A parameter's space is
  // param.
  struct Address {
    Arg base;  // always a 64-bit one: 32-bit registers are widened by an extra read
    int64_t offset = 0;
    // Where the address names a variable: its space, else generic.
    ptx::Space variable_space = ptx::Space::generic;
    const ptx::Variable* variable = nullptr;
  };
  virtual Address address(const ptx::Operand& operand, ptx::Space space) = 0;

  // Hands args to the program, which keeps them for the op.
  virtual const Arg* keep(const std::vector<Arg>& args) = 0;
  // Keeps an object for as long as the program lives.
  virtual const void* keep(std::shared_ptr<const void> object) = 0;
  // The register type of an operand that must be a register; none for others.
  virtual ptx::Type register_type(const ptx::Operand& operand) const = 0;
  // PTX version and architecture of the module: 90 for sm_90 and sm_90a.
  virtual int version() const = 0;  // 10 * major + minor
  virtual int architecture() const = 0;

  Op make(Class kind, void (*run)(Warp&, const Op&, Mask), const std::vector<Arg>& args) {
    Op op;
    op.kind = kind;
    op.run = run;
    op.args = keep(args);
    op.arg_count = static_cast<uint8_t>(args.size());
    op.source = instruction;
    return op;
  }
};

using Decoder = std::function<Op(Decoding&)>;

// Decoders by opcode. add, sub and the like exist for integers, floats and halves: those are given
// with the types they are for, and the last modifier of an instruction that is a type chooses.
class Decoders {
 public:
  void add(std::string_view opcode, Decoder decoder);
  void add(std::string_view opcode, std::initializer_list<ptx::Type> types, Decoder decoder);
  // Decodes decoding.instruction; fails there for an opcode or a type that no one added.
  Op decode(Decoding& decoding) const;

 private:
  std::map<std::string, Decoder, std::less<>> all_;
  std::map<std::string, std::map<ptx::Type, Decoder>, std::less<>> typed_;
};

// All opcodes there are; made once.
const Decoders& decoders();

// One function a file of isa/, called by decoders().
void add_integer(Decoders&);  // add sub mul mad sad div rem abs neg min max popc clz bfind fns brev
                              // bfe bfi bmsk szext dp4a dp2a mul24 mad24 addc subc madc
void add_logic(Decoders&);    // and or xor not cnot lop3 shf shl shr prmt
void add_floating(Decoders&);  // add sub mul fma mad div abs neg min max rcp sqrt testp copysign
void add_half(Decoders&);      // the f16, bf16 and packed forms; tanh, ex2 of them
void add_approximate(
    Decoders&);               // rcp sqrt rsqrt sin cos lg2 ex2 tanh of f32, and .f64 approximations
void add_compare(Decoders&);  // set setp selp slct
void add_convert(Decoders&);  // cvt cvt.pack, cvta isspacep (spaces come from machine/spaces.h)
void add_move(Decoders&);     // mov, packing and unpacking
void add_memory(Decoders&);   // ld ldu st prefetch prefetchu applypriority discard
void add_atomic(Decoders&);   // atom red membar fence
void add_async(Decoders&);    // cp.async, commit_group, wait_group, wait_all, mbarrier.arrive
void add_mbarrier(Decoders&);  // mbarrier.*
void add_matrix(Decoders&);    // ldmatrix stmatrix movmatrix
void add_mma(Decoders&);       // mma.sync
void add_warp(Decoders&);      // shfl vote match redux activemask elect bar.warp.sync
void add_control(Decoders&);   // bra brx call ret exit trap brkpt nanosleep bar barrier
                               // griddepcontrol pmevent

}  // namespace emulator
