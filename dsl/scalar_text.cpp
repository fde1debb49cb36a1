// Scalar::text: infix, with what is read several times named once behind "where".
#include <array>
#include <charconv>
#include <cmath>

#include "dsl/error.h"
#include "dsl/number_text.h"
#include "dsl/scalar.h"

namespace krait {

std::string number_text(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) return "nan";
  std::array<char, 40> buffer;
  auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

namespace {

struct Infix {
  std::string_view sign;
  int level;  // how tightly it binds
};

constexpr int kTightest = 9;

Infix infix(ScalarOp op) {
  switch (op) {
    case ScalarOp::logical_or: return {" || ", 1};
    case ScalarOp::logical_and: return {" && ", 2};
    case ScalarOp::equal: return {" == ", 3};
    case ScalarOp::less: return {" < ", 4};
    case ScalarOp::less_equal: return {" <= ", 4};
    case ScalarOp::add: return {" + ", 5};
    case ScalarOp::sub: return {" - ", 5};
    case ScalarOp::mul: return {" * ", 6};
    case ScalarOp::div: return {" / ", 6};
    default: return {"", kTightest};
  }
}

class Writer {
 public:
  Writer(const Scalar& scalar, const std::vector<std::string>& operand_names)
      : nodes_(scalar.nodes()), operand_names_(operand_names), names_(nodes_.size()) {
    std::vector<int> readers(nodes_.size(), 0);
    for (const auto& node : nodes_)
      for (int arg : node.args)
        if (arg >= 0) ++readers[arg];
    int count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (readers[i] > 1 && arity(nodes_[i].op) > 0) names_[i] = "$" + std::to_string(count++);
  }

  std::string write() {
    std::string result = define(static_cast<int>(nodes_.size()) - 1, 0);
    std::string definitions;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!names_[i].empty())
        definitions += (definitions.empty() ? " where " : ", ") + names_[i] + " = " +
                       define(static_cast<int>(i), 0);
    return result + definitions;
  }

 private:
  std::string use(int id, int level) { return names_[id].empty() ? define(id, level) : names_[id]; }

  /// In brackets where the place binds tighter than the operator.
  std::string define(int id, int level) {
    const ScalarNode& node = nodes_[id];
    const auto [sign, own] = infix(node.op);
    auto bracket = [&](std::string inner, int binds) {
      return binds < level ? "(" + inner + ")" : inner;
    };
    switch (node.op) {
      case ScalarOp::constant: return bracket(number_text(node.value), node.value < 0 ? 7 : 9);
      case ScalarOp::operand:
        return node.operand < static_cast<int>(operand_names_.size())
                   ? operand_names_[node.operand]
                   : "operand" + std::to_string(node.operand);
      case ScalarOp::index: return "index(" + node.axis + ")";
      case ScalarOp::extent: return "size(" + node.extent.text() + ")";
      case ScalarOp::neg: return bracket("-" + use(node.args[0], 8), 7);
      case ScalarOp::logical_not: return bracket("!" + use(node.args[0], 7), 7);
      default: break;
    }
    if (!sign.empty())
      return bracket(use(node.args[0], own) + std::string(sign) + use(node.args[1], own + 1), own);
    std::string list;
    for (int i = 0; i < arity(node.op); ++i) list += (i == 0 ? "" : ", ") + use(node.args[i], 0);
    return std::string(name(node.op)) + "(" + list + ")";
  }

  const std::vector<ScalarNode>& nodes_;
  const std::vector<std::string>& operand_names_;
  std::vector<std::string> names_;  // empty where the node is written in place
};

}  // namespace

std::string Scalar::text(const std::vector<std::string>& operand_names) const {
  return Writer(*this, operand_names).write();
}

}  // namespace krait
