#pragma once

#include <string>

#include "tests/cuda_emulator/ptx/module.h"

namespace emulator {

// An instruction in words, as errors and reports show it: parsed, so spaces may differ.
std::string text_of(const ptx::Instruction& instruction);

}  // namespace emulator
