// Layer: a block that runs. Forward, backward and step, with parameters of its own.
//
// Building a layer compiles all that it may need; calls compile nothing, whatever the sizes. What
// is compiled in: the sizes of constant axes, dtypes, the schedule, and that the innermost
// constant axes of every tensor are dense; sizes of the others, and their strides, come with the
// call. Tensors stay in the caller's memory and are read and written in place.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dsl/expr.h"
#include "runtime/executor.h"
#include "runtime/tensor.h"
#include "schedules/schedule.h"

namespace krait {

struct LayerOptions {
  /// Of activations, where the layer is built from a block: f32 or f64.
  DType dtype = DType::f32;
  /// Before the names of files about its kernels (see dump.h, override.h); without a slash.
  std::string name{};
  /// "host" or "cuda:N". Tensors that the layer takes and gives stand in the device's memory.
  std::string device = "host";
  /// Layers that are given one share its memory, its threads and equal kernels; none: the layer has
  /// one of its own, as `device` and the environment say, with `threads` threads (0: all).
  std::shared_ptr<Device> on{};
  int threads = 0;
  /// What is not set takes what the device says (the user's file, $KRAIT_SCHEDULE), else defaults
  /// for `sizes` on this machine, however many threads. plan=step builds `step` alone.
  Schedule schedule{};
  /// Inputs (parameters and states too) whose gradient backward gives, and outputs that may bear a
  /// cotangent; without: all floating ones. An empty list builds no backward.
  std::optional<std::vector<std::string>> wanted{}, cotangents{};
  /// Whether to build `step`, for blocks that carry states.
  bool step = true;
  /// Of the parameters that are drawn.
  std::uint64_t seed = 0;
  /// Sizes of symbols ("b", "t"): the shape that the schedule is picked for, and of parameters that
  /// have axes without a constant size. The layer runs at other sizes too. What is missing counts
  /// as 2048 positions of a scanned axis, and 1 of another.
  Sizes sizes{};
};

/// What backward needs of one forward pass: what that saved, and views of its inputs, whose memory
/// must stay as it is until backward has run. Several may live at once.
class Tape {
 public:
  Tape() = default;
  /// Bytes of what was saved.
  std::int64_t bytes() const;

 private:
  friend class Layer;
  const Executor* forward_ = nullptr;
  TensorMap inputs_;        // parameters too
  Tensors saved_, states_;  // states_: zeros, where none were given
};

/// Safe to use from several threads at once, as long as none of them writes parameters: gradients,
/// tapes and states belong to the call.
class Layer {
 public:
  /// Throws UsageError for a block that cannot run so, with the reason.
  explicit Layer(const BlockFunction& block, const LayerOptions& options = {});
  explicit Layer(Graph graph, const LayerOptions& options = {});
  ~Layer();
  Layer(Layer&&) noexcept;
  Layer& operator=(Layer&&) noexcept;

  const Graph& graph() const { return graph_; }
  const std::shared_ptr<Device>& device() const { return device_; }

  // ----------------------------------------------------------------------------------- parameters
  /// Names, in the order in which the block met them.
  std::vector<std::string> parameters() const;
  /// The layer's own memory, dense in storage order; writing there changes the parameter.
  TensorRef parameter(const std::string& name) const;
  /// Copies from a tensor of the same shape, of any dtype, in memory of this process.
  void set_parameter(const std::string& name, const TensorRef& value);
  /// Draws all parameters anew.
  void draw_parameters(std::uint64_t seed);

  // ----------------------------------------------------------------------------------------- runs
  struct Forward {
    Tensors outputs;  // those that the caller gave no memory for
    Tape tape;
  };
  /// `inputs` by name; states that are not given start from zero; a parameter that is given is read
  /// from there. Outputs go to the tensors in `outputs`, the others are made. Throws UsageError for
  /// tensors that do not fit.
  ///
  /// On a GPU the call gives its work to `stream` and returns; what it makes may be used and freed
  /// in that order.
  Forward forward(const TensorMap& inputs, const TensorMap& outputs = {}, Stream stream = {}) const;

  /// Gradients by the input's name, under cotangents by the output's name; a cotangent that is not
  /// given is zero. Gradients in `gradients` are written there, or added to what is there; the
  /// others that were wanted are made. A tape may be used several times.
  Tensors backward(const Tape& tape, const TensorMap& cotangents, const TensorMap& gradients = {},
                   bool accumulate = false, Stream stream = {}) const;

  /// One position along the time axis, whose dimension is 1 in every tensor. `states` by the
  /// input's name, updated in place; outputs that are no states by name. Allocates nothing after
  /// the first call with these shapes and strides.
  void step(const TensorMap& inputs, const TensorMap& states, const TensorMap& outputs,
            Stream stream = {}) const;

  /// Zeros for every state, by the input's name, which any stream may use.
  Tensors zero_states(const Sizes& sizes) const;
  /// The states out of the outputs of a window, by the names of the inputs that they are for the
  /// next one.
  Tensors take_states(Tensors& outputs) const;

  // ----------------------------------------------------------------------------------------- facts
  /// How kernels were come by when the layer was built (of the device, so that what other threads
  /// built on it meanwhile counts too).
  const Compiler::Counters& counters() const { return counters_; }
  /// What was set and what was picked.
  const Schedule& schedule() const { return schedule_; }
  /// The plan of a pass; null where it was not built.
  const Plan* plan(Pass pass) const;
  /// Whether step updates the state, by its input's name, without a copy.
  bool steps_in_place(const std::string& state) const;
  /// Bytes of temporaries that a call of the pass needs at these sizes, of the symbols.
  std::int64_t temporary_bytes(Pass pass, const Sizes& sizes) const;

 private:
  struct StepCall;
  /// How step finds the tensor of an object.
  struct StepRole {
    enum class Kind : std::uint8_t { temporary, input, parameter, state, output, left } kind;
    const TensorRef* parameter = nullptr;
    int partner = -1;       // left: the object of the state that it becomes
    bool in_place = false;  // left: written over the state itself
  };

  void build(const LayerOptions& options);
  void make_parameters(const LayerOptions& options);
  void plan_step();
  const Executor& built(const std::unique_ptr<Executor>& pass, const char* what) const;

  Graph graph_;
  std::shared_ptr<Device> device_;
  Schedule schedule_;
  std::vector<std::string> wanted_, cotangents_, saved_;
  Tensors parameters_;
  TensorMap parameter_refs_;
  std::unique_ptr<Executor> forward_, backward_, step_;
  std::vector<StepRole> step_roles_;
  Compiler::Counters counters_;
  struct StepCalls;
  std::unique_ptr<StepCalls> step_calls_;
};

}  // namespace krait
