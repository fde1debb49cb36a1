// Products of a plan by cuBLASLt, NVIDIA's library of matrix products, opened when a first product
// asks for it.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

#include "runtime/device.h"

namespace krait {

/// What there is of the library, for people.
struct CublasLtStatus {
  std::string path, version;  // "" where there is none
  std::string problem;        // why not, ""
};

/// One handle, of one context. Safe to use from several threads; a prepared product belongs to one
/// call at a time.
class CublasLt {
 public:
  virtual ~CublasLt() = default;
  virtual const CublasLtStatus& status() const = 0;

  /// Descriptors, and the algorithms that the library's heuristics name for these sizes and strides
  /// with at most so many bytes of workspace; both are remembered. Throws EnvironmentError with the
  /// library's status where it has no algorithm.
  virtual std::shared_ptr<PreparedProduct> prepare(const GemmCalls& calls,
                                                   std::int64_t most_workspace) = 0;
  /// Gives the work to the stream, and no more: it can be captured. `pointers`: of each object of
  /// the plan. `workspace`: as many bytes as the product asks for, at least 16-byte aligned. Sums
  /// of f32 are of f32 products, not of TF32 ones. Throws EnvironmentError with the library's
  /// status.
  virtual void run(PreparedProduct& product, void* const* pointers, void* workspace,
                   CUstream stream) = 0;
};

/// In the current context, whose driver was opened from `driver_path`. Null where the library is
/// missing or cannot initialise; `status` says why.
///
/// $KRAIT_LIBCUBLASLT is the only file to try where it is set. Else a library is only taken where
/// krait's driver is the one that the loader calls libcuda.so.1, since that is what cuBLASLt opens
/// itself: memory of another driver would mean nothing to it.
std::unique_ptr<CublasLt> open_cublaslt(const std::string& driver_path, CublasLtStatus& status);

}  // namespace krait
