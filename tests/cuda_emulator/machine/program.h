#pragma once

// The decoded functions of a module, and where its variables lie.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/cuda_emulator/machine/device.h"
#include "tests/cuda_emulator/machine/op.h"
#include "tests/cuda_emulator/ptx/module.h"

namespace emulator {

// Bytes of a space that belong to a variable; others are guard zones.
struct Range {
  uint64_t offset = 0, bytes = 0;
};

// A function ready to run. Positions are indices of `ops`, whose order is that of flow.h.
struct Code {
  const ptx::Function* function = nullptr;
  std::vector<Op> ops;  // the last one returns
  uint32_t units = 0, predicates = 0;
  uint32_t pressure = 0;  // most 32-bit registers alive at a time

  // Registers that may be read before they are written: undefined when the function starts.
  struct Undefined {
    uint32_t unit = 0;
    uint8_t units = 1, defined = 0;
  };
  std::vector<Undefined> undefined;

  std::vector<std::vector<uint32_t>> tables;  // of brx.idx: positions

  // Local memory of an activation, from its base: variables, then its .param space but for the
  // parameters of a kernel. Offsets in .param space start at 0 with the function's own parameters.
  uint64_t local_bytes = 0;         // with guard zones
  uint64_t parameter_bytes = 0;     // of a kernel
  uint64_t param_base = 0;          // where .param space from `param_first` on lies in local memory
  uint64_t param_first = 0;         // 0, or behind the parameters of a kernel
  std::vector<Range> local_ranges;  // all of these, sorted
  uint64_t local_variables = 0;     // bytes without guard zones
};

// Where the variables of a module lie.
struct Placement {
  ptx::Space space = ptx::Space::global;
  uint64_t offset = 0;  // the address in global space, from 0 in others
};

// What an entry has beside its code.
struct Entry {
  FunctionInfo info;
  size_t function = 0;
  // Shared memory: static variables with guard zones, then that of the launch from `dynamic` on.
  std::vector<Range> shared;
  uint64_t shared_end = 0, dynamic = 0;
};

// Units of constants: 128 bytes each, the same value in all lanes.
class Constants {
 public:
  Constants();
  // First unit of a value of up to 16 bytes.
  uint32_t unit(uint64_t low, uint64_t high, unsigned bytes);
  const std::byte* values() const { return reinterpret_cast<const std::byte*>(units_.data()); }
  const uint8_t* defined() const { return defined_.data(); }

 private:
  struct alignas(64) Unit {
    uint32_t lane[32];
  };
  std::vector<Unit> units_;
  std::map<std::tuple<uint64_t, uint64_t, unsigned>, uint32_t> known_;
  std::vector<uint8_t> defined_;
};

// Numbers that stand for functions where a program takes their addresses.
inline constexpr uint64_t kCodeWindow = 0x7e40'0000'0000, kCodeStep = 128;

class Program {
 public:
  Program() = default;
  ~Program();  // gives the device's memory back
  Program(const Program&) = delete;

  ptx::Module source;
  std::vector<Code> codes;  // as source.functions; empty where a function has no body
  std::vector<Entry> entries;
  Constants constants;
  std::unordered_map<const ptx::Variable*, Placement> placements;
  std::unordered_map<std::string, size_t> functions;
  uint64_t constant_address = 0, constant_bytes = 0;  // of all constant variables, guards too
  std::vector<uint8_t> constant_valid;                // 1 for the bytes of a variable
  DeviceMemory* memory = nullptr;
  std::vector<uint64_t> allocations;  // of it
  int architecture = 0;               // of the target

  const Arg* keep(const std::vector<Arg>& args);
  void keep(std::shared_ptr<const void> object) { objects_.push_back(std::move(object)); }
  // The function at an address; null where there is none.
  const Code* at(uint64_t address) const;
  uint64_t address_of(size_t function) const { return kCodeWindow + kCodeStep * (function + 1); }
  // A variable of a function or of the module; null where there is none.
  const ptx::Variable* variable(const ptx::Function& function, const std::string& name) const;

 private:
  std::vector<std::unique_ptr<Arg[]>> args_;
  size_t args_left_ = 0;
  Arg* args_next_ = nullptr;
  std::vector<std::shared_ptr<const void>> objects_;
};

// Offsets in .param space of a function: its parameters, then its results. They depend on sizes and
// alignments alone, as callers by address need it.
std::vector<uint64_t> param_places(const std::vector<ptx::Variable>& parameters,
                                   const std::vector<ptx::Variable>& results);
// Decodes one function; variables have their places.
void decode(Program& program, size_t function);
// Places global, constant and shared variables, and those of functions; makes program.entries.
void lay_out(Program& program, const Limits& limits);
// After decoding: registers of entries and how many threads these allow.
void estimate_registers(Program& program, const Limits& limits);

}  // namespace emulator
