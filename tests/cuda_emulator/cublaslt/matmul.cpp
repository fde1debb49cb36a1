// cublasLtMatmul and its heuristic.
//
// A product is work of its stream like any kernel: its matrices are copied to page-locked memory, a
// host function multiplies them there, and D is copied back, element by element where there are
// gaps between its columns, which stay as they are. All of that can be captured; a captured product
// keeps its memory until the handle is destroyed, and its graph must not be launched after that.
// The workspace of the algorithm that has one is overwritten, as a real one would be.
//
// Choices where the documentation is silent: sizes of zero are INVALID_VALUE; C may be null where
// beta is a host zero; pointers must be aligned to their elements.

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "tests/cuda_emulator/cublaslt/exported.h"
#include "tests/cuda_emulator/cublaslt/handle.h"

namespace cublaslt_emulator {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

struct Pointers {
  const void *alpha, *a, *b, *beta, *c, *bias;
  void* d;
};

bool aligned(const void* pointer, unsigned bytes) { return address(pointer) % bytes == 0; }

bool host_zero(const Problem& problem, const void* scalar) {
  if (problem.device_scalars) return false;
  double twofold = 0;
  float single = 0;
  if (problem.twofold)
    std::memcpy(&twofold, scalar, sizeof twofold);
  else
    std::memcpy(&single, scalar, sizeof single);
  return twofold == 0 && single == 0;
}

bool pointers_valid(const Problem& p, const Pointers& of, bool reads_c) {
  if (!of.alpha || !of.beta || !of.a || !of.b || !of.d) return false;
  if (reads_c && !of.c) return false;
  if (p.bias && !of.bias) return false;
  return aligned(of.a, bytes_of(p.a.element)) && aligned(of.b, bytes_of(p.b.element)) &&
         (!reads_c || aligned(of.c, bytes_of(p.c.element))) &&
         aligned(of.d, bytes_of(p.d.element)) && aligned(of.bias, bytes_of(p.d.element));
}

// Hands out parts of the staging memory; the first pass, without memory, measures.
class Parts {
 public:
  explicit Parts(std::byte* memory) : memory_(memory) {}

  std::byte* take(uint64_t bytes) {
    constexpr uint64_t kAlignment = 64;
    std::byte* part = memory_ ? memory_ + used_ : nullptr;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return part;
  }
  uint64_t used() const { return used_; }

 private:
  std::byte* memory_;
  uint64_t used_ = 0;
};

uint64_t bytes_of(const Matrix& matrix, uint64_t batch) {
  return matrix.extent(batch) * bytes_of(matrix.element);
}

uint64_t bias_bytes(const Problem& p) {
  const uint64_t elements = (p.batch - 1) * static_cast<uint64_t>(p.bias_stride) + p.m;
  return elements * bytes_of(p.d.element);
}

uint64_t lay_out(const Problem& p, bool reads_c, std::byte* memory, Operands& to) {
  Parts parts(memory);
  to.a = parts.take(bytes_of(p.a, p.batch));
  to.b = parts.take(bytes_of(p.b, p.batch));
  to.c = reads_c ? parts.take(bytes_of(p.c, p.batch)) : nullptr;
  to.d = parts.take(bytes_of(p.d, p.batch));
  to.bias = p.bias ? parts.take(bias_bytes(p)) : nullptr;
  to.alpha = parts.take(sizeof(double));
  to.beta = parts.take(sizeof(double));
  return parts.used();
}

// Enqueues copies, fills and calls; after the first error nothing more.
class Queue {
 public:
  Queue(const Driver& driver, CUstream stream) : driver_(driver), stream_(stream) {}

  void to_host(const std::byte* to, const void* from, uint64_t bytes) {
    add([&] { return driver_.to_host(const_cast<std::byte*>(to), address(from), bytes, stream_); });
  }

  // A matrix of a batch, or all of them where they lie without gaps.
  void to_host(const std::byte* to, const void* from, const Matrix& matrix, uint64_t batch) {
    const auto stride = static_cast<uint64_t>(matrix.stride);
    if (stride <= matrix.extent()) return to_host(to, from, bytes_of(matrix, batch));
    const uint64_t step = stride * bytes_of(matrix.element);
    for (uint64_t i = 0; i < batch; ++i)
      to_host(to + i * step, static_cast<const std::byte*>(from) + i * step, bytes_of(matrix, 1));
  }

  void to_device(void* to, const std::byte* from, const Matrix& matrix, uint64_t batch) {
    const uint64_t step = static_cast<uint64_t>(matrix.stride) * bytes_of(matrix.element);
    for (uint64_t i = 0; i < batch; ++i)
      to_device(static_cast<std::byte*>(to) + i * step, from + i * step, matrix);
  }

  void fill(void* to, uint64_t bytes) {
    add([&] { return driver_.fill(address(to), 0xcd, bytes, stream_); });
  }

  void call(CUhostFn function, void* data) {
    add([&] { return driver_.call_host(stream_, function, data); });
  }

  CUresult result() const { return result_; }

 private:
  template <class F>
  void add(F&& enqueue) {
    if (result_ == CUDA_SUCCESS) result_ = enqueue();
  }

