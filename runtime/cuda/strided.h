// Copies and sums between tensors with any strides, as kernels.
#pragma once

#include <cstdint>

#include "codegen/kernel_source.h"
#include "runtime/tensor.h"

namespace krait {

/// A launch of (to, from, dims, count).
struct StridedCall {
  static constexpr int most_dims = 16;
  struct Dims {
    std::int64_t rank, shape[most_dims], to[most_dims], from[most_dims];
  };
  KernelSource source;
  const void* from = nullptr;
  void* to = nullptr;
  Dims dims{};
  std::int64_t count = 0;
  unsigned blocks = 1, threads = 256;
};

/// to = from, or to += from. Throws UsageError for shapes or dtypes that differ, more than 16 dims,
/// and a sum of 16-bit floats.
StridedCall strided_call(const TensorRef& from, const TensorRef& to, bool adds);

}  // namespace krait
