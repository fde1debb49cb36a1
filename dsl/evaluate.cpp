#include "dsl/evaluate.h"

#include <algorithm>
#include <cmath>

#include "dsl/error.h"
#include "dsl/evaluate_ops.h"

namespace krait {
namespace {

using evaluation::Array;
using evaluation::Call;
using evaluation::Dims;
using evaluation::Space;

std::int64_t count_of(const Dims& shape) {
  std::int64_t count = 1;
  for (auto size : shape) count *= size;
  return count;
}

const Tensor64& given(const Input& input, const Tensors64& inputs) {
  auto found = inputs.find(input.name);
  KRAIT_REQUIRE(found != inputs.end(), "input ", input.name, " is missing");
  return found->second;
}

std::string dimension_text(const Input& input, std::size_t d) {
  return text("input ", input.name, ", dimension ", d, " (axis ", input.order[d], ")");
}

Array read_input(const Space& space, const Input& input, const AxisNames& axes,
                 const Tensors64& inputs) {
  const Tensor64& tensor = given(input, inputs);
  if (input.dtype == DType::i32)
    for (double x : tensor.data)
      if (x != std::floor(x) || std::fabs(x) > 0x1p31)
        throw UsageError("input " + input.name, text(x), "whole numbers of 32 bits (dtype i32)");
  const Array stored{input.order, tensor.shape,
                     std::make_shared_for_overwrite<double[]>(tensor.data.size())};
  std::copy(tensor.data.begin(), tensor.data.end(), stored.begin());
  return evaluation::arranged(space, stored, axes);
}

Tensor64 write_output(const Space& space, const Array& value, const AxisNames& order) {
  const Array stored = evaluation::arranged(space, value, order);
  Tensor64 tensor;
  tensor.shape = stored.shape;
  tensor.data.assign(stored.begin(), stored.begin() + stored.count());
  return tensor;
}

// For each result of each node the last node that reads it: -1 where none does that an output
// needs, the number of nodes where it is an output itself.
std::vector<std::vector<int>> last_readers(const Graph& graph) {
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<std::vector<int>> last;
  for (const Node& node : graph.nodes()) last.emplace_back(node.results.size(), -1);
  for (const Output& output : graph.outputs()) last[output.value.node][output.value.result] = count;
  for (int id = count - 1; id >= 0; --id) {
    if (std::all_of(last[id].begin(), last[id].end(), [](int reader) { return reader < 0; }))
      continue;
    for (Value operand : graph.node(id).operands) {
      int& reader = last[operand.node][operand.result];
      reader = std::max(reader, id);
    }
  }
  return last;
}

std::vector<Array> run_node(Call& call, const Tensors64& inputs) {
  return std::visit(
      [&](const auto& op) -> std::vector<Array> {
        using Kind = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<Kind, Input>)
          return {read_input(call.space, op, call.axes(), inputs)};
        else if constexpr (std::is_same_v<Kind, Constant>)
          return {evaluation::filled(call.space, call.axes(), op.value)};
        else if constexpr (std::is_same_v<Kind, Cumsum> || std::is_same_v<Kind, Scan>)
          return evaluation::run(op, call);
        else
          return {evaluation::run(op, call)};
      },
      call.node.op);
}

}  // namespace

Tensor64::Tensor64(std::vector<std::int64_t> dims, double value)
    : shape(std::move(dims)), data(static_cast<std::size_t>(count_of(shape)), value) {}

Sizes sizes_from_inputs(const Graph& graph, const Tensors64& inputs) {
  Sizes sizes;
  std::map<std::string, std::string> origin;  // of each symbol: the input that gave its size
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    const Tensor64& tensor = given(input, inputs);
    KRAIT_REQUIRE(tensor.shape.size() == input.order.size(), "input ", input.name, " has ",
                  tensor.shape.size(), " dimensions; allowed: ", input.order.size());
    KRAIT_REQUIRE(count_of(tensor.shape) == tensor.count(), "input ", input.name, " has ",
                  tensor.count(), " elements; allowed: ", count_of(tensor.shape),
                  ", as its shape says");
    for (std::size_t d = 0; d < input.order.size(); ++d) {
      const Extent& extent = graph.axis(input.order[d]).extent;
      if (extent.is_constant() || extent.divisor != 1) continue;
      const std::int64_t size = tensor.shape[d] - extent.offset;
      if (size < 1)
        throw UsageError(dimension_text(input, d), text(tensor.shape[d]),
                         text(1 + extent.offset, " and up"));
      if (sizes.emplace(extent.symbol, size).second) origin[extent.symbol] = input.name;
    }
  }
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    const Tensor64& tensor = given(input, inputs);
    for (std::size_t d = 0; d < input.order.size(); ++d) {
      const Extent& extent = graph.axis(input.order[d]).extent;
      const std::int64_t expected = extent.value(sizes);
      if (tensor.shape[d] != expected)
        throw UsageError(dimension_text(input, d), text(tensor.shape[d]),
                         extent.is_constant()
                             ? text(expected)
                             : text(expected, ", as input ", origin[extent.symbol], " has ",
                                    extent.symbol, " ", sizes[extent.symbol]));
    }
  }
  return sizes;
}

Tensors64 evaluate(const Graph& graph, const Tensors64& inputs) {
  const Space space(graph, sizes_from_inputs(graph, inputs));
  const auto last = last_readers(graph);
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<std::vector<Array>> values(count);
  for (int id = 0; id < count; ++id) {
    const Node& node = graph.node(id);
    Call call{space, node, id, {}, {}};
    for (int reader : last[id]) call.wanted.push_back(reader >= 0);
    if (std::find(call.wanted.begin(), call.wanted.end(), true) == call.wanted.end()) continue;
    for (Value operand : node.operands)
      call.operands.push_back(values[operand.node][operand.result]);
    for (Value operand : node.operands)
      if (last[operand.node][operand.result] == id) values[operand.node][operand.result] = {};
    values[id] = run_node(call, inputs);
    for (std::size_t r = 0; r < call.wanted.size(); ++r)
      if (!call.wanted[r]) values[id][r] = {};
  }
  Tensors64 outputs;
  for (const Output& output : graph.outputs())
    outputs[output.name] =
        write_output(space, values[output.value.node][output.value.result], output.order);
  return outputs;
}

}  // namespace krait
