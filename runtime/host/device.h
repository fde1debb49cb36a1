// The host as a device: its compiler, its threads, its BLAS.
#pragma once

#include <memory>
#include <string>

#include "codegen/llvm/vector_target.h"
#include "runtime/device.h"
#include "runtime/host/blas.h"
#include "runtime/host/compiler.h"
#include "runtime/host/pool.h"

namespace krait {

struct HostDeviceOptions {
  CompilerOptions compiler;
  /// What kernels are compiled for.
  HostTarget host;
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

class HostDevice : public Device {
 public:
  explicit HostDevice(HostDeviceOptions options = HostDeviceOptions::from());

  const std::string& name() const override;
  const Target& target() const override { return target_; }
  const Schedule& schedule() const override { return schedule_; }
  Schedule with_defaults(const Schedule& given, const ScheduleRequest& request,
                         Prepared&) override {
    return krait::with_defaults(given, request, target_);
  }
  Compiler& compiler() override { return compiler_; }
  Pool& pool() override { return pool_; }

  Memory allocate(std::int64_t bytes, Stream stream) override;
  Memory scratch(std::int64_t bytes, Stream stream) override;
  void clear(void* memory, std::int64_t bytes, Stream stream) override;
  void write(void* memory, const void* from, std::int64_t bytes, Stream stream = {}) override;
  void read(void* to, const void* memory, std::int64_t bytes, Stream stream = {}) override;
  void copy(const TensorRef& from, const TensorRef& to, Stream stream = {}) override;
  void add(const TensorRef& from, const TensorRef& to, Stream stream = {}) override;
  /// Nothing can be told: all memory of the process is taken for what it is said to be.
  void require_reachable(const void*, const std::string&) const override {}

  /// Products go to the BLAS where there is one that can do them and the schedule leaves them to a
  /// library, unless its kernels work in narrower vectors than generated ones do and nobody asked
  /// for it, by name or by gemm=library.
  bool uses_library(const Plan& plan, const PlannedKernel& kernel) const override;
  GeneratedKernel generate(const Plan& plan, int kernel, const Prepared&) const override;
  void reserve_scratch(std::int64_t bytes) override;
  void launch(const Launch& launch) override;
  std::string library_text() const override;
  std::shared_ptr<PreparedProduct> prepare(const GemmCalls& calls, bool workspace) override;
  void product(PreparedProduct& product, void* const* pointers, void* workspace,
               Stream stream) override;
  void finish(Stream) override {}
  double milliseconds(const std::function<void(Stream)>& call) override;
  /// Throws UsageError: the host does its work at once.
  std::unique_ptr<CapturedCall> capture(const CapturedCall::Call& call) override;

  const Blas& blas() const { return blas_; }
  bool prefers_library() const;
  /// What kernels are generated for.
  VectorTarget vector_target() const;

 private:
  std::shared_ptr<const HostBackend> backend_;
  Compiler compiler_;
  bool blas_named_;
  Blas blas_;
  Pool pool_;
  std::shared_ptr<HostScratch> scratch_ = std::make_shared<HostScratch>();
  Target target_;
  Schedule schedule_;
};

}  // namespace krait
