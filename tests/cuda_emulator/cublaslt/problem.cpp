#include "tests/cuda_emulator/cublaslt/problem.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace cublaslt_emulator {
namespace {

constexpr uint64_t kMostRows = std::numeric_limits<int32_t>::max();

std::optional<Element> element_of(uint32_t type) {
  switch (type) {
    case CUDA_R_16F: return Element::half;
    case CUDA_R_16BF: return Element::bfloat;
    case CUDA_R_32F: return Element::single;
    case CUDA_R_64F: return Element::twofold;
    default: return std::nullopt;
  }
}

// The table of cublasLtMatmul: A and B of one type, C and D of that type or of the compute type.
bool types_supported(const Operation& operation, Element a, Element b, Element c, Element d) {
  if (a != b || c != d) return false;
  switch (operation.compute) {
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return operation.scale == CUDA_R_32F && a != Element::twofold &&
             (c == a || c == Element::single);
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return operation.scale == CUDA_R_32F && a == Element::single && c == Element::single;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return operation.scale == CUDA_R_64F && a == Element::twofold && c == Element::twofold;
    default: return false;
  }
}

cublasStatus_t check_epilogue(const Operation& operation, Element d, Problem& problem) {
  switch (operation.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT: return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_EPILOGUE_RELU: problem.relu = true; break;
    case CUBLASLT_EPILOGUE_BIAS: problem.bias = true; break;
    case CUBLASLT_EPILOGUE_RELU_BIAS: problem.bias = problem.relu = true; break;
    case CUBLASLT_EPILOGUE_GELU: problem.gelu = true; break;
    case CUBLASLT_EPILOGUE_GELU_BIAS: problem.bias = problem.gelu = true; break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (problem.twofold) return CUBLAS_STATUS_NOT_SUPPORTED;  // f64 has the default one alone
  if (!problem.bias) return CUBLAS_STATUS_SUCCESS;
  if (operation.bias_type != -1 && element_of(static_cast<uint32_t>(operation.bias_type)) != d)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  problem.bias_stride = operation.bias_stride;
  return operation.bias_stride < 0 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

bool is_operation(int32_t transpose) {
  return transpose == CUBLAS_OP_N || transpose == CUBLAS_OP_T || transpose == CUBLAS_OP_C;
}

// Attributes that mean something this library does not do.
bool asks_for_more(const Operation& o) {
  return o.fill != CUBLAS_FILL_MODE_FULL || o.transpose_c != CUBLAS_OP_N || o.a_scale ||
         o.b_scale || o.c_scale || o.d_scale || o.d_most || o.auxiliary || o.auxiliary_scale ||
         o.auxiliary_most || o.d_out_scale || o.emulation || o.a_mode || o.b_mode || o.c_mode ||
         o.d_mode || o.auxiliary_mode || o.d_out_mode || o.alpha_stride;
}

cublasStatus_t check_matrix(const Layout& layout, Matrix& matrix) {
  const auto element = element_of(layout.type);
  if (!element) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (layout.plane != 0 || layout.mode != CUBLASLT_BATCH_MODE_STRIDED)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  matrix.element = *element;
  matrix.by_rows = layout.order == CUBLASLT_ORDER_ROW;
  matrix.minor = matrix.by_rows ? layout.columns : layout.rows;
  matrix.major = matrix.by_rows ? layout.rows : layout.columns;
  matrix.leading = layout.leading;
  matrix.stride = layout.stride;
  if (layout.rows == 0 || layout.columns == 0 || layout.rows > kMostRows ||
      layout.columns > kMostRows || layout.batch < 1 || layout.stride < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (layout.leading < static_cast<int64_t>(matrix.minor) ||
      layout.leading > static_cast<int64_t>(kMostRows))
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

bool sizes_agree(const Operation& operation, const Layout& a, const Layout& b, const Layout& c,
                 const Layout& d, Problem& problem) {
  problem.transpose_a = operation.transpose_a != CUBLAS_OP_N;
  problem.transpose_b = operation.transpose_b != CUBLAS_OP_N;
  problem.m = problem.transpose_a ? a.columns : a.rows;
  problem.k = problem.transpose_a ? a.rows : a.columns;
  problem.n = problem.transpose_b ? b.rows : b.columns;
  problem.batch = static_cast<uint64_t>(d.batch);
  const uint64_t inner = problem.transpose_b ? b.columns : b.rows;
  return inner == problem.k && c.rows == problem.m && c.columns == problem.n &&
         d.rows == problem.m && d.columns == problem.n && a.batch == d.batch &&
         b.batch == d.batch && c.batch == d.batch;
}

}  // namespace

unsigned bytes_of(Element element) {
  switch (element) {
    case Element::half:
    case Element::bfloat: return 2;
    case Element::single: return 4;
    default: return 8;
  }
}

cublasStatus_t check(const Operation* operation, const Layout* a, const Layout* b, const Layout* c,
                     const Layout* d, Problem& problem) {
  if (!operation || !a || !b || !c || !d) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_operation(operation->transpose_a) || !is_operation(operation->transpose_b))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (asks_for_more(*operation)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (operation->pointer_mode != CUBLASLT_POINTER_MODE_HOST &&
      operation->pointer_mode != CUBLASLT_POINTER_MODE_DEVICE)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  problem.device_scalars = operation->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  const Layout* layouts[] = {a, b, c, d};
  Matrix* matrices[] = {&problem.a, &problem.b, &problem.c, &problem.d};
  for (int i = 0; i < 4; ++i)
    if (const cublasStatus_t status = check_matrix(*layouts[i], *matrices[i])) return status;
  if (!types_supported(*operation, problem.a.element, problem.b.element, problem.c.element,
                       problem.d.element))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  problem.twofold = problem.a.element == Element::twofold;
  if (!sizes_agree(*operation, *a, *b, *c, *d, problem)) return CUBLAS_STATUS_INVALID_VALUE;
  if (problem.batch > 1 && static_cast<uint64_t>(problem.d.stride) < problem.d.extent())
    return CUBLAS_STATUS_INVALID_VALUE;
  return check_epilogue(*operation, problem.d.element, problem);
}

uint64_t workspace_of(const Problem& problem) {
  constexpr uint64_t kMost = uint64_t{4} << 20, kUnit = 256;
  const uint64_t sums = std::min(problem.m * problem.n * 4, kMost);
  return (sums + kUnit - 1) / kUnit * kUnit;
}

}  // namespace cublaslt_emulator
