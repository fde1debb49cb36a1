// Executor: a plan, compiled, that runs over the caller's tensors.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "codegen/generate.h"
#include "runtime/binding.h"
#include "runtime/device.h"
#include "runtime/tensor.h"
#include "schedules/plan.h"

namespace krait {

/// Kernels run in the order of the plan. Several threads may run one Executor at once: temporaries
/// belong to the call. A call with the shapes and strides of an earlier one allocates nothing.
/// Results do not depend on the number of threads. Work may still run on the device when a call
/// returns.
class Executor {
 public:
  /// Generates and compiles every kernel of every plan, several at a time, and nothing later on.
  /// `prepared`: what finding the plans' schedule made.
  static std::vector<std::unique_ptr<Executor>> make(std::vector<Plan> plans,
                                                     std::shared_ptr<Device> device,
                                                     const Prepared& prepared = {});
  Executor(Plan plan, std::shared_ptr<Device> device);
  ~Executor();

  const Plan& plan() const { return plan_; }
  /// By number of the object. Inputs that no kernel reads only give their sizes. Throws UsageError
  /// for tensors that do not fit (see binding.h).
  /// `kernel_seconds`, if given, takes the wall time of each kernel of the plan.
  void run(BoundTensors tensors, Stream stream = {},
           std::vector<double>* kernel_seconds = nullptr) const;
  /// By name.
  void run(const TensorMap& inputs, const TensorMap& outputs, Stream stream = {},
           std::vector<double>* kernel_seconds = nullptr) const;

  /// Bytes of temporaries in one call.
  std::int64_t temporary_bytes(const Sizes& sizes) const { return arena(plan_, sizes).bytes; }
  /// Kernels that a library runs, of all.
  std::size_t library_kernels() const;
  /// Whether the kernel may write output `written` over input `read`, objects that it uses both.
  bool in_place(std::size_t kernel, int read, int written) const;
  /// The kernel as it was compiled, null for a library's.
  const Executable* executable(std::size_t kernel) const;

 private:
  struct Uncompiled {};
  struct Call;
  struct Launch {  // what does not depend on sizes
    bool library = false;
    GeneratedKernel kernel;
    std::shared_ptr<Executable> executable;
  };

  Executor(Plan plan, std::shared_ptr<Device> device, Uncompiled);
  static void compile(const std::vector<Executor*>& executors, Device& device,
                      const Prepared& prepared);
  void prepare(Call& call, BoundTensors tensors) const;
  /// `workspace`: whether libraries may ask for memory to work in.
  void prepare(Call& call, BoundTensors tensors, bool workspace) const;
  Memory memory_for(Call& call, BoundTensors tensors, Stream stream) const;
  /// Sets the pointers of every launch.
  void point(Call& call, BoundTensors tensors, char* memory) const;
  void launch(const Call& call, Stream stream, std::vector<double>* kernel_seconds) const;
  void launch_one(const Call& call, std::size_t kernel, Stream stream) const;
  std::unique_ptr<Call> take(BoundTensors tensors) const;
  void give_back(std::unique_ptr<Call> call) const;

  Plan plan_;
  std::shared_ptr<Device> device_;
  std::vector<MergedDims> merged_;
  std::vector<Launch> launches_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Call>> idle_;
};

}  // namespace krait
