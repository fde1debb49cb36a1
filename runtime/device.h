// Device: where tensors live and kernels run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "codegen/generate.h"
#include "runtime/compile.h"
#include "runtime/gemm_calls.h"
#include "runtime/host/pool.h"
#include "runtime/memory.h"
#include "runtime/stream.h"
#include "runtime/tensor.h"
#include "schedules/candidates.h"
#include "schedules/lower.h"
#include "schedules/plan.h"
#include "schedules/schedule.h"
#include "schedules/target.h"

namespace krait {

/// A product made ready for a library: what does not depend on where its tensors stand. Belongs to
/// one call at a time.
struct PreparedProduct {
  virtual ~PreparedProduct() = default;
  GemmCalls calls;
  std::int64_t workspace_bytes = 0;  ///< Of memory of the device, that a run has for itself.
};

/// What finding a schedule made of the layer that is to follow it.
struct Prepared {
  std::optional<Lowered> plans;
  std::shared_ptr<CudaKernels> kernels;  ///< Of a GPU, as far as they are known.
};

/// Work of a device that was written down, and is done by each replay: a whole forward, backward or
/// step, or several of them, at the cost of one launch. One thread at a time.
class CapturedCall {
 public:
  /// Gives all its work to the stream that it is handed.
  using Call = std::function<void(Stream)>;

  /// Waits for the last replay, where the call's own memory ends with it.
  virtual ~CapturedCall() = default;
  /// From now on replays do what `call` does: the same kernels in the same order, with other
  /// tensors. Throws UsageError where it does anything else, and stays as it was.
  virtual void bind(const Call& call) = 0;
  /// Allocates, compiles and waits for nothing.
  virtual void replay(Stream stream = {}) = 0;
};

/// Layers that share a device share its memory, its threads and every kernel that is equal. Safe to
/// use from several threads at once. Work may still run when a call returns: it runs in the order
/// of the stream that it was given to, and `finish` waits for it. Nothing else waits, but what says
/// so. Errors of the environment (no memory, a lost device) are EnvironmentErrors.
class Device {
 public:
  virtual ~Device() = default;

  /// "host", "cuda:0".
  virtual const std::string& name() const = 0;
  /// What schedules are judged on.
  virtual const Target& target() const = 0;
  /// Of every layer of the device, where the layer's own leaves keys open.
  virtual const Schedule& schedule() const = 0;
  /// `given`, with the keys that it leaves open filled in for the request. `prepared`: takes what
  /// finding out made on its way.
  virtual Schedule with_defaults(const Schedule& given, const ScheduleRequest& request,
                                 Prepared& prepared) = 0;
  /// The plan of one step under such a schedule.
  virtual Plan step(const Graph& graph, const Schedule& schedule, Prepared&) {
    return lower_step(graph, schedule);
  }
  virtual Compiler& compiler() = 0;
  /// Threads of this machine, which generate and compile.
  virtual Pool& pool() = 0;

  // --------------------------------------------------------------------------------------- memory
  /// At least 64-byte aligned, with any content, for what follows in the order of `stream`.
  virtual Memory allocate(std::int64_t bytes, Stream stream) = 0;
  /// For temporaries of a call: the same, out of what the device keeps of earlier calls.
  virtual Memory scratch(std::int64_t bytes, Stream stream) = 0;
  /// Gives back to the system what the device keeps without a use.
  virtual void trim() {}
  virtual void clear(void* memory, std::int64_t bytes, Stream stream) = 0;
  /// Between memory of the device and of this process; return when it is done.
  virtual void write(void* memory, const void* from, std::int64_t bytes, Stream stream = {}) = 0;
  virtual void read(void* to, const void* memory, std::int64_t bytes, Stream stream = {}) = 0;
  /// Between tensors of one shape and dtype on the device, whatever their strides.
  virtual void copy(const TensorRef& from, const TensorRef& to, Stream stream = {}) = 0;
  virtual void add(const TensorRef& from, const TensorRef& to, Stream stream = {}) = 0;
  /// Throws UsageError, which calls it `what`, for memory that kernels of the device cannot reach,
  /// as far as that can be told.
  virtual void require_reachable(const void* memory, const std::string& what) const = 0;

  // -------------------------------------------------------------------------------------- kernels
  /// A plan of any device, as this one runs it.
  virtual Plan adapted(Plan plan) const { return plan; }
  /// Whether a kernel of kind product goes to a library. Throws EnvironmentError where the schedule
  /// asks for one that is not there.
  virtual bool uses_library(const Plan& plan, const PlannedKernel& kernel) const = 0;
  /// `prepared`: where the plan comes from, or nothing.
  virtual GeneratedKernel generate(const Plan& plan, int kernel,
                                   const Prepared& prepared) const = 0;
  /// Told before the first launch of a kernel that needs so much scratch.
  virtual void reserve_scratch(std::int64_t bytes) = 0;
  struct Launch {
    const Executable* executable = nullptr;
    const GeneratedKernel* kernel = nullptr;
    std::int64_t grid = 1;  // points
    std::span<void* const> buffers;
    std::span<const std::int64_t> arguments;
    Stream stream;
  };
  virtual void launch(const Launch& launch) = 0;
  /// What the library's products are of, for people: its name, version and file, or why there is
  /// none. Opens it.
  virtual std::string library_text() const = 0;
  /// `workspace`: whether it may ask for memory to work in.
  virtual std::shared_ptr<PreparedProduct> prepare(const GemmCalls& calls, bool workspace) = 0;
  /// `pointers`: of each object of the plan. `workspace`: aligned to 64 bytes at least.
  virtual void product(PreparedProduct& product, void* const* pointers, void* workspace,
                       Stream stream) = 0;
  /// Waits for the work of a stream.
  virtual void finish(Stream stream = {}) = 0;
  /// How long the device works at what `call` gives to its stream, in milliseconds, by its own
  /// clock. Waits for the end.
  virtual double milliseconds(const std::function<void(Stream)>& call) = 0;
  /// Writes down what `call` does, once, without doing it. What it makes (outputs, tapes,
  /// gradients) stands where it is for every replay. Throws UsageError that says why for what
  /// cannot be captured: a device that is none of CUDA, a call that waits for the device.
  virtual std::unique_ptr<CapturedCall> capture(const CapturedCall::Call& call) = 0;
};

/// A tensor of the device with the elements of `host`, dense, that any stream may use; and the way
/// back, after what `stream` was given before.
Tensor to_device(const TensorRef& host, Device& device);
Tensor to_host(const TensorRef& tensor, Device& device, Stream stream = {});

/// "cuda:" and a number.
bool is_cuda_device(const std::string& name);

/// By name: "host", "cuda:N" (N from 0). `threads`: of this machine that a device may use, 0: all.
/// Throws UsageError for a name of neither kind, EnvironmentError where the device, its driver or
/// its compiler is missing, with what to do.
std::shared_ptr<Device> make_device(const std::string& name, int threads = 0);

}  // namespace krait
