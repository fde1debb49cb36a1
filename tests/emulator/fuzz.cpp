#include "tests/emulator/fuzz.h"

#include <cstring>
#include <new>

#include "tests/cuda_emulator/machine/device.h"
#include "tests/cuda_emulator/ptx/module.h"

namespace emulator_test {

namespace {

constexpr uint64_t kBuffer = 4096;
constexpr unsigned kThreads = 64;

bool may_launch(const emulator::FunctionInfo& entry, const emulator::Limits& limits) {
  for (unsigned n = 0; n < 3; ++n) {
    if (entry.required_threads[n] > (n == 0 ? kThreads : 1)) return false;
  }
  return entry.max_threads >= kThreads && entry.static_shared <= limits.shared_per_block &&
         entry.parameter_bytes <= 32764 && entry.local <= 65536;
}

std::vector<std::byte> parameters(const emulator::FunctionInfo& entry, uint64_t buffer) {
  std::vector<std::byte> out(entry.parameter_bytes);
  for (const auto& parameter : entry.parameters) {
    const uint64_t value = parameter.bytes >= 8 ? buffer : 3;
    for (unsigned at = 0; at + 1 <= parameter.bytes; at += 8) {
      std::memcpy(out.data() + parameter.offset + at, &value,
                  std::min<size_t>(8, parameter.bytes - at));
    }
  }
  return out;
}

bool launch(const emulator::Module& module, const emulator::FunctionInfo& entry,
            const emulator::Limits& limits, emulator::DeviceMemory& memory, uint64_t buffer) {
  emulator::Launch launch;
  launch.module = &module;
  launch.entry = &entry;
  launch.grid.x = 2;
  launch.block.x = kThreads;
  launch.dynamic_shared = 256;
  launch.parameters = parameters(entry, buffer);
  launch.seed = 7;
  launch.threads = 1;
  launch.patience = 2000;
  launch.most_instructions = 20000;
  try {
    emulator::run(launch, limits, memory);
    return true;
  } catch (const emulator::LaunchFailure& failure) {
    return failure.report.text().empty();  // never: a report says something
  }
}

}  // namespace

Outcome parse_text(const std::string& text) {
  try {
    emulator::ptx::parse(text);
    return Outcome::ran;
  } catch (const emulator::ptx::Error&) {
    return Outcome::malformed;
  }
}

Outcome run_text(const std::string& text) {
  if (parse_text(text) == Outcome::malformed) return Outcome::malformed;
  const bool newer = text.find("sm_90") != std::string::npos;
  const emulator::Limits limits = emulator::limits_of(newer ? 9 : 8, 0);
  emulator::DeviceMemory memory(uint64_t{1} << 22);
  bool failed = false;
  try {
    const emulator::Module module(text, limits, memory);
    const uint64_t buffer = memory.allocate(kBuffer);
    if (buffer == 0) return Outcome::refused;
    const uint32_t zero = 0;
    memory.fill(buffer, &zero, 4, kBuffer / 4);
    for (const std::string& name : module.entries()) {
      const emulator::FunctionInfo* entry = module.entry(name);
      if (may_launch(*entry, limits)) failed |= !launch(module, *entry, limits, memory, buffer);
    }
  } catch (const emulator::ptx::Error&) {
    return Outcome::refused;
  } catch (const emulator::NoImage&) {
    return Outcome::refused;
  } catch (const std::bad_alloc&) {
    return Outcome::refused;
  }
  return failed ? Outcome::failed : Outcome::ran;
}

}  // namespace emulator_test
