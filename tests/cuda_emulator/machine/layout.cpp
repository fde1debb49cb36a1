// Where variables lie.

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include "tests/cuda_emulator/machine/program.h"
#include "tests/cuda_emulator/machine/spaces.h"

namespace emulator {
namespace {

constexpr uint64_t kSharedGuard = 256, kSharedStep = 128, kLocalGuard = 64, kConstantGuard = 64;

uint64_t rounded(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// Names that a function's instructions use, and what these lead to by calls and initial values.
class Uses {
 public:
  explicit Uses(const Program& program) : program_(program) {}

  std::set<const ptx::Variable*> shared(size_t function) {
    visit(function);
    return std::move(shared_);
  }

 private:
  void visit(size_t index) {
    if (!functions_.insert(index).second) return;
    const ptx::Function& function = program_.source.functions[index];
    for (const ptx::Instruction& instruction : function.instructions) {
      for (const ptx::Operand& operand : instruction.operands) visit(function, operand);
    }
  }

  void visit(const ptx::Function& function, const ptx::Operand& operand) {
    if (operand.kind == ptx::Operand::Kind::variable) name(function, operand.name);
    for (const ptx::Operand& element : operand.elements) visit(function, element);
  }

  void name(const ptx::Function& function, const std::string& name) {
    if (const ptx::Variable* variable = program_.variable(function, name)) {
      if (variable->space == ptx::Space::shared) shared_.insert(variable);
      if (!variables_.insert(variable).second) return;
      for (const ptx::Relocation& relocation : variable->relocations) {
        this->name(function, relocation.symbol);
      }
    } else if (const auto found = program_.functions.find(name);
               found != program_.functions.end()) {
      visit(found->second);
    }
  }

  const Program& program_;
  std::set<size_t> functions_;
  std::set<const ptx::Variable*> variables_, shared_;
};

// Shared variables have one place each, whichever entries use them; those that no entry uses
// together may overlap. Places agree with those of a packed layout modulo 128 bytes, so that bank
// conflicts are the same.
class SharedLayout {
 public:
  SharedLayout(Program& program, std::vector<std::set<const ptx::Variable*>> uses)
      : program_(program), uses_(std::move(uses)), ends_(uses_.size()) {}

  void run() {
    for (const ptx::Variable& variable : program_.source.variables) place(variable);
    for (const ptx::Function& function : program_.source.functions) {
      for (const ptx::Variable& variable : function.locals) place(variable);
    }
    place_dynamic();
    for (size_t i = 0; i < uses_.size(); ++i) fill(program_.entries[i], i);
  }

 private:
  struct End {
    uint64_t packed = 0, guarded = 0;
  };

  void place(const ptx::Variable& variable) {
    if (variable.space != ptx::Space::shared) return;
    if (variable.external) {
      dynamic_.push_back(&variable);
      return;
    }
    End end;
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (!uses_[i].count(&variable)) continue;
      end.packed = std::max(end.packed, ends_[i].packed);
      end.guarded = std::max(end.guarded, ends_[i].guarded);
    }
    const uint64_t packed = rounded(end.packed, variable.alignment);
    const uint64_t step = std::max(kSharedStep, variable.alignment);
    const uint64_t at = rounded(end.guarded, step) + packed % step;
    program_.placements[&variable] = {ptx::Space::shared, at};
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (!uses_[i].count(&variable)) continue;
      ends_[i].packed = packed + variable.bytes;
      ends_[i].guarded = at + variable.bytes + kSharedGuard;
    }
  }

  // All of an entry are at one place, and so for entries that share one of them.
  void place_dynamic() {
    std::vector<char> done(uses_.size(), 0);
    for (const ptx::Variable* variable : dynamic_) {
      if (program_.placements.count(variable)) continue;
      std::set<const ptx::Variable*> together{variable};
      for (bool grows = true; grows;) {
        grows = false;
        for (size_t i = 0; i < uses_.size(); ++i) {
          const bool mine = std::any_of(dynamic_.begin(), dynamic_.end(), [&](const auto* v) {
            return uses_[i].count(v) && together.count(v);
          });
          if (!mine || done[i]) continue;
          done[i] = 1;
          for (const ptx::Variable* other : dynamic_) {
            if (uses_[i].count(other)) grows |= together.insert(other).second;
          }
        }
      }
      place_together(together);
    }
  }

  void place_together(const std::set<const ptx::Variable*>& variables) {
    End end;
    uint64_t alignment = 16;
    for (const ptx::Variable* variable : variables) {
      alignment = std::max(alignment, variable->alignment);
      for (size_t i = 0; i < uses_.size(); ++i) {
        if (!uses_[i].count(variable)) continue;
        end.packed = std::max(end.packed, ends_[i].packed);
        end.guarded = std::max(end.guarded, ends_[i].guarded);
      }
    }
    const uint64_t step = std::max(kSharedStep, alignment);
    const uint64_t at = rounded(end.guarded, step) + rounded(end.packed, alignment) % step;
    for (const ptx::Variable* variable : variables) {
      program_.placements[variable] = {ptx::Space::shared, at};
    }
  }

