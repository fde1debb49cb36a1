// Products of a plan as calls of a library: tensors with any strides as matrices, and loops over
// the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/plan.h"

namespace krait {

/// c (m, n) = op(a) op(b), or c += op(a) op(b); all in row-major order, op(a) is (m, k) and op(b)
/// is (k, n). A transposed operand lies in memory as (k, m) or (n, k).
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  ///< Elements from one row in memory to the next.
  bool accumulate = false;
};

/// Strides of each object of a plan, in elements.
using ObjectStrides = std::vector<std::vector<std::int64_t>>;

/// One product, cut into calls of a library. Axes that lie alike in both tensors that have them are
/// one dimension of a matrix; what does not fit a matrix is looped over.
struct GemmCalls {
  struct Loop {
    std::int64_t count = 1;
    std::int64_t a = 0, b = 0, c = 0;  // strides
    bool sum = false;                  // all but its first position are added to c
  };
  GemmShape shape;
  DType dtype = DType::f32;
  int a = -1, b = -1, c = -1;  // objects
  std::int64_t a_offset = 0, b_offset = 0, c_offset = 0;
  /// A vector of n elements, side by side, that is added to every row of c; -1: none.
  int bias = -1;
  std::int64_t bias_offset = 0;
  std::vector<Loop> loops;
};

/// Whether a library can compute this kernel (kind product) whatever the sizes: one dtype, f32 or
/// f64, one view a tensor that never leaves its bounds, and, with dense tensors, products that are
/// large enough to be worth a call each.
bool fits_library(const Plan& plan, const PlannedKernel& kernel);

/// The calls of a kernel that fits. Any strides will do; bad ones (no unit stride, rows that
/// overlap) only make more and smaller calls.
GemmCalls gemm_calls(const Plan& plan, const PlannedKernel& kernel, const Sizes& sizes,
                     const ObjectStrides& strides);

}  // namespace krait
