// Target: what a device allows and about how fast it is. What legality and cost are judged on.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/dtype.h"

namespace krait {

/// A plain value. Rates are nominal: they rank schedules of one graph on one device, and are not
/// measured. A device of another kind is another value of this type.
struct Target {
  std::string name = "host";
  /// Grid points that run at once.
  std::int64_t threads = 1;
  int vector_bits = 256;

  /// Bytes of fast memory of one thread, nearest first.
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10;
  /// Bytes that all threads share.
  std::int64_t memory_bytes = std::int64_t{4} << 30;
  /// Most bytes that one grid point of a kernel may keep on chip. On the host that is memory, which
  /// only must not be wasted.
  std::int64_t scratch_limit = 256 << 20;

  double cycles_per_second = 3e9;
  /// Vector operations a cycle, a multiply-add counted as one.
  double vectors_per_cycle = 2;
  /// Bytes a cycle of one thread, to and from each level.
  double l1_bytes_per_cycle = 64, l2_bytes_per_cycle = 32, far_bytes_per_cycle = 16;
  /// Bytes a second to and from memory, of all threads.
  double memory_bytes_per_second = 20e9;
  /// Seconds that a kernel costs before it has done anything.
  double launch_seconds = 4e-6;

  /// Elements of this dtype in one vector.
  double lanes(DType dtype) const {
    return static_cast<double>(vector_bits) / (8.0 * static_cast<double>(size_in_bytes(dtype)));
  }
  bool operator==(const Target&) const = default;
};

/// The machine that runs this: its processors, caches and memory as the system tells them, with
/// the defaults above where it does not. All processors count, however many threads a layer is
/// given: the schedule that is picked for a shape, and so every bit of the results, must not depend
/// on that number.
Target machine_target(int vector_bits);

/// A GPU of so many multiprocessors and bytes of memory, about as fast as one of its kind. What
/// fits on chip is judged where kernels are generated.
Target gpu_target(const std::string& name, std::int64_t multiprocessors, std::int64_t memory_bytes);

}  // namespace krait
