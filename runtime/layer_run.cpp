#include <algorithm>

#include "dsl/error.h"
#include "runtime/layer.h"
#include "runtime/layer_step.h"

namespace krait {
namespace {

void require_one_of(const char* what, const std::string& name,
                    const std::vector<std::string>& known) {
  if (contains(known, name)) return;
  std::string all;
  for (const auto& each : known) all += (all.empty() ? "" : ", ") + each;
  throw UsageError(what, name, all.empty() ? "none" : all);
}

/// Tensors by object of a plan, of the caller and made here.
class Bindings {
 public:
  Bindings(const Plan& plan, Device& device, Stream stream)
      : plan_(plan), device_(device), stream_(stream), bound_(plan.objects.size(), nullptr) {}

  /// Calls f(object, name) for every object of the kind.
  template <typename F>
  void each(MemoryObject::Kind kind, const F& f) const {
    for (std::size_t i = 0; i < plan_.objects.size(); ++i)
      if (plan_.objects[i].kind == kind) f(i, plan_.objects[i].name);
  }
  void bind(std::size_t object, const TensorRef* tensor) { bound_[object] = tensor; }
  bool has(std::size_t object) const { return bound_[object] != nullptr; }
  /// Sizes as the inputs bound so far give them.
  Sizes sizes() const { return bind_sizes(plan_, bound_, false); }
  /// A new tensor for the object, in `home` under `name`; of zeros, or with any content.
  void make(std::size_t object, const Sizes& sizes, Tensors& home, const std::string& name,
            bool zeros) {
    const DType dtype = plan_.objects[object].dtype;
    Shape shape = shape_of(plan_.objects[object], sizes);
    const std::int64_t bytes = bytes_of(dtype, shape);
    Tensor& made = home[name];
    made = Tensor(dtype, std::move(shape), device_.allocate(bytes, stream_));
    if (zeros) device_.clear(made.data(), bytes, stream_);
    made_.push_back(std::make_unique<TensorRef>(made.ref()));
    bound_[object] = made_.back().get();
  }
  BoundTensors tensors() const { return bound_; }

 private:
  const Plan& plan_;
  Device& device_;
  Stream stream_;
  std::vector<const TensorRef*> bound_;
  std::vector<std::unique_ptr<TensorRef>> made_;
};

constexpr auto kInput = MemoryObject::Kind::input, kOutput = MemoryObject::Kind::output;

}  // namespace

std::int64_t Tape::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : saved_) sum += tensor.count() * size_in_bytes(tensor.dtype());
  return sum;
}

const Executor& Layer::built(const std::unique_ptr<Executor>& pass, const char* what) const {
  KRAIT_REQUIRE(pass != nullptr, "this layer was built without ", what,
                "; allowed: what its options asked for");
  return *pass;
}

Layer::Forward Layer::forward(const TensorMap& inputs, const TensorMap& outputs,
                              Stream stream) const {
  const Executor& executor = built(forward_, "forward (schedule plan=step)");
  std::vector<std::string> known;
  for (Value value : graph_.inputs()) known.push_back(graph_.input_of(value).name);
  for (const auto& [name, tensor] : inputs) require_one_of("input", name, known);
  known.clear();
  for (const Output& output : graph_.outputs()) known.push_back(output.name);
  for (const auto& [name, tensor] : outputs) require_one_of("output", name, known);

  Forward result;
  Tape& tape = result.tape;
  tape.forward_ = &executor;
  tape.inputs_ = parameter_refs_;
  for (const auto& [name, tensor] : inputs) tape.inputs_[name] = tensor;
  Bindings bindings(executor.plan(), *device_, stream);
  bindings.each(kInput, [&](std::size_t object, const std::string& name) {
    auto found = tape.inputs_.find(name);
    if (found != tape.inputs_.end()) bindings.bind(object, &found->second);
  });
  const Sizes sizes = bindings.sizes();
  for (const StatePair& pair : graph_.states()) {
    const int object = executor.plan().find_object(kInput, pair.in);
    if (object < 0 || bindings.has(object)) continue;
    bindings.make(object, sizes, tape.states_, pair.in, true);
    tape.inputs_[pair.in] = tape.states_.at(pair.in).ref();
  }
  // Before memory is made for outputs: their sizes are known only where no input is missing.
  bindings.each(kInput, [&](std::size_t object, const std::string& name) {
    KRAIT_REQUIRE(bindings.has(object), "input ", name, " is missing; allowed: every input");
  });
  bindings.each(kOutput, [&](std::size_t object, const std::string& name) {
    auto given = outputs.find(name);
    if (given != outputs.end())
      bindings.bind(object, &given->second);
    else
      bindings.make(object, sizes, contains(saved_, name) ? tape.saved_ : result.outputs, name,
                    false);
  });
  executor.run(bindings.tensors(), stream);
  return result;
}

Tensors Layer::backward(const Tape& tape, const TensorMap& cotangents, const TensorMap& gradients,
                        bool accumulate, Stream stream) const {
  const Executor& executor = built(backward_, "gradients");
  KRAIT_REQUIRE(tape.forward_ == forward_.get(),
                "the tape is of another layer, or of none; allowed: one of this layer's forward");
  for (const auto& [name, tensor] : cotangents) require_one_of("cotangent", name, cotangents_);
  for (const auto& [name, tensor] : gradients) require_one_of("gradient", name, wanted_);

  TensorMap saved;
  for (const auto& [name, tensor] : tape.saved_) saved[name] = tensor.ref();
  Bindings bindings(executor.plan(), *device_, stream);
  bindings.each(kInput, [&](std::size_t object, const std::string& name) {
    const bool cotangent = name.rfind("cot.", 0) == 0;
    const TensorMap& from = cotangent ? cotangents : saved.count(name) ? saved : tape.inputs_;
    auto found = from.find(cotangent ? name.substr(4) : name);
    if (found != from.end()) bindings.bind(object, &found->second);
  });
  const Sizes sizes = bindings.sizes();
  Tensors zeros, sums, results;
  bindings.each(kInput, [&](std::size_t object, const std::string& name) {
    if (bindings.has(object)) return;
    KRAIT_ASSERT(name.rfind("cot.", 0) == 0, "backward lacks ", name);
    bindings.make(object, sizes, zeros, name, true);
  });
  bindings.each(kOutput, [&](std::size_t object, const std::string& name) {
    const std::string input = name.substr(5);  // "grad."
    auto given = gradients.find(input);
    if (given != gradients.end() && !accumulate)
      bindings.bind(object, &given->second);
    else
      bindings.make(object, sizes, given != gradients.end() ? sums : results, input, false);
  });
  for (const auto& [name, sum] : sums)  // before anything runs
    if (gradients.at(name).shape != sum.shape())
      throw UsageError("shape of gradient " + name, shape_text(gradients.at(name).shape),
                       shape_text(sum.shape()));
  executor.run(bindings.tensors(), stream);
  for (const auto& [name, sum] : sums) device_->add(sum.ref(), gradients.at(name), stream);
  return results;
}

}  // namespace krait
