// Descriptors: made, initialised in place, and their attributes.

#include "tests/cuda_emulator/cublaslt/descriptors.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "tests/cuda_emulator/cublaslt/exported.h"

namespace cublaslt_emulator {
namespace {

template <class Opaque, class Own>
Own* own(Opaque* opaque, uint64_t magic) {
  Own* descriptor = reinterpret_cast<Own*>(opaque);
  return descriptor && descriptor->magic == magic ? descriptor : nullptr;
}

Layout* mutable_layout(cublasLtMatrixLayout_t layout) {
  return own<cublasLtMatrixLayoutOpaque_t, Layout>(layout, kLayoutMagic);
}

Operation* mutable_operation(cublasLtMatmulDesc_t operation) {
  return own<cublasLtMatmulDescOpaque_t, Operation>(operation, kOperationMagic);
}

Preference* mutable_preference(cublasLtMatmulPreference_t preference) {
  return own<cublasLtMatmulPreferenceOpaque_t, Preference>(preference, kPreferenceMagic);
}

// Where an attribute lies in a descriptor, and its bytes.
struct Attribute {
  int name;
  size_t offset, bytes;
};

#define ATTRIBUTE(name, type, member) \
  { name, offsetof(type, member), sizeof(type::member) }

constexpr Attribute kLayoutAttributes[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_TYPE, Layout, type),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ORDER, Layout, order),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ROWS, Layout, rows),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_COLS, Layout, columns),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_LD, Layout, leading),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, Layout, batch),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, Layout, stride),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, Layout, plane),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, Layout, mode)};

constexpr Attribute kOperationAttributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, Operation, compute),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SCALE_TYPE, Operation, scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_POINTER_MODE, Operation, pointer_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSA, Operation, transpose_a),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSB, Operation, transpose_b),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSC, Operation, transpose_c),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_FILL_MODE, Operation, fill),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE, Operation, epilogue),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, Operation, bias),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, Operation, bias_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, Operation, auxiliary),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, Operation, auxiliary_leading),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, Operation, auxiliary_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, Operation, alpha_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, Operation, multiprocessors),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, Operation, a_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, Operation, b_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, Operation, c_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, Operation, d_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, Operation, d_most),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, Operation, auxiliary_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, Operation, auxiliary_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, Operation, auxiliary_most),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_FAST_ACCUM, Operation, fast),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, Operation, bias_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, Operation, a_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, Operation, b_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, Operation, c_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, Operation, d_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, Operation, auxiliary_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, Operation, d_out_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, Operation, d_out_mode),
#if CUBLAS_VERSION >= 130100
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, Operation, emulation),
#endif
};

constexpr Attribute kPreferenceAttributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_SEARCH_MODE, Preference, search),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Preference, workspace),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, Preference, reductions),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, Preference, alignment[0]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, Preference, alignment[1]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Preference, alignment[2]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Preference, alignment[3]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, Preference, waves),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_IMPL_MASK, Preference, implementations)};

#undef ATTRIBUTE

template <size_t N>
const Attribute* find(const Attribute (&attributes)[N], int name) {
  for (const Attribute& attribute : attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

template <size_t N>
cublasStatus_t set(void* descriptor, const Attribute (&attributes)[N], int name, const void* from,
                   size_t bytes) {
  const Attribute* attribute = find(attributes, name);
  if (!descriptor || !attribute || !from || bytes != attribute->bytes)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(static_cast<char*>(descriptor) + attribute->offset, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <size_t N>
cublasStatus_t read(const void* descriptor, const Attribute (&attributes)[N], int name, void* to,
                    size_t bytes, size_t* written) {
  const Attribute* attribute = find(attributes, name);
  if (!descriptor || !attribute) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes == 0 ? !written : !to || bytes != attribute->bytes) return CUBLAS_STATUS_INVALID_VALUE;
  if (written) *written = attribute->bytes;
  if (bytes) std::memcpy(to, static_cast<const char*>(descriptor) + attribute->offset, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// A new descriptor that init(descriptor) fills.
template <class Opaque, class Init>
cublasStatus_t create(Opaque** to, Init&& init) {
  if (!to) return CUBLAS_STATUS_INVALID_VALUE;
  *to = new (std::nothrow) Opaque{};
  if (!*to) return CUBLAS_STATUS_ALLOC_FAILED;
  const cublasStatus_t status = init(*to);
  if (status == CUBLAS_STATUS_SUCCESS) return status;
  delete *to;
  *to = nullptr;
  return status;
}

}  // namespace

const Layout* get(const cublasLtMatrixLayoutOpaque_t* layout) {
  return own<const cublasLtMatrixLayoutOpaque_t, const Layout>(layout, kLayoutMagic);
}

const Operation* get(const cublasLtMatmulDescOpaque_t* operation) {
  return own<const cublasLtMatmulDescOpaque_t, const Operation>(operation, kOperationMagic);
}

const Preference* get(const cublasLtMatmulPreferenceOpaque_t* preference) {
  return own<const cublasLtMatmulPreferenceOpaque_t, const Preference>(preference,
                                                                       kPreferenceMagic);
}

const Algorithm* get(const cublasLtMatmulAlgo_t* algorithm) {
  return own<const cublasLtMatmulAlgo_t, const Algorithm>(algorithm, kAlgorithmMagic);
}

}  // namespace cublaslt_emulator

using namespace cublaslt_emulator;

EXPORTED cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t matLayout,
                                                          size_t size, cudaDataType type,
                                                          uint64_t rows, uint64_t cols,
                                                          int64_t ld) {
  if (!matLayout) return CUBLAS_STATUS_INVALID_VALUE;
  if (size < sizeof(Layout)) return CUBLAS_STATUS_ALLOC_FAILED;
  Layout layout{};
  layout.magic = kLayoutMagic;
  layout.type = type;
  layout.rows = rows;
  layout.columns = cols;
  layout.leading = ld;
  layout.batch = 1;
  layout.order = CUBLASLT_ORDER_COL;
  *matLayout = {};
  std::memcpy(matLayout, &layout, sizeof layout);
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout,
                                                   cudaDataType type, uint64_t rows, uint64_t cols,
                                                   int64_t ld) {
  return create(matLayout, [&](cublasLtMatrixLayout_t layout) {
    return cublasLtMatrixLayoutInit_internal(layout, sizeof *layout, type, rows, cols, ld);
  });
}

EXPORTED cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout) {
  delete matLayout;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matLayout,
                                                         cublasLtMatrixLayoutAttribute_t attr,
                                                         const void* buf, size_t sizeInBytes) {
  return set(mutable_layout(matLayout), kLayoutAttributes, attr, buf, sizeInBytes);
}

EXPORTED cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t matLayout,
                                                         cublasLtMatrixLayoutAttribute_t attr,
                                                         void* buf, size_t sizeInBytes,
                                                         size_t* sizeWritten) {
  return read(get(matLayout), kLayoutAttributes, attr, buf, sizeInBytes, sizeWritten);
}

