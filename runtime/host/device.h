// The host as a device: its compiler, its threads, its BLAS.
#pragma once

#include <memory>
#include <string>

#include "codegen/llvm/vector_target.h"
#include "runtime/compile.h"
#include "runtime/host/blas.h"
#include "runtime/host/pool.h"
#include "schedules/schedule.h"
#include "schedules/target.h"

namespace krait {

struct HostDeviceOptions {
  CompilerOptions compiler;
  /// The only BLAS to try, "" for those of the system. One that cannot be loaded ("none") leaves
  /// products to generated kernels.
  std::string libblas;
  int threads = 0;  ///< 0: all that the process may use
  /// Of every layer of the device, where the layer's own leaves keys open.
  Schedule schedule;

  /// As the environment says. Throws EnvironmentError for a schedule file that cannot be read,
  /// UsageError for one that says nothing sensible.
  static HostDeviceOptions from(const Environment& environment = read_environment());
};

/// Layers that share a device share its threads and every kernel that is equal. Safe to use from
/// several threads at once.
class HostDevice {
 public:
  explicit HostDevice(HostDeviceOptions options = HostDeviceOptions::from());

  Compiler& compiler() { return compiler_; }
  Pool& pool() { return pool_; }
  const Blas& blas() const { return blas_; }
  /// Whether products go to the BLAS: where there is one, unless its kernels work in narrower
  /// vectors than generated ones do and nobody asked for it by name.
  bool prefers_library() const;
  /// What kernels are generated for.
  VectorTarget vector_target() const;
  /// What schedules are judged on.
  const Target& target() const { return target_; }
  const Schedule& schedule() const { return schedule_; }

 private:
  Compiler compiler_;
  bool blas_named_;
  Blas blas_;
  Pool pool_;
  Target target_;
  Schedule schedule_;
};

}  // namespace krait
