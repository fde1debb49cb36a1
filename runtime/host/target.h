// What the host's code is compiled for. A plain value: no LLVM type crosses this header.
#pragma once

#include <string>

namespace krait {

struct HostTarget {
  std::string triple;         ///< "x86_64-pc-linux-gnu"
  std::string cpu;            ///< LLVM's name, "znver4"
  std::string features;       ///< LLVM's feature string, "+avx2,-avx512f,..."; "" is what `cpu` has
  int vector_bits = 128;      ///< Widest vector register: 512, 256 or 128.
  int vector_registers = 16;  ///< Registers of that width.

  /// Elements of `bytes` bytes in one vector.
  int lanes(int bytes) const { return vector_bits / (8 * bytes); }

  friend bool operator==(const HostTarget&, const HostTarget&) = default;
};

/// This machine, or the CPU that LLVM calls `cpu` when it is not empty (Environment::host_cpu).
/// Throws UsageError when LLVM does not know that CPU or this machine lacks a feature of it, since
/// its code would stop the process.
HostTarget host_target(const std::string& cpu = "");

}  // namespace krait
