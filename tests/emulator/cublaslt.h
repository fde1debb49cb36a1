#pragma once

// Products by the stand-in for cuBLASLt with all that they need, and what they should be by double
// loops. Operands are multiples of 1/8 between -2 and 2: every type holds them, and f32 adds their
// products exactly, so results are right to the last rounding.

#include <cublasLt.h>
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/emulator/harness.h"

namespace emulator_test::cublaslt {

template <class F>
F blas(const char* name) {
  static void* const library = dlopen(KRAIT_EMULATOR_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  void* const found = dlsym(library, name);
  if (!found) throw std::runtime_error(std::string("the library has no ") + name);
  return reinterpret_cast<F>(found);
}
#define BLAS(name) blas<decltype(&name)>(#name)

constexpr cublasStatus_t kSuccess = CUBLAS_STATUS_SUCCESS, kInvalid = CUBLAS_STATUS_INVALID_VALUE,
                         kUnsupported = CUBLAS_STATUS_NOT_SUPPORTED;

class Handle {
 public:
  Handle() { REQUIRE(BLAS(cublasLtCreate)(&handle_) == kSuccess); }
  ~Handle() { CHECK(BLAS(cublasLtDestroy)(handle_) == kSuccess); }
  operator cublasLtHandle_t() const { return handle_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
};

inline int bytes_of(cudaDataType type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

// Of values with few bits.
inline void encode(cudaDataType type, double value, std::byte* to) {
  const float single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  const uint32_t exponent = (bits >> 23 & 0xff) - 112;
  const auto half = static_cast<uint16_t>(
      value == 0 ? 0 : (bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
  const auto bfloat = static_cast<uint16_t>(bits >> 16);
  if (type == CUDA_R_64F) std::memcpy(to, &value, 8);
  if (type == CUDA_R_32F) std::memcpy(to, &single, 4);
  if (type == CUDA_R_16F) std::memcpy(to, &half, 2);
  if (type == CUDA_R_16BF) std::memcpy(to, &bfloat, 2);
}

inline double decode(cudaDataType type, const std::byte* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, size_t(bytes_of(type)));
  if (type == CUDA_R_64F) {
    double value;
    std::memcpy(&value, from, 8);
    return value;
  }
  if (type != CUDA_R_16F) {
    const auto wide = static_cast<uint32_t>(type == CUDA_R_16BF ? bits << 16 : bits);
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  const int exponent = int(bits >> 10 & 31);
  const double fraction = double(bits & 1023) / 1024;
  const double value = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                       : exponent     ? std::ldexp(1 + fraction, exponent - 15)
                                      : std::ldexp(fraction, -14);
  return bits & 0x8000 ? -value : value;
}

// Half a unit in the last place of a value of the type.
inline double half_ulp(cudaDataType type, double value) {
  const int mantissa = type == CUDA_R_64F   ? 52
                       : type == CUDA_R_32F ? 23
                       : type == CUDA_R_16F ? 10
                                            : 7;
  const int least = type == CUDA_R_16F ? -14 : -126;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - mantissa - 1);
}

struct MatrixSpec {
  int rows, columns;
  bool by_rows = false;
  int padding = 0;         // of the leading dimension
  bool broadcast = false;  // one for all of the batch
};

// A matrix, or a batch of them, on the device, with its values and descriptor.
struct Operand {
  cudaDataType type;
  MatrixSpec spec;
  int leading, stride, batch;
  std::vector<std::byte> bytes;
  Buffer buffer;
  cublasLtMatrixLayout_t layout = nullptr;

  Operand(cudaDataType type, const MatrixSpec& spec, int batch, std::mt19937& random)
      : type(type), spec(spec), batch(batch) {
    leading = (spec.by_rows ? spec.columns : spec.rows) + spec.padding;
    const int matrix = leading * (spec.by_rows ? spec.rows : spec.columns);
    stride = spec.broadcast ? 0 : matrix + spec.padding;
    bytes.resize(size_t(matrix + stride * (batch - 1)) * size_t(bytes_of(type)));
    std::uniform_int_distribution<int> draw(-16, 16);
    for (size_t at = 0; at < bytes.size(); at += size_t(bytes_of(type)))
      encode(type, draw(random) / 8.0, &bytes[at]);
    buffer = Buffer::of(bytes);
    REQUIRE(BLAS(cublasLtMatrixLayoutCreate)(&layout, type, uint64_t(spec.rows),
                                             uint64_t(spec.columns), leading) == kSuccess);
    if (spec.by_rows) set(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_ROW);
    if (batch > 1) {
      set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(batch));
      set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(stride));
    }
  }
  Operand(const Operand&) = delete;
  ~Operand() { BLAS(cublasLtMatrixLayoutDestroy)(layout); }

  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t attribute, T value) {
    REQUIRE(BLAS(cublasLtMatrixLayoutSetAttribute)(layout, attribute, &value, sizeof value) ==
            kSuccess);
  }
  size_t place(int b, int row, int column) const {
    const int major = spec.by_rows ? row : column, minor = spec.by_rows ? column : row;
    return size_t(b * stride + major * leading + minor) * size_t(bytes_of(type));
  }
  double at(int b, int row, int column) const {
    return decode(type, &bytes[place(b, row, column)]);
  }
  void* address() const { return reinterpret_cast<void*>(buffer.address()); }
};

struct Product {
  int m = 3, n = 5, k = 7;
  cudaDataType inputs = CUDA_R_32F, outputs = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  bool transpose_a = false, transpose_b = false;
  bool rows_a = false, rows_b = false, rows_c = false, rows_d = false;
  int padding = 0, batch = 1;
  bool broadcast_a = false, broadcast_b = false, broadcast_c = false;
  double alpha = 1, beta = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  int bias_stride = 0;
  bool device_scalars = false, workspace = false, in_place = false;

  cudaDataType scale() const { return compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F; }
};

// Everything that a product needs, and the call.
struct Call {
  Product p;
  std::mt19937 random{11};
  Operand a, b, c, d;
  std::vector<std::byte> bias_bytes, scalars = std::vector<std::byte>(16);
  Buffer bias, scalars_buffer, workspace;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found{};

  explicit Call(const Product& p)
      : p(p),
        a(p.inputs, spec(p.transpose_a, p.m, p.k, p.rows_a, p.broadcast_a), p.batch, random),
        b(p.inputs, spec(p.transpose_b, p.k, p.n, p.rows_b, p.broadcast_b), p.batch, random),
        c(p.outputs, spec(false, p.m, p.n, p.rows_c, p.broadcast_c), p.batch, random),
        d(p.outputs, spec(false, p.m, p.n, p.rows_d, false), p.batch, random) {
    REQUIRE(BLAS(cublasLtMatmulDescCreate)(&operation, p.compute, p.scale()) == kSuccess);
    REQUIRE(BLAS(cublasLtMatmulPreferenceCreate)(&preference) == kSuccess);
    if (p.transpose_a) set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_T));
    if (p.transpose_b) set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(CUBLAS_OP_T));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(p.epilogue));
    if (p.epilogue & CUBLASLT_EPILOGUE_BIAS) add_bias();
    encode(p.scale(), p.alpha, scalars.data());
    encode(p.scale(), p.beta, scalars.data() + 8);
    scalars_buffer = Buffer::of(scalars);
    if (p.device_scalars)
      set(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t(CUBLASLT_POINTER_MODE_DEVICE));
    if (p.workspace) {
      const uint64_t most = 1 << 20;
      BLAS(cublasLtMatmulPreferenceSetAttribute)
      (preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    }
  }
  Call(const Call&) = delete;
  ~Call() {
    BLAS(cublasLtMatmulDescDestroy)(operation);
    BLAS(cublasLtMatmulPreferenceDestroy)(preference);
  }

  MatrixSpec spec(bool transposed, int rows, int columns, bool by_rows, bool broadcast) const {
    return {transposed ? columns : rows, transposed ? rows : columns, by_rows, p.padding,
            broadcast};
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    REQUIRE(BLAS(cublasLtMatmulDescSetAttribute)(operation, attribute, &value, sizeof value) ==
            kSuccess);
  }
  void add_bias() {
    bias_bytes.resize(size_t((p.m + p.bias_stride * (p.batch - 1)) * bytes_of(p.outputs)));
    std::uniform_int_distribution<int> draw(-16, 16);
    for (size_t at = 0; at < bias_bytes.size(); at += size_t(bytes_of(p.outputs)))
      encode(p.outputs, draw(random) / 8.0, &bias_bytes[at]);
    bias = Buffer::of(bias_bytes);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(bias.address()));
    if (p.bias_stride) set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, int64_t(p.bias_stride));
  }

  const void* scalar(int which) const {
    return p.device_scalars ? reinterpret_cast<const void*>(scalars_buffer.address() + 8 * which)
                            : scalars.data() + 8 * which;
  }
  cublasStatus_t heuristic(cublasLtHandle_t handle, int* count) {
    return BLAS(cublasLtMatmulAlgoGetHeuristic)(handle, operation, a.layout, b.layout, c.layout,
                                                d.layout, preference, 1, &found, count);
  }
  cublasStatus_t run(cublasLtHandle_t handle, CUstream stream = nullptr) {
    int count = 0;
    if (const cublasStatus_t status = heuristic(handle, &count)) return status;
    REQUIRE(count == 1);
    REQUIRE(found.state == kSuccess);
    CHECK((found.workspaceSize > 0) == p.workspace);
    if (found.workspaceSize) workspace = Buffer(found.workspaceSize);
    return multiply(handle, stream, &found.algo, found.workspaceSize);
  }
  cublasStatus_t multiply(cublasLtHandle_t handle, CUstream stream,
                          const cublasLtMatmulAlgo_t* algo, size_t workspace_bytes) {
    return BLAS(cublasLtMatmul)(handle, operation, scalar(0), a.address(), a.layout, b.address(),
                                b.layout, scalar(1), p.in_place ? d.address() : c.address(),
                                p.in_place ? d.layout : c.layout, d.address(), d.layout, algo,
                                reinterpret_cast<void*>(workspace.address()), workspace_bytes,
                                reinterpret_cast<cudaStream_t>(stream));
  }

  double expected(int batch, int i, int j) const {
    double sum = 0;
    for (int k = 0; k < p.k; ++k)
      sum += (p.transpose_a ? a.at(batch, k, i) : a.at(batch, i, k)) *
             (p.transpose_b ? b.at(batch, j, k) : b.at(batch, k, j));
    double value = p.alpha * sum + p.beta * (p.in_place ? d : c).at(batch, i, j);
    if (p.epilogue & CUBLASLT_EPILOGUE_BIAS)
      value +=
          decode(p.outputs, &bias_bytes[size_t((batch * p.bias_stride + i) * bytes_of(p.outputs))]);
    if (p.epilogue & CUBLASLT_EPILOGUE_RELU) value = std::max(value, 0.0);
    if (p.epilogue & CUBLASLT_EPILOGUE_GELU)
      value *= 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (value + 0.044715 * std::pow(value, 3))));
    return value;
  }
  // Elements that are not right, and bytes between them that changed.
  int wrong() const {
    std::vector<std::byte> after = d.buffer.read<std::byte>();
    const bool gelu = p.epilogue & CUBLASLT_EPILOGUE_GELU;
    int count = 0;
    for (int batch = 0; batch < p.batch; ++batch)
      for (int i = 0; i < p.m; ++i)
        for (int j = 0; j < p.n; ++j) {
          const size_t at = d.place(batch, i, j);
          const double exact = expected(batch, i, j), error = decode(p.outputs, &after[at]) - exact;
          const double slack = gelu ? 1e-6 * (1 + std::fabs(exact)) : 0;
          if (!(std::fabs(error) <= half_ulp(p.outputs, exact) + slack)) ++count;
          std::copy_n(d.bytes.begin() + std::ptrdiff_t(at), bytes_of(p.outputs),
                      after.begin() + std::ptrdiff_t(at));
        }
    return after == d.bytes ? count : count + 1'000'000;
  }
};

}  // namespace emulator_test::cublaslt
