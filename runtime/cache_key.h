// The key of a compiled kernel: everything that can change what the compiler makes of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel_source.h"

namespace krait {

/// Whom a kernel is compiled by and for.
struct Toolchain {
  std::string arch;  ///< In full: "sm_90a"; on the host the CPU's name.
  /// The compiler's identity as (tag, value), in a fixed order: on the host the LLVM version, the
  /// pass pipeline, the triple, the CPU and the feature string; for a GPU the build line of NVRTC.
  std::vector<std::pair<std::string, std::string>> identity;
  bool operator==(const Toolchain&) const = default;
};

/// SHA-256 over tagged, length-prefixed fields (so that no two lists of fields give one message):
/// file format, backend, entry, source, options, arch, identity. 64 hexadecimal digits.
std::string cache_key(const KernelSource& source, const Toolchain& toolchain);

/// The same over any fields.
std::string cache_key(const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace krait
