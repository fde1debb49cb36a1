#include "dsl/scalar.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>

#include "dsl/error.h"

namespace krait {
namespace {

struct OpFacts {
  std::string_view name;
  int arity;
};

OpFacts facts(ScalarOp op) {
  switch (op) {
    case ScalarOp::constant: return {"constant", 0};
    case ScalarOp::operand: return {"operand", 0};
    case ScalarOp::index: return {"index", 0};
    case ScalarOp::extent: return {"extent", 0};
    case ScalarOp::neg: return {"neg", 1};
    case ScalarOp::abs: return {"abs", 1};
    case ScalarOp::exp: return {"exp", 1};
    case ScalarOp::exp_nonpositive: return {"exp_nonpositive", 1};
    case ScalarOp::log: return {"log", 1};
    case ScalarOp::log1p: return {"log1p", 1};
    case ScalarOp::expm1: return {"expm1", 1};
    case ScalarOp::sqrt: return {"sqrt", 1};
    case ScalarOp::rsqrt: return {"rsqrt", 1};
    case ScalarOp::tanh: return {"tanh", 1};
    case ScalarOp::sigmoid: return {"sigmoid", 1};
    case ScalarOp::softplus: return {"softplus", 1};
    case ScalarOp::sin_turns: return {"sin_turns", 1};
    case ScalarOp::cos_turns: return {"cos_turns", 1};
    case ScalarOp::floor: return {"floor", 1};
    case ScalarOp::wrap: return {"wrap", 1};
    case ScalarOp::nonpositive: return {"nonpositive", 1};
    case ScalarOp::logical_not: return {"not", 1};
    case ScalarOp::add: return {"add", 2};
    case ScalarOp::sub: return {"sub", 2};
    case ScalarOp::mul: return {"mul", 2};
    case ScalarOp::div: return {"div", 2};
    case ScalarOp::min: return {"min", 2};
    case ScalarOp::max: return {"max", 2};
    case ScalarOp::less: return {"less", 2};
    case ScalarOp::less_equal: return {"less_equal", 2};
    case ScalarOp::equal: return {"equal", 2};
    case ScalarOp::logical_and: return {"and", 2};
    case ScalarOp::logical_or: return {"or", 2};
    case ScalarOp::select: return {"select", 3};
  }
  throw InternalError("a scalar operator without a name");
}

bool is_boolean(ScalarOp op) {
  switch (op) {
    case ScalarOp::logical_not:
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::equal:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or: return true;
    default: return false;
  }
}

}  // namespace

std::string_view name(ScalarOp op) { return facts(op).name; }
int arity(ScalarOp op) { return facts(op).arity; }

double apply_scalar(ScalarOp op, double a, double b, double c) {
  constexpr double turn = 2 * std::numbers::pi;
  switch (op) {
    case ScalarOp::neg: return -a;
    case ScalarOp::abs: return std::fabs(a);
    case ScalarOp::exp: return std::exp(a);
    case ScalarOp::exp_nonpositive: return a > 0 ? 1 : std::exp(a);
    case ScalarOp::log: return std::log(a);
    case ScalarOp::log1p: return std::log1p(a);
    case ScalarOp::expm1: return std::expm1(a);
    case ScalarOp::sqrt: return std::sqrt(a);
    case ScalarOp::rsqrt: return 1 / std::sqrt(a);
    case ScalarOp::tanh: return std::tanh(a);
    case ScalarOp::sigmoid:
      return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a));
    case ScalarOp::softplus: return a > 20 ? a : std::log1p(std::exp(a));
    // Whole turns go first: what is left is exact, and a large argument loses no digit to 2 pi.
    case ScalarOp::sin_turns: return std::sin(turn * (a - std::floor(a + 0.5)));
    case ScalarOp::cos_turns: return std::cos(turn * (a - std::floor(a + 0.5)));
    case ScalarOp::floor: return std::floor(a);
    case ScalarOp::wrap: return a - std::floor(a + 0.5);
    case ScalarOp::nonpositive: return a;
    case ScalarOp::logical_not: return a == 0;
    case ScalarOp::add: return a + b;
    case ScalarOp::sub: return a - b;
    case ScalarOp::mul: return a * b;
    case ScalarOp::div: return a / b;
    // A NaN on either side stays a NaN.
    case ScalarOp::min: return b < a || std::isnan(b) ? b : a;
    case ScalarOp::max: return b > a || std::isnan(b) ? b : a;
    case ScalarOp::less: return a < b;
    case ScalarOp::less_equal: return a <= b;
    case ScalarOp::equal: return a == b;
    case ScalarOp::logical_and: return a != 0 && b != 0;
    case ScalarOp::logical_or: return a != 0 || b != 0;
    case ScalarOp::select: return a != 0 ? b : c;
    default: throw InternalError(text("apply_scalar of ", name(op)));
  }
}

const std::vector<ScalarNode>& Scalar::nodes() const {
  static const std::vector<ScalarNode> none;
  return nodes_ ? *nodes_ : none;
}

