// Building a layer, and its parameters. What it does when it runs: layer_run.cpp, layer_step.cpp.
#include "runtime/layer.h"

#include <algorithm>

#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/layer_step.h"
#include "runtime/parameters.h"
#include "schedules/candidates.h"
#include "schedules/lower.h"

namespace krait {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ", ") + name;
  return all.empty() ? "none" : all;
}

void check_known(const char* field, const std::vector<std::string>& names,
                 const std::vector<std::string>& known) {
  for (const auto& name : names)
    if (!contains(known, name)) throw UsageError(field, name, joined(known));
}

}  // namespace

Layer::Layer(const BlockFunction& block, const LayerOptions& options) {
  if (options.dtype != DType::f32 && options.dtype != DType::f64)
    throw UsageError("dtype", std::string(name(options.dtype)),
                     "f32, f64 (the others cannot run on the host yet)");
  graph_ = build_graph(block, options.dtype);
  build(options);
}

Layer::Layer(Graph graph, const LayerOptions& options) : graph_(std::move(graph)) {
  build(options);
}

Layer::~Layer() = default;
Layer::Layer(Layer&&) noexcept = default;
Layer& Layer::operator=(Layer&&) noexcept = default;

void Layer::build(const LayerOptions& options) {
  if (options.on && options.device != "host" && options.device != options.on->name())
    throw UsageError("device", options.device, options.on->name());
  if (options.name.find('/') != std::string::npos)
    throw UsageError("name of a layer", options.name, "one without a slash");
  device_ = options.on ? options.on : make_device(options.device, options.threads);
  schedule_ = merge(device_->schedule(), options.schedule);
  const PlanKind kind = schedule_.plan.value_or(PlanKind::chunks);
  if (kind == PlanKind::recurrent)
    throw UsageError("schedule: plan", "recurrent", "chunks, step (not on this device yet)");
  const Dumps& dumps = device_->compiler().dumps();
  dumps.write("graph", options.name.empty() ? "layer" : options.name, to_text(graph_));
  wanted_ = options.wanted.value_or(floating_inputs(graph_));
  cotangents_ = options.cotangents.value_or(floating_outputs(graph_));
  check_known("wanted gradient", wanted_, floating_inputs(graph_));
  check_known("cotangent", cotangents_, floating_outputs(graph_));
  if (wanted_.empty() || cotangents_.empty()) {
    wanted_.clear();
    cotangents_.clear();
  }

  std::vector<Plan> plans;
  Prepared prepared;
  if (kind == PlanKind::chunks) {
    const Target& target = device_->target();
    schedule_ =
        device_->with_defaults(schedule_, {graph_, options.sizes, cotangents_, wanted_}, prepared);
    if (!prepared.plans) prepared.plans = lower(graph_, schedule_, cotangents_, wanted_);
    Lowered& lowered = *prepared.plans;
    const Sizes sizes = with_usual_sizes(graph_, options.sizes);
    require_legal(lowered.forward, sizes, target);
    if (!wanted_.empty()) require_legal(lowered.backward, sizes, target);
    saved_ = std::move(lowered.saved);
    plans.push_back(std::move(lowered.forward));
    if (!wanted_.empty()) plans.push_back(std::move(lowered.backward));
  } else {
    wanted_.clear();
    cotangents_.clear();
  }
  const bool steps = kind == PlanKind::step || (options.step && !graph_.states().empty());
  if (steps) plans.push_back(device_->step(graph_, schedule_, prepared));
  for (Plan& plan : plans) {
    plan.name = options.name;
    dumps.write("plan", file_of(plan), to_text(plan));
  }
  make_parameters(options);

  const Compiler::Counters before = device_->compiler().counters();
  std::vector<std::unique_ptr<Executor>> executors =
      Executor::make(std::move(plans), device_, prepared);
  counters_ = device_->compiler().counters();
  counters_.compiled -= before.compiled;
  counters_.from_cache -= before.from_cache;
  counters_.shared -= before.shared;
  std::size_t next = 0;
  if (kind == PlanKind::chunks) forward_ = std::move(executors[next++]);
  if (!wanted_.empty()) backward_ = std::move(executors[next++]);
  if (steps) {
    step_ = std::move(executors[next++]);
    plan_step();
  }
}

void Layer::make_parameters(const LayerOptions& options) {
  for (Value value : graph_.inputs()) {
    const Input& input = graph_.input_of(value);
    if (input.role != Role::parameter) continue;
    Shape shape;
    for (const auto& axis : input.order) {
      const Extent& extent = graph_.axis(axis).extent;
      KRAIT_REQUIRE(extent.is_constant() || options.sizes.count(extent.symbol), "parameter ",
                    input.name, " has axis ", axis,
                    ", whose size is not known; allowed: an axis of constant size, or sizes[\"",
                    extent.symbol, "\"] in the options");
      shape.push_back(extent.value(options.sizes));
    }
    const auto [made, added] =
        parameters_.emplace(input.name, Tensor(input.dtype, shape, *device_));
    parameter_refs_[input.name] = made->second.ref();
  }
  draw_parameters(options.seed);
}

void Layer::draw_parameters(std::uint64_t seed) {
  for (Value value : graph_.inputs()) {
    const Input& input = graph_.input_of(value);
    if (input.role != Role::parameter) continue;
    const Tensor drawn(input.dtype, parameter_refs_.at(input.name).shape);
    draw_parameter(input, seed, drawn.ref());
    set_parameter(input.name, drawn.ref());
  }
}

std::vector<std::string> Layer::parameters() const {
  std::vector<std::string> names;
  for (Value value : graph_.inputs())
    if (graph_.input_of(value).role == Role::parameter)
      names.push_back(graph_.input_of(value).name);
  return names;
}

TensorRef Layer::parameter(const std::string& name) const {
  auto found = parameter_refs_.find(name);
  if (found == parameter_refs_.end()) throw UsageError("parameter", name, joined(parameters()));
  return found->second;
}

void Layer::set_parameter(const std::string& name, const TensorRef& value) {
  const TensorRef to = parameter(name);
  const Tensor dense(to.dtype, to.shape);
  copy(value, dense.ref(), "parameter " + name);
  device_->write(to.data, dense.data(), to.count() * size_in_bytes(to.dtype));
}

const Plan* Layer::plan(Pass pass) const {
  const std::unique_ptr<Executor>& executor = pass == Pass::forward    ? forward_
                                              : pass == Pass::backward ? backward_
                                                                       : step_;
  return executor ? &executor->plan() : nullptr;
}

std::int64_t Layer::temporary_bytes(Pass pass, const Sizes& sizes) const {
  const Plan* planned = plan(pass);
  return planned ? arena(*planned, sizes).bytes : 0;
}

}  // namespace krait
