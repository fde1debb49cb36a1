#include <algorithm>
#include <new>

#include "tests/cuda_emulator/machine/device.h"
#include "tests/cuda_emulator/machine/program.h"

namespace emulator {
namespace {

// "sm_90a": 90; 0 where it is not of that form.
int number_of(const std::string& target, char* suffix) {
  int number = 0;
  size_t i = 3;
  if (target.rfind("sm_", 0) != 0) return 0;
  for (; i < target.size() && target[i] >= '0' && target[i] <= '9' && number < 1000; ++i) {
    number = 10 * number + (target[i] - '0');
  }
  *suffix = i < target.size() ? target[i] : 0;
  const bool known = *suffix == 0 || *suffix == 'a' || *suffix == 'f';
  return known && i + (*suffix != 0) == target.size() ? number : 0;
}

// PTX runs on its part and later ones; that of an `a` target on its part alone, that of an `f` one
// on those of its family.
void check_target(Program& program, const Limits& limits) {
  char suffix = 0;
  const std::string& target = program.source.target;
  const int part = 10 * limits.major + limits.minor;
  program.architecture = number_of(target, &suffix);
  const int needs = program.architecture;
  const bool runs = needs != 0 && (suffix == 'a'   ? needs == part
                                   : suffix == 'f' ? needs / 10 == part / 10 && needs <= part
                                                   : needs <= part);
  if (!runs) {
    throw NoImage("PTX for " + target + " does not run on a part of compute capability " +
                  std::to_string(limits.major) + "." + std::to_string(limits.minor));
  }
}

}  // namespace

Constants::Constants() : defined_(128, 0xff) {}

uint32_t Constants::unit(uint64_t low, uint64_t high, unsigned bytes) {
  const unsigned width = bytes >= 8 ? bytes : 4;
  const auto [found, fresh] = known_.try_emplace({low, width == 16 ? high : 0, width},
                                                 static_cast<uint32_t>(units_.size()));
  if (!fresh) return found->second;
  units_.resize(units_.size() + width / 4);
  uint32_t* to = units_[found->second].lane;
  for (unsigned i = 0; i < 32 * (width / 4); ++i) {
    const unsigned part = i % (width / 4);
    to[i] = static_cast<uint32_t>((part < 2 ? low : high) >> (part % 2 * 32));
  }
  return found->second;
}

const Arg* Program::keep(const std::vector<Arg>& args) {
  constexpr size_t kChunk = 4096;
  if (args.size() > args_left_) {
    args_left_ = std::max(kChunk, args.size());
    args_.push_back(std::make_unique<Arg[]>(args_left_));
    args_next_ = args_.back().get();
  }
  Arg* const to = args_next_;
  std::copy(args.begin(), args.end(), to);
  args_next_ += args.size();
  args_left_ -= args.size();
  return to;
}

const Code* Program::at(uint64_t address) const {
  if (address < kCodeWindow + kCodeStep || (address - kCodeWindow) % kCodeStep) return nullptr;
  const uint64_t function = (address - kCodeWindow) / kCodeStep - 1;
  if (function >= codes.size() || !source.functions[function].defined) return nullptr;
  return &codes[function];
}

const ptx::Variable* Program::variable(const ptx::Function& function,
                                       const std::string& name) const {
  for (const auto* list : {&function.locals, &function.parameters, &function.results}) {
    for (const ptx::Variable& variable : *list) {
      if (variable.name == name) return &variable;
    }
  }
  return source.variable(name);
}

Module::Module(const std::string& text, const Limits& limits, DeviceMemory& memory)
    : program(std::make_unique<Program>()) {
  program->source = ptx::parse(text);
  check_target(*program, limits);
  const auto& functions = program->source.functions;
  program->codes.resize(functions.size());
  program->memory = &memory;
  for (size_t i = 0; i < functions.size(); ++i) program->functions.emplace(functions[i].name, i);
  lay_out(*program, limits);
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].defined) decode(*program, i);
  }
  estimate_registers(*program, limits);
}

Module::~Module() = default;

Program::~Program() {
  for (uint64_t address : allocations) memory->release(address);
}

const FunctionInfo* Module::entry(const std::string& name) const {
  for (const Entry& entry : program->entries) {
    if (entry.info.name == name) return &entry.info;
  }
  return nullptr;
}

std::vector<std::string> Module::entries() const {
  std::vector<std::string> names;
  for (const Entry& entry : program->entries) names.push_back(entry.info.name);
  return names;
}

bool Module::variable(const std::string& name, uint64_t* address, uint64_t* bytes) const {
  const ptx::Variable* found = program->source.variable(name);
  if (!found || found->external) return false;
  const Placement& place = program->placements.at(found);
  if (place.space == ptx::Space::constant) {
    *address = program->constant_address + place.offset;
  } else if (place.space == ptx::Space::global) {
    *address = place.offset;
  } else {
    return false;
  }
  *bytes = found->bytes;
  return true;
}

}  // namespace emulator
