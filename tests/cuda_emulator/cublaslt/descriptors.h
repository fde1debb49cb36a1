#pragma once

// What lies in the opaque descriptors of cublasLt.

#include <cublasLt.h>

#include <cstdint>

namespace cublaslt_emulator {

struct Layout {
  uint64_t magic;
  uint64_t rows, columns;
  int64_t leading, stride, plane;
  uint32_t type;
  int32_t order, batch;
  uint32_t mode;
};

struct Operation {
  uint64_t magic;
  int32_t compute, scale, pointer_mode, transpose_a, transpose_b, transpose_c, fill;
  uint32_t epilogue;
  const void* bias;
  int64_t bias_stride;
  void* auxiliary;
  int64_t auxiliary_leading, auxiliary_stride, alpha_stride;
  const void *a_scale, *b_scale, *c_scale, *d_scale;
  void *d_most, *auxiliary_scale, *auxiliary_most, *d_out_scale, *emulation;
  int32_t multiprocessors, auxiliary_type, bias_type;
  int32_t a_mode, b_mode, c_mode, d_mode, auxiliary_mode, d_out_mode;
  int8_t fast;
};

struct Preference {
  uint64_t magic, workspace, implementations;
  uint32_t search, reductions, alignment[4];
  float waves;
};

// An algorithm, in cublasLtMatmulAlgo_t.
struct Algorithm {
  uint64_t magic;
  uint64_t workspace;  // bytes that it needs
};

inline constexpr uint64_t kLayoutMagic = 0x4c59'6c61'796f'7574,
                          kOperationMagic = 0x4c59'6f70'6572'6174,
                          kPreferenceMagic = 0x4c59'7072'6566'6572,
                          kAlgorithmMagic = 0x4c59'616c'676f'7269;

static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Operation) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

// Null where the descriptor is null or was not initialised.
const Layout* get(const cublasLtMatrixLayoutOpaque_t* layout);
const Operation* get(const cublasLtMatmulDescOpaque_t* operation);
const Preference* get(const cublasLtMatmulPreferenceOpaque_t* preference);
const Algorithm* get(const cublasLtMatmulAlgo_t* algorithm);

}  // namespace cublaslt_emulator
