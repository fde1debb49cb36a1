// Products of a plan by a BLAS of the machine.
#pragma once

#include "runtime/gemm_calls.h"
#include "runtime/host/blas.h"

namespace krait {

/// `pointers`: of each object of the plan. Sums run in an order that only the sizes and strides
/// fix.
void run_gemm(const GemmCalls& calls, const Blas& blas, Pool& pool, void* const* pointers);

}  // namespace krait
