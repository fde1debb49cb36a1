#include <algorithm>

#include "dsl/error.h"
#include "dsl/expr.h"

namespace krait {
namespace {

AxisNames declare(Graph& graph, const std::vector<Axis>& axes) {
  AxisNames names;
  for (const auto& axis : axes) {
    graph.declare(axis);
    names.push_back(axis.name);
  }
  return names;
}

}  // namespace

Scope::Scope(DType activation) : activation_(activation) {
  if (!is_float(activation)) throw UsageError("activation dtype", "i32", "f64, f32, bf16, f16");
  graph_.set_accumulator(activation);
}

Expr Scope::input(const std::string& name, const std::vector<Axis>& axes) {
  return input(name, axes, activation_);
}

Expr Scope::input(const std::string& name, const std::vector<Axis>& axes, DType dtype) {
  AxisNames order = declare(graph_, axes);
  return {*this, graph_.input({prefix_ + name, std::move(order), dtype, Role::data, {}})};
}

Expr Scope::param(const std::string& name, const std::vector<Axis>& axes, Init init) {
  AxisNames order = declare(graph_, axes);
  const DType dtype = wider(activation_, DType::f32);
  return {*this, graph_.input({prefix_ + name, std::move(order), dtype, Role::parameter, init})};
}

Expr Scope::state(const std::string& in, const std::string& out, const std::vector<Axis>& axes) {
  AxisNames order = declare(graph_, axes);
  for (const auto& open : open_)
    if (open.out == prefix_ + out)
      throw UsageError("output of a state", '"' + open.out + '"',
                       "names that no other state of the block leaves");
  const Value value = graph_.input({prefix_ + in, order, accumulator(), Role::state, {}});
  graph_.add_state(prefix_ + in, prefix_ + out);
  open_.push_back({prefix_ + in, prefix_ + out, std::move(order)});
  return {*this, value};
}

void Scope::leave(const std::string& out, const Expr& value) {
  auto open = std::find_if(open_.begin(), open_.end(),
                           [&](const OpenState& state) { return state.out == prefix_ + out; });
  if (open == open_.end())
    throw UsageError("output of a state", '"' + prefix_ + out + '"',
                     "the second name given to a state before");
  KRAIT_REQUIRE(!open->left, "state ", open->out, " is left twice; allowed: once");
  KRAIT_REQUIRE(&value.scope() == this, "the value of ", open->out,
                " is of another Scope; allowed: values of this one");
  if (!is_float(value.dtype())) throw UsageError("dtype of state " + open->out, "i32", "floats");
  Value left = value.value();
  if (value.dtype() != accumulator()) {
    Scalar same;
    same.finish(same.operand(0));
    left = graph_.map(std::move(same), {left});
  }
  graph_.add_output(open->out, left, open->order);
  open->left = true;
}

void Scope::output(const std::string& name, const Expr& value, const AxisNames& axes) {
  KRAIT_REQUIRE(&value.scope() == this, "the value of output ", name,
                " is of another Scope; allowed: values of this one");
  for (const auto& open : open_)
    if (open.out == prefix_ + name)
      throw UsageError("name of an output", '"' + open.out + '"',
                       "names that no state leaves; use leave for those");
  graph_.add_output(prefix_ + name, value.value(), axes);
}

void Scope::output(const std::string& name, const Expr& value, std::initializer_list<Axis> axes) {
  output(name, value, declare(graph_, axes));
}

Expr Scope::constant(double value, const std::vector<Axis>& axes) {
  return {*this, graph_.constant(value, accumulator(), declare(graph_, axes))};
}

Expr Scope::index(const Axis& axis) {
  graph_.declare(axis);
  Scalar s;
  s.finish(s.index(axis.name));
  return {*this, graph_.map(std::move(s), {})};
}

Expr Scope::size(const Axis& axis) {
  graph_.declare(axis);
  if (axis.extent.is_constant())
    return {*this, graph_.constant(static_cast<double>(axis.extent.offset), DType::i32)};
  Scalar s;
  s.finish(s.extent(axis.extent));
  return {*this, graph_.map(std::move(s), {})};
}

Scope::Prefix::Prefix(Scope& scope, const std::string& prefix)
    : scope_(scope), before_(scope.prefix_) {
  scope.prefix_ += prefix;
}

Scope::Prefix::~Prefix() { scope_.prefix_ = before_; }

Graph Scope::finish() {
  for (const auto& open : open_)
    KRAIT_REQUIRE(open.left, "state ", open.in, " has no leaving value; allowed: leave(\"",
                  open.out, "\", ...) once");
  KRAIT_REQUIRE(!graph_.outputs().empty(), "the block outputs nothing; allowed: one output and up");
  Graph finished = prune(graph_);
  verify(finished);
  return finished;
}

Graph build_graph(const BlockFunction& block, DType activation) {
  Scope scope(activation);
  block(scope);
  return scope.finish();
}

}  // namespace krait