  void to_device(std::byte* to, const std::byte* from, const Matrix& matrix) {
    const unsigned element = bytes_of(matrix.element);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = address(to);
    copy.srcPitch = copy.dstPitch = static_cast<uint64_t>(matrix.leading) * element;
    copy.WidthInBytes = matrix.minor * element;
    copy.Height = matrix.major;
    const bool gapless = static_cast<uint64_t>(matrix.leading) == matrix.minor || matrix.major == 1;
    add([&] {
      return gapless ? driver_.to_device(address(to), from, bytes_of(matrix, 1), stream_)
                     : driver_.copy_rows(&copy, stream_);
    });
  }

  const Driver& driver_;
  CUstream stream_;
  CUresult result_ = CUDA_SUCCESS;
};

void CUDA_CB multiply_staged(void* data) {
  const Staging& staging = *static_cast<Staging*>(data);
  multiply(staging.problem, staging.operands);
}

void CUDA_CB release_staged(void* data) {
  static_cast<Staging*>(data)->busy.store(false, std::memory_order_release);
}

void take_scalar(Queue& queue, const Problem& p, const std::byte* to, const void* from) {
  const size_t bytes = p.twofold ? sizeof(double) : sizeof(float);
  if (p.device_scalars)
    queue.to_host(to, from, bytes);
  else
    std::memcpy(const_cast<std::byte*>(to), from, bytes);
}

cublasStatus_t enqueue(Handle& handle, const Problem& p, const Pointers& of, bool reads_c,
                       void* workspace, uint64_t workspace_bytes, CUstream stream) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (handle.driver.is_capturing(stream, &capture) != CUDA_SUCCESS)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  Operands measured;
  Staging* staging = handle.take(lay_out(p, reads_c, nullptr, measured));
  if (!staging) return CUBLAS_STATUS_ALLOC_FAILED;
  staging->problem = p;
  lay_out(p, reads_c, staging->memory, staging->operands);
  const Operands& to = staging->operands;
  Queue queue(handle.driver, stream);
  take_scalar(queue, p, to.alpha, of.alpha);
  take_scalar(queue, p, to.beta, of.beta);
  queue.to_host(to.a, of.a, p.a, p.batch);
  queue.to_host(to.b, of.b, p.b, p.batch);
  if (reads_c) queue.to_host(to.c, of.c, p.c, p.batch);
  if (p.bias) queue.to_host(to.bias, of.bias, bias_bytes(p));
  if (workspace_bytes) queue.fill(workspace, workspace_bytes);
  queue.call(multiply_staged, staging);
  queue.to_device(of.d, to.d, p.d, p.batch);
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE) {
    // After an error too: what was enqueued before it still uses the memory.
    Queue last(handle.driver, stream);
    last.call(release_staged, staging);
  }
  return queue.result() == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace
}  // namespace cublaslt_emulator

using namespace cublaslt_emulator;

EXPORTED cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle,
                                       cublasLtMatmulDesc_t computeDesc, const void* alpha,
                                       const void* A, cublasLtMatrixLayout_t Adesc, const void* B,
                                       cublasLtMatrixLayout_t Bdesc, const void* beta,
                                       const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                                       cublasLtMatrixLayout_t Ddesc,
                                       const cublasLtMatmulAlgo_t* algo, void* workspace,
                                       size_t workspaceSizeInBytes, cudaStream_t stream) {
  Handle* handle = get(lightHandle);
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  Problem problem;
  const Operation* operation = get(computeDesc);
  const cublasStatus_t status =
      check(operation, get(Adesc), get(Bdesc), get(Cdesc), get(Ddesc), problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (!alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
  const Pointers pointers{alpha, A, B, beta, C, problem.bias ? operation->bias : nullptr, D};
  const bool reads_c = !host_zero(problem, beta);
  if (!pointers_valid(problem, pointers, reads_c)) return CUBLAS_STATUS_INVALID_VALUE;
  uint64_t needed = 0;
  if (algo) {
    const Algorithm* algorithm = get(algo);
    if (!algorithm || (algorithm->workspace != 0 && algorithm->workspace != workspace_of(problem)))
      return CUBLAS_STATUS_INVALID_VALUE;
    needed = algorithm->workspace;
  }
  if (needed && (!workspace || workspaceSizeInBytes < needed || !aligned(workspace, 16)))
    return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue(*handle, problem, pointers, reads_c, workspace, needed,
                 reinterpret_cast<CUstream>(stream));
}

// One algorithm, the one with a workspace where the preference allows for it.
EXPORTED cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
    cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int* returnAlgoCount) {
  if (returnAlgoCount) *returnAlgoCount = 0;
  if (!get(lightHandle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Preference* wanted = get(preference);
  if (requestedAlgoCount <= 0 || !heuristicResultsArray || !returnAlgoCount || !wanted)
    return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  const cublasStatus_t status =
      check(get(operationDesc), get(Adesc), get(Bdesc), get(Cdesc), get(Ddesc), problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  Algorithm algorithm{kAlgorithmMagic, workspace_of(problem)};
  if (wanted->workspace < algorithm.workspace) algorithm.workspace = 0;
  cublasLtMatmulHeuristicResult_t& result = heuristicResultsArray[0];
  result = {};
  std::memcpy(&result.algo, &algorithm, sizeof algorithm);
  result.workspaceSize = algorithm.workspace;
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1.f;
  *returnAlgoCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}