EXPORTED cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t matmulDesc,
                                                        size_t size,
                                                        cublasComputeType_t computeType,
                                                        cudaDataType_t scaleType) {
  if (!matmulDesc) return CUBLAS_STATUS_INVALID_VALUE;
  if (size < sizeof(Operation)) return CUBLAS_STATUS_ALLOC_FAILED;
  Operation operation{};
  operation.magic = kOperationMagic;
  operation.compute = computeType;
  operation.scale = scaleType;
  operation.pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  operation.transpose_a = operation.transpose_b = operation.transpose_c = CUBLAS_OP_N;
  operation.fill = CUBLAS_FILL_MODE_FULL;
  operation.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  operation.auxiliary_type = operation.bias_type = -1;
  *matmulDesc = {};
  std::memcpy(matmulDesc, &operation, sizeof operation);
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc,
                                                 cublasComputeType_t computeType,
                                                 cudaDataType_t scaleType) {
  return create(matmulDesc, [&](cublasLtMatmulDesc_t operation) {
    return cublasLtMatmulDescInit_internal(operation, sizeof *operation, computeType, scaleType);
  });
}

EXPORTED cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc) {
  delete matmulDesc;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
                                                       cublasLtMatmulDescAttributes_t attr,
                                                       const void* buf, size_t sizeInBytes) {
  return set(mutable_operation(matmulDesc), kOperationAttributes, attr, buf, sizeInBytes);
}

EXPORTED cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t matmulDesc,
                                                       cublasLtMatmulDescAttributes_t attr,
                                                       void* buf, size_t sizeInBytes,
                                                       size_t* sizeWritten) {
  return read(get(matmulDesc), kOperationAttributes, attr, buf, sizeInBytes, sizeWritten);
}

EXPORTED cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t pref,
                                                              size_t size) {
  if (!pref) return CUBLAS_STATUS_INVALID_VALUE;
  if (size < sizeof(Preference)) return CUBLAS_STATUS_ALLOC_FAILED;
  Preference preference{};
  preference.magic = kPreferenceMagic;
  preference.search = CUBLASLT_SEARCH_BEST_FIT;
  preference.reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  for (uint32_t& alignment : preference.alignment) alignment = 256;
  preference.implementations = ~uint64_t{0};
  *pref = {};
  std::memcpy(pref, &preference, sizeof preference);
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* pref) {
  return create(pref, [](cublasLtMatmulPreference_t preference) {
    return cublasLtMatmulPreferenceInit_internal(preference, sizeof *preference);
  });
}

EXPORTED cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref) {
  delete pref;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attr, const void* buf,
    size_t sizeInBytes) {
  return set(mutable_preference(pref), kPreferenceAttributes, attr, buf, sizeInBytes);
}

EXPORTED cublasStatus_t cublasLtMatmulPreferenceGetAttribute(
    cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attr, void* buf,
    size_t sizeInBytes, size_t* sizeWritten) {
  return read(get(pref), kPreferenceAttributes, attr, buf, sizeInBytes, sizeWritten);
}
