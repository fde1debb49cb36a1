// Matrix products by a BLAS of the machine, opened when first asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/gemm_calls.h"

namespace krait {

class Pool;

/// A library that cannot be loaded, or lacks what is needed, counts as absent; that is no error.
///
/// OpenBLAS is set to one thread, for the whole process, when it is opened. The result is cut into
/// blocks whose sizes depend on the shape only, and the pool runs those; so the bits do not depend
/// on the number of threads.
class Blas {
 public:
  /// `library` (Environment::libblas): the only one to try; "" tries OpenBLAS, then the system's.
  explicit Blas(std::string library = "");
  ~Blas();

  bool available() const;
  /// Bits of the vectors that its kernels work in, 0 where it does not say. A library may be older
  /// than the machine, or be told to use the kernels of a lesser one.
  int vector_bits() const;
  /// The file it was loaded from, "" when absent.
  std::string path() const;

  /// Extents of 0 are allowed. Throws UsageError when an extent or a row length does not fit the
  /// 32 bits of the interface or a row length is shorter than a row, EnvironmentError when absent.
  void gemm(Pool& pool, const GemmShape& shape, const float* a, const float* b, float* c) const;
  void gemm(Pool& pool, const GemmShape& shape, const double* a, const double* b, double* c) const;

 private:
  struct Library;

  const Library& library() const;

  std::unique_ptr<Library> library_;
};

}  // namespace krait
