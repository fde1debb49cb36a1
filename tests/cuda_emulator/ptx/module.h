#pragma once

// What a PTX text says, with its names resolved. The parser knows the grammar of PTX (chapters 4,
// 5, 10 and 11 of the PTX ISA); what an opcode and its modifiers mean is for isa/, which refuses
// those that it does not know.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda_emulator/ptx/error.h"

namespace emulator::ptx {

// Fundamental types and those that only instructions name are alike here; `bytes` gives a size.
enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
  u16x2,
  s16x2,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  f32x2,
  e2m1x2,
  e2m3x2,
  e3m2x2,
  ue8m0x2,
  e2m1x4,
  e2m3x4,
  e3m2x4,
  e4m3x4,
  e5m2x4,
  s4,
  u4,
  b1,
  e2m1,
  e2m3,
  e3m2,
  ue8m0,
  ue4m3
};

// The type of that name without its dot; none where there is no such type.
Type type_named(std::string_view name);
std::string_view name_of(Type type);
// Bytes of a value in memory or a register; 0 for none, pred and what is smaller than a byte.
unsigned bytes_of(Type type);
bool is_float(Type type);
bool is_signed(Type type);

enum class Space : uint8_t { generic, global, shared, local, constant, param };
std::string_view name_of(Space space);

// An address written into initial bytes: that of `symbol` plus `addend`, eight or four bytes.
struct Relocation {
  uint64_t offset = 0;
  std::string symbol;
  int64_t addend = 0;
  bool generic = false;  // written as generic(symbol)
  unsigned bytes = 8;
};

// A variable of a module or of a function, or a parameter.
struct Variable {
  std::string name;
  Space space = Space::global;
  Type type = Type::b8;  // of an element
  uint64_t bytes = 0;    // of all elements; 0 for `extern .shared x[]`
  uint64_t alignment = 1;
  bool external = false;  // .extern: no storage of its own but for shared memory of the launch
  bool visible = false;
  bool managed = false;  // .attribute(.managed): the host has it at the same address
  // The first bytes of .global and .const variables; those beyond its end are zeros. Bytes of
  // other spaces are undefined.
  std::vector<std::byte> initial;
  std::vector<Relocation> relocations;
  int line = 0;
};

struct Register {
  std::string name;  // as written, with its %
  Type type = Type::b32;
};

struct Operand {
  enum class Kind : uint8_t {
    reg,       // index: of the function's registers; name
    special,   // name: "%tid.x", "%clock64", "%laneid" ...
    integer,   // bits: the value, two's complement of 64 bits
    single,    // bits: those of an f32, written 0f........
    number,    // bits: those of an f64, written 0d................ or with a decimal point
    variable,  // name, offset: the address of a variable or function, as in mov
    address,   // [base + offset]: elements[0] is a reg, variable or integer
    tensor,    // [base + offset, {c0, ...}]: elements[0] is the address, elements[1] the vector
    vector,    // {a, b, ...}: elements
    label,     // name, index: of an instruction; the number of instructions at the body's end
    sink,      // _
    list,      // (a, b): arguments and results of call: variables, index: of the locals; as many
               // and as large as the function or prototype declares
    table      // index: of the function's branch_targets, or of its call prototypes; name
  };
  Kind kind = Kind::reg;
  bool negated = false;  // !p
  uint32_t index = 0;
  uint64_t bits = 0;
  int64_t offset = 0;  // of variable and address
  std::string name;
  std::vector<Operand> elements;
  // setp's p|q and shfl's d|p: the second of a pair of destinations.
  std::shared_ptr<Operand> second;
};

// Where an instruction comes from by .loc; file 0: unknown. For inlined code `file` and `line` are
// those of the inner function, outer_* the place in the outermost one where it came in (file 0: not
// inlined).
struct Source {
  uint32_t file = 0, line = 0, column = 0;
  uint32_t outer_file = 0, outer_line = 0;
};

struct Instruction {
  std::string opcode;                  // "ld", "mma", ...
  std::vector<std::string> modifiers;  // as written without the leading dots: "sync", "shared::cta"
  std::vector<Operand> operands;       // in order of writing; call f; has no lists
  std::optional<uint32_t> guard;       // a predicate register
  bool guard_negated = false;
  int line = 0;  // of the PTX text
  Source source;
};

struct Prototype {
  std::vector<Variable> results, parameters;
  bool no_return = false;
};

struct Function {
  std::string name;
  bool entry = false;
  bool defined = false;  // has a body
  bool visible = false;
  bool no_return = false;
  std::vector<Variable> results;  // .func only; space param like parameters (.reg is refused)
  std::vector<Variable> parameters;
  std::vector<Register> registers;  // names may repeat, by scope
  // Variables of the body (shared, local, param), whatever their scope. A name that an outer scope,
  // another scope or the module has already gets a suffix "@n", so a name in an operand is to be
  // looked up among these, the parameters and results, and then in the module.
  std::vector<Variable> locals;
  std::vector<Instruction> instructions;
  std::vector<std::vector<uint32_t>> branch_targets;  // of brx.idx: indices of instructions
  std::vector<Prototype> prototypes;                  // of indirect calls
  std::map<std::string, uint32_t> labels;             // for reports; unique like locals
  // 0: not given
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  uint32_t min_blocks = 0;                   // .minnctapersm
  uint32_t max_registers = 0;                // .maxnreg
  uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster
  uint32_t max_cluster_rank = 0;             // .maxclusterrank
  bool explicit_cluster = false, blocks_are_clusters = false;
  int line = 0;
};

struct Module {
  int version_major = 0, version_minor = 0;
  std::string target;                     // "sm_90a"
  bool debug = false;                     // .target ..., debug
  std::map<uint32_t, std::string> files;  // of .file
  std::vector<Variable> variables;        // of the module: global, const, shared
  std::vector<Function> functions;

  const Function* function(std::string_view name) const;
  const Variable* variable(std::string_view name) const;
};

// Reads a whole PTX text. Throws Error with the line for anything that the grammar does not have
// and for names that are not declared or declared twice. Debug sections (.section) are passed over.
// Text after a NUL is not read. Not handled, and errors too: addresses of 32 bits, textures and
// surfaces, .alias, .calltargets, parameters in registers, constants and registers as arguments,
// vectors and parts of registers, elements a[i] as operands, and variables in .global and .const of
// a function; none of them comes from NVRTC. More than 2^20 registers, 2^31 elements or 2^35 bytes
// are errors.
Module parse(std::string_view text);

}  // namespace emulator::ptx
