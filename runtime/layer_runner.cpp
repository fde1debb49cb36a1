#include "runtime/layer_runner.h"

#include "dsl/error.h"
#include "runtime/layer.h"

namespace krait {
namespace {

class LayerRunner : public Runner {
 public:
  LayerRunner(const std::string& device, const RunRequest& request)
      : layer_(request.graph, options(device, request)) {
    steps_ = request.schedule.plan == PlanKind::step;
    gradients_ = !request.wanted.empty() && !steps_;
  }

  RunResult run(const Tensors64& inputs, const Tensors64& cotangents) override {
    const Tensors given = tensors_of(inputs);
    if (steps_) return {step(given), {}};
    RunResult result;
    const Layer::Forward forward = layer_.forward(refs(given));
    result.outputs = to_float64_all(forward.outputs);
    if (!gradients_) return result;
    Tensors cots;
    for (const auto& [name, tensor] : cotangents)
      cots[name] = put(from_float64(tensor, accumulator(forward.outputs.at(name).dtype())));
    result.gradients = to_float64_all(layer_.backward(forward.tape, refs(cots)));
    return result;
  }

  std::vector<std::string> notes() const override {
    const Compiler::Counters& kernels = layer_.counters();
    return {text(kernels.compiled, " kernels compiled, ", kernels.from_cache, " from the cache")};
  }

 private:
  static LayerOptions options(const std::string& device, const RunRequest& request) {
    LayerOptions options;
    options.name = request.name;
    options.device = device;
    options.schedule = request.schedule;
    options.cotangents = request.cotangents;
    options.wanted = request.wanted;
    options.sizes = request.sizes;
    options.step = request.schedule.plan == PlanKind::step;
    return options;
  }

  /// In the dtypes that the graph wants.
  Tensors tensors_of(const Tensors64& inputs) const {
    const Graph& graph = layer_.graph();
    Tensors tensors;
    for (Value value : graph.inputs()) {
      const Input& input = graph.input_of(value);
      if (auto found = inputs.find(input.name); found != inputs.end())
        tensors[input.name] = put(from_float64(found->second, input.dtype));
    }
    return tensors;
  }

  /// On the device, and back.
  Tensor put(const Tensor& tensor) const { return to_device(tensor.ref(), *layer_.device()); }
  Tensor64 get(const TensorRef& tensor) const {
    return to_float64(to_host(tensor, *layer_.device()).ref());
  }
  Tensors64 to_float64_all(const Tensors& tensors) const {
    Tensors64 all;
    for (const auto& [name, tensor] : tensors) all[name] = get(tensor.ref());
    return all;
  }

  Tensors64 step(const Tensors& given) const {
    const Graph& graph = layer_.graph();
    TensorMap inputs = refs(given), states;
    std::map<std::string, std::string> leaves;  // by the output's name
    for (const StatePair& pair : graph.states()) {
      auto state = inputs.extract(pair.in);
      KRAIT_REQUIRE(!state.empty(), "state ", pair.in, " is missing; allowed: every state");
      states.insert(std::move(state));
      leaves[pair.out] = pair.in;
    }
    Sizes sizes;
    for (const auto& [name, tensor] : given) {
      const Input& input = graph.input_of(*graph.find_input(name));
      for (std::size_t d = 0; d < input.order.size(); ++d) {
        const Extent& extent = graph.axis(input.order[d]).extent;
        if (!extent.is_constant() && extent.divisor == 1)
          sizes[extent.symbol] = tensor.shape()[d] - extent.offset;
      }
    }
    Tensors outputs;
    for (const Output& output : graph.outputs()) {
      if (leaves.count(output.name)) continue;
      Shape shape;
      for (const auto& axis : output.order) shape.push_back(graph.axis(axis).extent.value(sizes));
      outputs.emplace(output.name, Tensor(graph.type(output.value).dtype, shape, *layer_.device()));
    }
    layer_.step(inputs, states, refs(outputs));
    Tensors64 all = to_float64_all(outputs);
    for (const auto& [out, in] : leaves) all[out] = get(states.at(in));
    return all;
  }

  Layer layer_;
  bool steps_ = false, gradients_ = false;
};

}  // namespace

std::unique_ptr<Runner> make_layer_runner(const std::string& device, const RunRequest& request) {
  return std::make_unique<LayerRunner>(device, request);
}

}  // namespace krait
