#pragma once

// What a call of cublasLtMatmul asks for, checked: everything that its descriptors say, copied, so
// that they may be changed or destroyed before the stream comes to it.

#include <cublasLt.h>

#include <cstdint>

#include "tests/cuda_emulator/cublaslt/descriptors.h"

namespace cublaslt_emulator {

enum class Element { half, bfloat, single, twofold };
unsigned bytes_of(Element element);

// One of A, B, C, D as it lies in memory. `major` counts vectors of `minor` elements that lie one
// after another, `leading` elements apart: columns, or rows where `by_rows`.
struct Matrix {
  Element element = Element::single;
  uint64_t minor = 0, major = 0;
  int64_t leading = 0, stride = 0;  // of elements
  bool by_rows = false;

  // Elements from the first to behind the last one, in one matrix and in all of a batch.
  uint64_t extent() const { return (major - 1) * static_cast<uint64_t>(leading) + minor; }
  uint64_t extent(uint64_t batch) const {
    return (batch - 1) * static_cast<uint64_t>(stride) + extent();
  }
};

struct Problem {
  uint64_t m = 0, n = 0, k = 0, batch = 1;
  Matrix a, b, c, d;
  bool transpose_a = false, transpose_b = false;
  bool twofold = false;  // computes in f64, else in f32
  bool device_scalars = false;
  bool bias = false, relu = false, gelu = false;
  int64_t bias_stride = 0;
};

// CUBLAS_STATUS_SUCCESS and the problem, or why it is none:
// INVALID_VALUE: a descriptor is missing, sizes do not go together or are zero, a leading dimension
// is too small, matrices of D's batch overlap; NOT_SUPPORTED: types, orders, epilogues and modes
// that this library does not have.
cublasStatus_t check(const Operation* operation, const Layout* a, const Layout* b, const Layout* c,
                     const Layout* d, Problem& problem);

// Bytes of workspace that the faster one of the two algorithms of a problem needs.
uint64_t workspace_of(const Problem& problem);

}  // namespace cublaslt_emulator