std::vector<ScalarNode>& Scalar::own() {
  if (!nodes_)
    nodes_ = std::make_shared<std::vector<ScalarNode>>();
  else if (nodes_.use_count() > 1)
    nodes_ = std::make_shared<std::vector<ScalarNode>>(*nodes_);
  // Whoever gave the last other copy up, on whatever thread, has done so before.
  std::atomic_thread_fence(std::memory_order_acquire);
  return *nodes_;
}

int Scalar::constant(double value) { return add({.op = ScalarOp::constant, .value = value}); }

int Scalar::operand(int number) { return add({.op = ScalarOp::operand, .operand = number}); }

int Scalar::index(std::string axis) {
  ScalarNode node{.op = ScalarOp::index};
  node.axis = std::move(axis);
  return add(std::move(node));
}

int Scalar::extent(Extent extent) {
  ScalarNode node{.op = ScalarOp::extent};
  node.extent = std::move(extent);
  return add(std::move(node));
}

int Scalar::apply(ScalarOp op, int a, int b, int c) {
  ScalarNode node{.op = op};
  node.args = {a, b, c};
  return add(std::move(node));
}

int Scalar::inline_expression(const Scalar& other, const std::vector<int>& operands) {
  const std::vector<ScalarNode>& nodes = other.nodes();
  std::vector<int> at(nodes.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    ScalarNode node = nodes[i];
    if (node.op == ScalarOp::operand) {
      KRAIT_ASSERT(node.operand < static_cast<int>(operands.size()), "operand ", node.operand,
                   " has no place");
      at[i] = operands[node.operand];
      continue;
    }
    for (int& arg : node.args)
      if (arg >= 0) arg = at[arg];
    at[i] = add(std::move(node));
  }
  return at.back();
}

void Scalar::finish(int result) {
  // Arguments first, left to right: the order depends on the expression alone, not on how it came.
  std::vector<ScalarNode> ordered;
  std::vector<int> at(nodes().size(), -1);
  auto visit = [&](auto& self, int id) -> int {
    if (at[id] >= 0) return at[id];
    ScalarNode node = nodes()[static_cast<std::size_t>(id)];
    for (int& arg : node.args)
      if (arg >= 0) arg = self(self, arg);
    ordered.push_back(std::move(node));
    return at[id] = static_cast<int>(ordered.size()) - 1;
  };
  visit(visit, result);
  nodes_ = std::make_shared<std::vector<ScalarNode>>(std::move(ordered));
}

int Scalar::operand_count() const {
  int count = 0;
  for (const auto& node : nodes())
    if (node.op == ScalarOp::operand) count = std::max(count, node.operand + 1);
  return count;
}

AxisNames Scalar::index_axes() const {
  AxisNames axes;
  for (const auto& node : nodes())
    if (node.op == ScalarOp::index && !contains(axes, node.axis)) axes.push_back(node.axis);
  return axes;
}

std::vector<ScalarKind> Scalar::kinds(const std::vector<bool>& operand_is_integer) const {
  using enum ScalarKind;
  std::vector<ScalarKind> kinds;
  for (const auto& node : nodes()) {
    // Arithmetic is integer where every argument that is no whole constant is integer, and there
    // is one: a select between two constants is real.
    auto arithmetic = [&](std::initializer_list<int> args) {
      bool some = false, all = true;
      for (int arg : args) {
        all &= kinds[arg] != real;
        some |= kinds[arg] != real && nodes()[arg].op != ScalarOp::constant;
      }
      return all && some ? integer : real;
    };
    const auto [a, b, c] = node.args;
    switch (node.op) {
      case ScalarOp::constant:
        kinds.push_back(node.value == std::floor(node.value) && std::fabs(node.value) < 0x1p31
                            ? integer
                            : real);
        break;
      case ScalarOp::operand:
        KRAIT_ASSERT(node.operand < static_cast<int>(operand_is_integer.size()), "operand ",
                     node.operand, " of ", operand_is_integer.size());
        kinds.push_back(operand_is_integer[node.operand] ? integer : real);
        break;
      case ScalarOp::index:
      case ScalarOp::extent: kinds.push_back(integer); break;
      case ScalarOp::neg:
      case ScalarOp::abs:
      case ScalarOp::nonpositive: kinds.push_back(arithmetic({a})); break;
      case ScalarOp::floor: {  // of an integer, and of a quotient of integers
        const ScalarNode& of = nodes()[a];
        bool quotient = of.op == ScalarOp::div && arithmetic({of.args[0], of.args[1]}) == integer;
        kinds.push_back(quotient ? integer : arithmetic({a}));
        break;
      }
      case ScalarOp::add:
      case ScalarOp::sub:
      case ScalarOp::mul:
      case ScalarOp::min:
      case ScalarOp::max: kinds.push_back(arithmetic({a, b})); break;
      case ScalarOp::select: {
        bool both = kinds[b] == boolean && kinds[c] == boolean;
        kinds.push_back(both ? boolean : arithmetic({b, c}));
        break;
      }
      default: kinds.push_back(is_boolean(node.op) ? boolean : real);
    }
  }
  if (root().op == ScalarOp::constant) kinds.back() = real;
  return kinds;
}

}  // namespace krait