  void fill(Entry& entry, size_t index) {
    entry.info.static_shared = static_cast<unsigned>(ends_[index].packed);
    entry.dynamic = rounded(ends_[index].guarded, kSharedStep);
    for (const ptx::Variable* variable : uses_[index]) {
      const uint64_t at = program_.placements.at(variable).offset;
      if (variable->external) {
        entry.dynamic = at;
      } else {
        entry.shared.push_back({at, variable->bytes});
        entry.shared_end = std::max(entry.shared_end, at + variable->bytes);
      }
    }
  }

  Program& program_;
  const std::vector<std::set<const ptx::Variable*>> uses_;
  std::vector<End> ends_;  // by entry
  std::vector<const ptx::Variable*> dynamic_;
};

// Parameters of a kernel.
void place_parameters(Program& program, Code& code) {
  for (const ptx::Variable& variable : code.function->parameters) {
    const uint64_t at = rounded(code.parameter_bytes, std::max<uint64_t>(variable.alignment, 1));
    program.placements[&variable] = {ptx::Space::param, at};
    code.parameter_bytes = at + variable.bytes;
  }
}

// Local variables and .param space of a function.
void place_private(Program& program, size_t index) {
  const ptx::Function& function = program.source.functions[index];
  Code& code = program.codes[index];
  code.function = &function;
  uint64_t local = 0, param = 0;
  for (const ptx::Variable& variable : function.locals) {
    if (variable.space != ptx::Space::local) continue;
    local = rounded(local, variable.alignment);
    program.placements[&variable] = {ptx::Space::local, local};
    code.local_ranges.push_back({local, variable.bytes});
    local += variable.bytes + kLocalGuard;
    code.local_variables += variable.bytes;
  }
  std::vector<Range> params;
  const auto place_param = [&](const ptx::Variable& variable, uint64_t at) {
    program.placements[&variable] = {ptx::Space::param, at};
    params.push_back({at, variable.bytes});
    param = at + variable.bytes + kLocalGuard;
  };
  if (function.entry) {
    place_parameters(program, code);
    code.param_first = param = rounded(code.parameter_bytes, kLocalGuard);
  } else {
    const auto places = param_places(function.parameters, function.results);
    for (size_t i = 0; i < places.size(); ++i) {
      const size_t results = function.parameters.size();
      place_param(i < results ? function.parameters[i] : function.results[i - results], places[i]);
    }
  }
  for (const ptx::Variable& variable : function.locals) {
    if (variable.space != ptx::Space::param) continue;
    place_param(variable, rounded(param, std::max<uint64_t>(variable.alignment, 1)));
  }
  code.param_base = rounded(local, 128);
  for (const Range& range : params) {
    code.local_ranges.push_back({range.offset - code.param_first + code.param_base, range.bytes});
  }
  code.local_bytes = code.local_ranges.empty() ? 0 : code.param_base + param - code.param_first;
}

void place_global(Program& program) {
  uint64_t constant = 0;
  for (const ptx::Variable& variable : program.source.variables) {
    if (variable.external && variable.space != ptx::Space::shared) {
      throw ptx::Error(variable.line, "the variable " + variable.name + " is defined nowhere");
    }
    if (variable.space == ptx::Space::constant) {
      constant = rounded(constant, variable.alignment);
      program.placements[&variable] = {ptx::Space::constant, constant};
      constant += variable.bytes;
      program.constant_valid.resize(constant - variable.bytes, 0);
      program.constant_valid.resize(constant, 1);
      constant += kConstantGuard;
    } else if (variable.space == ptx::Space::global) {
      const uint64_t address =
          program.memory->allocate(std::max<uint64_t>(variable.bytes, 1),
                                   std::max<uint64_t>(256, variable.alignment), variable.name);
      if (!address) throw std::bad_alloc();
      program.allocations.push_back(address);
      program.placements[&variable] = {ptx::Space::global, address};
    }
  }
  program.constant_valid.resize(constant, 0);
  program.constant_bytes = constant;
  if (!constant) return;
  program.constant_address = program.memory->allocate(constant, 256, "for constants");
  if (!program.constant_address) throw std::bad_alloc();
  program.allocations.push_back(program.constant_address);
}

uint64_t address_of(const Program& program, const ptx::Variable& holder,
                    const ptx::Relocation& relocation) {
  const auto addend = static_cast<uint64_t>(relocation.addend);
  if (const ptx::Variable* variable = program.source.variable(relocation.symbol)) {
    const Placement& place = program.placements.at(variable);
    const bool generic = relocation.generic || place.space == ptx::Space::global;
    return place.offset + addend + (generic ? window_of(place.space) : 0);
  }
  const auto found = program.functions.find(relocation.symbol);
  if (found == program.functions.end() || !program.source.functions[found->second].defined) {
    throw ptx::Error(holder.line, "the initial value of " + holder.name + " names " +
                                      relocation.symbol + ", which is not defined");
  }
  return program.address_of(found->second) + addend;
}

void initialise(Program& program) {
  for (const ptx::Variable& variable : program.source.variables) {
    const bool constant = variable.space == ptx::Space::constant;
    if (!constant && variable.space != ptx::Space::global) continue;
    std::vector<std::byte> bytes = variable.initial;
    bytes.resize(variable.bytes);
    for (const ptx::Relocation& relocation : variable.relocations) {
      const uint64_t address = address_of(program, variable, relocation);
      if (relocation.bytes > 8 || relocation.offset > bytes.size() ||
          relocation.bytes > bytes.size() - relocation.offset) {
        throw ptx::Error(variable.line, "an address lies outside of " + variable.name);
      }
      std::memcpy(&bytes[relocation.offset], &address, relocation.bytes);
    }
    const uint64_t at = program.placements.at(&variable).offset;
    if (!bytes.empty()) {
      program.memory->write(constant ? program.constant_address + at : at, bytes.data(),
                            bytes.size());
    }
  }
}

Entry make_entry(const Program& program, size_t index, const Limits& limits) {
  const ptx::Function& function = program.source.functions[index];
  const Code& code = program.codes[index];
  Entry entry;
  entry.function = index;
  FunctionInfo& info = entry.info;
  info.name = function.name;
  info.constant = static_cast<unsigned>(
      std::count(program.constant_valid.begin(), program.constant_valid.end(), 1));
  info.local = static_cast<unsigned>(code.local_variables);
  info.ptx_version = 10 * program.source.version_major + program.source.version_minor;
  info.target = program.architecture;
  info.max_threads = limits.threads_per_block;
  for (const ptx::Variable& parameter : function.parameters) {
    info.parameters.push_back({static_cast<unsigned>(program.placements.at(&parameter).offset),
                               static_cast<unsigned>(parameter.bytes)});
  }
  info.parameter_bytes = static_cast<unsigned>(code.parameter_bytes);
  std::copy(function.required_threads, function.required_threads + 3, info.required_threads);
  return entry;
}

}  // namespace

