#pragma once

// Which registers and literals an operand of a type may be.

#include <string>

#include "tests/cuda_emulator/ptx/module.h"

namespace emulator {

// PTX ISA, "Operand Type Checking" and, relaxed, "Operand Size Exceeding Instruction-Type Size".
bool operand_fits(ptx::Type reg, ptx::Type type, bool relaxed);
std::string mismatch(const ptx::Function& function, const ptx::Operand& operand, ptx::Type reg,
                     ptx::Type type);
// The bits of a literal as a value of that type; false where it cannot be one.
bool literal_bits(const ptx::Operand& operand, ptx::Type type, uint64_t* bits);

}  // namespace emulator
