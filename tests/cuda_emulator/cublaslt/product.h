#pragma once

#include <cstddef>

#include "tests/cuda_emulator/cublaslt/problem.h"

namespace cublaslt_emulator {

// The matrices of a problem in host memory, laid out as on the device. c may be null: beta is 0.
struct Operands {
  const std::byte *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
  std::byte* d = nullptr;
  const std::byte *alpha = nullptr, *beta = nullptr;  // f64 or f32, as the problem computes
};

// D = epilogue(alpha op(A) op(B) + beta C + bias). Products are added up in rising k, in f32 or
// f64; C is not looked at where beta is 0. Writes the elements of D and nothing between them.
void multiply(const Problem& problem, const Operands& operands);

}  // namespace cublaslt_emulator
