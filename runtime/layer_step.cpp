#include "runtime/layer_step.h"

#include <algorithm>

#include "dsl/error.h"

namespace krait {
namespace {

/// Whether `in` and `out` may be one tensor: the kernels that read the one come before those that
/// write the other, or are one that can do both in place.
bool may_be_one(const Executor& executor, int in, int out) {
  const Plan& plan = executor.plan();
  int last_read = -1, first_write = static_cast<int>(plan.kernels.size());
  for (int k = 0; k < static_cast<int>(plan.kernels.size()); ++k) {
    for_each_load(plan.kernels[k], [&](Value, const std::vector<View>& views) {
      for (const View& view : views)
        if (view.object == in) last_read = k;
    });
    for (const auto& [value, view] : plan.kernels[k].stores)
      if (view.object == out) first_write = std::min(first_write, k);
  }
  if (last_read == first_write) return executor.in_place(last_read, in, out);
  return last_read < first_write;
}

void require_known(const char* what, const TensorMap& tensors, const Graph& graph, bool states,
                   bool outputs) {
  for (const auto& [name, tensor] : tensors) {
    const auto is_state = [&](const StatePair& pair) {
      return (outputs ? pair.out : pair.in) == name;
    };
    const bool state = std::any_of(graph.states().begin(), graph.states().end(), is_state);
    bool known = state == states;
    if (outputs)
      known = known && std::any_of(graph.outputs().begin(), graph.outputs().end(),
                                   [&](const Output& output) { return output.name == name; });
    else
      known = known && graph.find_input(name).has_value();
    if (!known) throw UsageError(what, name, "names of the block's " + std::string(what) + "s");
  }
}

}  // namespace

void Layer::plan_step() {
  const Plan& plan = step_->plan();
  using Role = StepRole::Kind;
  step_roles_.assign(plan.objects.size(), {Role::temporary});
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const MemoryObject& object = plan.objects[i];
    if (object.kind == MemoryObject::Kind::temporary) continue;
    const bool input = object.kind == MemoryObject::Kind::input;
    StepRole& role = step_roles_[i];
    role.kind = input ? Role::input : Role::output;
    if (auto found = parameter_refs_.find(object.name); input && found != parameter_refs_.end()) {
      role.kind = Role::parameter;
      role.parameter = &found->second;
    }
    for (const StatePair& pair : graph_.states()) {
      if ((input ? pair.in : pair.out) != object.name) continue;
      role.kind = input ? Role::state : Role::left;
      if (input) continue;
      role.partner = plan.find_object(MemoryObject::Kind::input, pair.in);
      KRAIT_ASSERT(role.partner >= 0, "state ", pair.in, " is no input of the step");
      role.in_place = may_be_one(*step_, role.partner, static_cast<int>(i));
    }
  }
  step_calls_ = std::make_unique<StepCalls>();
}

void Layer::step(const TensorMap& inputs, const TensorMap& states, const TensorMap& outputs,
                 Stream stream) const {
  const Executor& executor = built(step_, "step");
  const Plan& plan = executor.plan();
  require_known("input", inputs, graph_, false, false);
  require_known("state", states, graph_, true, false);
  require_known("output", outputs, graph_, false, true);

  std::unique_ptr<StepCall> call;
  {
    const std::scoped_lock lock(step_calls_->mutex);
    if (!step_calls_->idle.empty()) {
      call = std::move(step_calls_->idle.back());
      step_calls_->idle.pop_back();
    }
  }
  if (!call) {
    call = std::make_unique<StepCall>();
    call->left.resize(plan.objects.size());
    call->left_refs.resize(plan.objects.size());
  }
  call->bound.assign(plan.objects.size(), nullptr);

  const auto find = [](const TensorMap& map, const std::string& name) -> const TensorRef* {
    auto found = map.find(name);
    return found == map.end() ? nullptr : &found->second;
  };
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const std::string& name = plan.objects[i].name;
    switch (step_roles_[i].kind) {
      case StepRole::Kind::temporary: break;
      case StepRole::Kind::parameter:
        call->bound[i] = find(inputs, name);
        if (!call->bound[i]) call->bound[i] = step_roles_[i].parameter;
        break;
      case StepRole::Kind::input: call->bound[i] = find(inputs, name); break;
      case StepRole::Kind::state:
        call->bound[i] = find(states, name);
        KRAIT_REQUIRE(call->bound[i] != nullptr, "state ", name,
                      " is missing; allowed: every state of the block, as zero_states gives them");
        break;
      case StepRole::Kind::output: call->bound[i] = find(outputs, name); break;
      case StepRole::Kind::left: break;
    }
  }
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const StepRole& role = step_roles_[i];
    if (role.kind != StepRole::Kind::left) continue;
    const TensorRef* state = call->bound[role.partner];
    call->bound[i] = state;
    if (role.in_place) continue;
    call->left[i] = device_->scratch(bytes_of(state->dtype, state->shape), stream);
    TensorRef& left = call->left_refs[i];
    if (left.shape != state->shape) left = {nullptr, state->dtype, state->shape};
    left.data = call->left[i].data();
    call->bound[i] = &left;
  }
  executor.run(call->bound, stream);
  for (std::size_t i = 0; i < plan.objects.size(); ++i)
    if (step_roles_[i].kind == StepRole::Kind::left && !step_roles_[i].in_place) {
      device_->copy(call->left_refs[i], *call->bound[step_roles_[i].partner], stream);
      call->left[i] = Memory();
    }

  const std::scoped_lock lock(step_calls_->mutex);
  step_calls_->idle.push_back(std::move(call));
}

bool Layer::steps_in_place(const std::string& state) const {
  const Plan& plan = built(step_, "step").plan();
  for (const StepRole& role : step_roles_)
    if (role.kind == StepRole::Kind::left && plan.objects[role.partner].name == state)
      return role.in_place;
  throw UsageError("state", state, "states of the block");
}

Tensors Layer::zero_states(const Sizes& sizes) const {
  Tensors states;
  for (const StatePair& pair : graph_.states()) {
    const Input& input = graph_.input_of(*graph_.find_input(pair.in));
    Shape shape;
    for (const auto& axis : input.order) shape.push_back(graph_.axis(axis).extent.value(sizes));
    states.emplace(pair.in, Tensor(input.dtype, shape, *device_));
  }
  return states;
}

Tensors Layer::take_states(Tensors& outputs) const {
  Tensors states;
  for (const StatePair& pair : graph_.states()) {
    auto found = outputs.find(pair.out);
    KRAIT_REQUIRE(found != outputs.end(), "output ", pair.out,
                  " is missing; allowed: the outputs of a forward pass");
    states.emplace(pair.in, std::move(found->second));
    outputs.erase(found);
  }
  return states;
}

}  // namespace krait
