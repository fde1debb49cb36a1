// LLVM behind a plain interface: IR text to a relocatable object, object to a callable function.
//
// Rounding is the text's own: no contraction and no fast-math is added, so a fused multiply-add is
// one where the text calls llvm.fma. The loop and SLP vectorizers and the unroller stay off (a loop
// that asks by metadata is unrolled), since the text is blocked and vectorized already. Kernels may
// call nothing outside their module but memcpy, memmove, memset, and fma where the CPU lacks it.
#pragma once

#include <memory>
#include <string>

#include "codegen/kernel_source.h"
#include "runtime/cache_key.h"
#include "runtime/host/kernel.h"
#include "runtime/host/target.h"

namespace krait {

/// Everything throws InternalError with LLVM's message, and the numbered source where there is one:
/// the text is made by krait, so a text that does not compile is krait's mistake. Safe to use from
/// several threads at once.
class HostJit {
 public:
  explicit HostJit(HostTarget target);
  ~HostJit();

  const HostTarget& target() const { return target_; }
  Toolchain toolchain() const;

  /// The relocatable object.
  std::string compile(const KernelSource& source) const;
  /// What compile would make, as assembly.
  std::string assembly(const KernelSource& source) const;

  struct Loaded {
    HostKernel function = nullptr;
    std::shared_ptr<void> memory;  ///< Keeps the code mapped; may outlive the HostJit.
  };
  /// Links an object that compile made, in this process or another one of the same toolchain.
  Loaded load(const std::string& object, const KernelSource& source) const;

 private:
  struct Session;

  HostTarget target_;
  std::shared_ptr<Session> session_;
};

}  // namespace krait