std::vector<uint64_t> param_places(const std::vector<ptx::Variable>& parameters,
                                   const std::vector<ptx::Variable>& results) {
  std::vector<uint64_t> places;
  uint64_t at = 0;
  for (const auto* list : {&parameters, &results}) {
    for (const ptx::Variable& variable : *list) {
      at = rounded(at, std::max<uint64_t>(variable.alignment, 16));
      places.push_back(at);
      at += variable.bytes + kLocalGuard;
    }
  }
  return places;
}

void lay_out(Program& program, const Limits& limits) {
  const auto& functions = program.source.functions;
  place_global(program);
  std::vector<std::set<const ptx::Variable*>> uses;
  for (size_t i = 0; i < functions.size(); ++i) {
    place_private(program, i);
    if (!functions[i].entry || !functions[i].defined) continue;
    program.entries.push_back(make_entry(program, i, limits));
    uses.push_back(Uses(program).shared(i));
  }
  SharedLayout(program, std::move(uses)).run();
  initialise(program);
}

void estimate_registers(Program& program, const Limits& limits) {
  constexpr unsigned kMost = 255;
  for (Entry& entry : program.entries) {
    const ptx::Function& function = program.source.functions[entry.function];
    const auto product = [](const uint32_t(&size)[3]) {
      return size[0] ? uint64_t{size[0]} * std::max(size[1], 1u) * std::max(size[2], 1u) : 0;
    };
    uint64_t threads = product(function.required_threads);
    if (!threads) threads = product(function.max_threads);
    uint64_t most = kMost;
    const uint64_t resident = threads * std::max(function.min_blocks, 1u);
    if (threads) most = std::min<uint64_t>(most, limits.registers_per_block / resident / 8 * 8);
    if (function.max_registers) most = std::min<uint64_t>(most, function.max_registers);
    // As ptxas takes them, by what some thirty kernels show: small ones are made to need less than
    // what their PTX keeps alive, large ones need more.
    const uint64_t alive = program.codes[entry.function].pressure;
    const uint64_t needs = 4 + alive * 3 / 4 + (alive > 64 ? (alive - 64) * 3 / 5 : 0);
    entry.info.registers = static_cast<unsigned>(std::max<uint64_t>(16, std::min(needs, most)));
    // A warp gets its registers in units of 8 a thread.
    const unsigned warps = limits.registers_per_block / 32 / ((entry.info.registers + 7) / 8 * 8);
    entry.info.max_threads = std::min(limits.threads_per_block, 32 * warps);
    if (threads) {
      entry.info.max_threads =
          static_cast<unsigned>(std::min<uint64_t>(threads, limits.threads_per_block));
    }
  }
}

}  // namespace emulator
