// What the machine can do at best, measured: the numbers that times are read beside.
#pragma once

#include "dsl/dtype.h"
#include "runtime/host/device.h"

namespace krait {

struct HostLimits {
  /// a = b + s c over arrays that no cache holds, every thread busy: bytes read and written in a
  /// second, in 10^9.
  double bandwidth_gb_s = 0;
  /// Independent fused multiply-adds in vector registers, every thread busy: 10^9 operations a
  /// second, a multiply-add counted as two.
  double arithmetic_gflop_s = 0;
  /// A product of two square matrices by the machine's BLAS, the same unit; 0 where there is none.
  double blas_gflop_s = 0;
};

/// Takes near half a second. `dtype` is f32 or f64. The best of several tries, since what disturbs
/// a measurement only makes it slower.
HostLimits measure_limits(HostDevice& device, DType dtype);

/// What a copy between two tensors of 128 MiB reads and writes in a second, in 10^9 bytes. The best
/// of several tries.
double measure_copy(Device& device);

}  // namespace krait
