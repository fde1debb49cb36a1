// Text and DOT. What is printed depends on the graph alone.
#include <map>

#include "dsl/error.h"
#include "dsl/graph.h"
#include "dsl/number_text.h"

namespace krait {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string all;
  for (const auto& part : parts) all += (all.empty() ? "" : between) + part;
  return all;
}

std::string listed(const AxisNames& axes) { return "(" + joined(axes, " ") + ")"; }

std::string init_text(const Init& init) {
  using enum Init::Kind;
  const std::string single = "(" + number_text(init.a) + ")";
  const std::string pair = "(" + number_text(init.a) + ", " + number_text(init.b) + ")";
  switch (init.kind) {
    case zero: return "zero";
    case one: return "one";
    case constant: return "constant" + single;
    case uniform: return "uniform" + pair;
    case log_uniform: return "log_uniform" + pair;
    case log_arange: return "log_arange";
    case inverse_softplus_dt: return "inverse_softplus_dt" + pair;
    case fan_in: return "fan_in" + single;
    case normal: return "normal" + single;
  }
  throw InternalError("an initialisation without a name");
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {
    for (int id = 0; id < count(); ++id)
      for (int result = 0; result < results(id); ++result) ++uses_[graph.label({id, result})];
  }

  int count() const { return static_cast<int>(graph_.nodes().size()); }
  int results(int id) const { return static_cast<int>(graph_.node(id).results.size()); }

  /// A label that several values bear gets the number of the node behind it.
  std::string value(Value value) const {
    std::string label = graph_.label(value);
    if (uses_.at(label) == 1) return label;
    label += "%" + std::to_string(value.node);
    if (results(value.node) > 1) label += "." + std::to_string(value.result);
    return label;
  }

  std::string axes() const {
    std::vector<std::string> axes;
    for (const auto& axis : graph_.axes()) {
      const std::string extent = axis.extent.text();
      axes.push_back(extent == axis.name ? axis.name : axis.name + " = " + extent);
    }
    return joined(axes, ", ");
  }

  /// "%7 (b t h) f32", for each result.
  std::string header(int id) const {
    std::vector<std::string> values;
    for (int result = 0; result < results(id); ++result) {
      const Type& type = graph_.node(id).results[result];
      values.push_back(value({id, result}) + " " + listed(type.axes) + " " +
                       std::string(name(type.dtype)));
    }
    return joined(values, ", ");
  }

  std::string body(int id) const {
    const Node& node = graph_.node(id);
    std::vector<std::string> operands;
    for (const Value& operand : node.operands) operands.push_back(value(operand));
    return std::string(name(node.op)) + " " + std::visit(Body{operands}, node.op);
  }

 private:
  struct Body {
    const std::vector<std::string>& operands;

    std::string operator()(const Input& op) const {
      static constexpr const char* roles[] = {"data", "parameter", "state"};
      std::string line =
          std::string(roles[static_cast<int>(op.role)]) + " stored " + listed(op.order);
      if (op.role == Role::parameter) line += ", init " + init_text(op.init);
      return line;
    }
    std::string operator()(const Constant& op) const { return number_text(op.value); }
    std::string operator()(const Map& op) const {
      std::vector<bool> read(operands.size(), false);
      for (const auto& node : op.expression.nodes())
        if (node.op == ScalarOp::operand) read[node.operand] = true;
      std::vector<std::string> beside;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (!read[i]) beside.push_back(operands[i]);
      return op.expression.text(operands) +
             (beside.empty() ? "" : " as wide as " + joined(beside, ", "));
    }
    std::string operator()(const Contract& op) const {
      return "sum " + listed(op.sum) + " of " + joined(operands, " * ");
    }
    std::string operator()(const Reduce& op) const {
      return (op.kind == Reduce::Kind::sum ? "sum " : "max ") + listed(op.axes) + " of " +
             operands[0];
    }
    std::string operator()(const Cumsum& op) const {
      return op.axis + " of " + operands[0] + carried(1, op.has_initial, op.has_reset) +
             (op.reverse ? ", reverse" : "") + (op.exclusive ? ", exclusive" : "") +
             (op.wrap ? ", wrap" : "") + (op.late ? ", late" : "") + in_parts(op.parts);
    }
    std::string operator()(const Scan& op) const {
      return op.axis + " of " + operands[1] + ", log_decay " + operands[0] +
             carried(2, op.has_initial, op.has_reset) + (op.reverse ? ", reverse" : "") +
             (op.late ? ", late" : "") + in_parts(op.parts);
    }
    std::string operator()(const PairSum& op) const {
      return "along " + op.axis + ", " + operands[0];
    }
    std::string operator()(const Gap& op) const {
      static constexpr const char* kinds[] = {"between ", "from start of ", "to end of ",
                                              "total of "};
      return kinds[static_cast<int>(op.kind)] + op.axis +
             (op.other.empty() ? "" : " and " + op.other) + ", log_decay " + operands[0];
    }
    std::string operator()(const Shift& op) const {
      return op.axis + " by " + std::to_string(op.steps) + " of " + operands[0] +
             (op.has_state ? ", state " + operands[1] + " along " + op.state_axis
                           : ", fill " + number_text(op.fill));
    }
    std::string operator()(const Gather& op) const {
      return op.axis + " of " + operands[0] + " by " + operands[1];
    }
    std::string operator()(const ScatterSum& op) const {
      return "into " + op.axis + " of " + operands[0] + " by " + operands[1];
    }
    std::string operator()(const Split& op) const {
      return op.axis + " into (" + op.outer + " " + op.inner + ") of " + operands[0];
    }
    std::string operator()(const Merge& op) const {
      return "(" + op.outer + " " + op.inner + ") into " + op.axis + " of " + operands[0];
    }
    std::string operator()(const Slice& op) const {
      return op.axis + (op.result.empty() ? " at " : " from ") + std::to_string(op.start) +
             (op.from_end ? " before the end" : "") +
             (op.result.empty() ? "" : " into " + op.result) + " of " + operands[0];
    }
    std::string operator()(const Concat& op) const {
      std::vector<std::string> parts;
      for (std::size_t i = 0; i < operands.size(); ++i)
        parts.push_back(operands[i] + " along " + op.axes[i]);
      return "into " + op.result + " of " + joined(parts, ", ");
    }
    std::string operator()(const Rename& op) const {
      return op.from + " to " + op.to + " of " + operands[0];
    }

    static std::string in_parts(const std::string& parts) {
      return parts.empty() ? "" : ", in parts " + parts;
    }
    std::string carried(int first, bool has_initial, bool has_reset) const {
      std::string text;
      if (has_initial) text += ", initial " + operands[first];
      if (has_reset) text += ", reset " + operands[first + has_initial];
      return text;
    }
  };

  const Graph& graph_;
  std::map<std::string, int> uses_;
};

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string to_text(const Graph& graph) {
  const Printer printer(graph);
  std::string text = "axes " + printer.axes() + "\n";
  for (int id = 0; id < printer.count(); ++id)
    text += printer.header(id) + " = " + printer.body(id) + "\n";
  for (const auto& output : graph.outputs())
    text += "output " + output.name + " = " + printer.value(output.value) + " stored " +
            listed(output.order) + "\n";
  for (const auto& state : graph.states()) text += "state " + state.in + " -> " + state.out + "\n";
  return text;
}

std::string to_dot(const Graph& graph) {
  const Printer printer(graph);
  std::string text =
      "digraph graph_ {\n  label=\"axes " + escaped(printer.axes()) + "\";\n  node [shape=box];\n";
  auto edge = [&](const Value& from, const std::string& to) {
    text += "  n" + std::to_string(from.node) + " -> " + to;
    if (printer.results(from.node) > 1) text += " [label=\"" + std::to_string(from.result) + "\"]";
    text += ";\n";
  };
  for (int id = 0; id < printer.count(); ++id) {
    const std::string node = "n" + std::to_string(id);
    text += "  " + node + " [label=\"" + escaped(printer.header(id)) + "\\n" +
            escaped(printer.body(id)) + "\"];\n";
    for (const Value& operand : graph.node(id).operands) edge(operand, node);
  }
  int number = 0;
  for (const auto& output : graph.outputs()) {
    const std::string node = "out" + std::to_string(number++);
    text += "  " + node + " [shape=ellipse, label=\"" + escaped(output.name) + " " +
            escaped(listed(output.order)) + "\"];\n";
    edge(output.value, node);
  }
  return text + "}\n";
}

}  // namespace krait
