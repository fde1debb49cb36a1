#include "runtime/windows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/error.h"

namespace krait {
namespace {

/// A tensor seen as (outer, size of one axis, inner).
struct Around {
  std::int64_t outer = 1, size = 1, inner = 1;
};

std::optional<Around> around(const AxisNames& order, const std::string& axis,
                             const std::vector<std::int64_t>& shape) {
  Around result;
  bool found = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] == axis) {
      found = true;
      result.size = shape[i];
    } else {
      (found ? result.inner : result.outer) *= shape[i];
    }
  }
  return found ? std::optional(result) : std::nullopt;
}

std::size_t position(const AxisNames& order, const std::string& axis) {
  return std::find(order.begin(), order.end(), axis) - order.begin();
}

/// Calls copy(place in the whole, place in the part, count) for each contiguous run of positions
/// start .. start + length of the axis.
template <typename Whole, typename Part>
void for_each_run(const Around& whole, std::int64_t start, std::int64_t length, Whole whole_at,
                  Part part_at, const auto& copy) {
  for (std::int64_t outer = 0; outer < whole.outer; ++outer) {
    copy(whole_at + (outer * whole.size + start) * whole.inner,
         part_at + outer * length * whole.inner, length * whole.inner);
  }
}

Tensor64 window_of(const Tensor64& whole, const AxisNames& order, std::int64_t start,
                   std::int64_t length) {
  const std::optional<Around> dims = around(order, "t", whole.shape);
  if (!dims) return whole;
  std::vector<std::int64_t> shape = whole.shape;
  shape[position(order, "t")] = length;
  Tensor64 part(shape);
  for_each_run(*dims, start, length, whole.data.begin(), part.data.begin(),
               [](auto from, auto to, std::int64_t count) { std::copy_n(from, count, to); });
  return part;
}

void zero_row(Tensor64& state, const AxisNames& order, std::int64_t row) {
  const std::optional<Around> dims = around(order, "b", state.shape);
  KRAIT_REQUIRE(dims.has_value(), "a state has no axis b; allowed: states that have it");
  for (std::int64_t outer = 0; outer < dims->outer; ++outer) {
    const auto at = state.data.begin() + (outer * dims->size + row) * dims->inner;
    std::fill_n(at, dims->inner, 0.0);
  }
}

/// Rows whose document at `start` is another than the one before.
std::vector<std::int64_t> rows_that_start(const Tensor64& seq_idx, std::int64_t start) {
  std::vector<std::int64_t> rows;
  const std::int64_t length = seq_idx.shape[1];
  for (std::int64_t row = 0; row < seq_idx.shape[0]; ++row) {
    const std::int64_t at = row * length + start;
    if (seq_idx.data[at] != seq_idx.data[at - 1]) rows.push_back(row);
  }
  return rows;
}

}  // namespace

void add_zero_states(const Graph& graph, const Sizes& sizes, Tensors64& inputs) {
  for (const StatePair& pair : graph.states()) {
    const std::optional<Value> value = graph.find_input(pair.in);
    KRAIT_ASSERT(value.has_value(), "no input ", pair.in);
    std::vector<std::int64_t> shape;
    for (const std::string& axis : graph.input_of(*value).order) {
      shape.push_back(graph.axis(axis).extent.value(sizes));
    }
    inputs.try_emplace(pair.in, Tensor64(shape));
  }
}

Tensors64 run_in_windows(const Graph& graph, Runner& runner, const Tensors64& inputs,
                         std::int64_t length) {
  KRAIT_REQUIRE(length >= 1, "window is ", length, "; allowed: 1 and up");
  const std::int64_t total = sizes_from_inputs(graph, inputs).at("t");
  std::map<std::string, AxisNames> orders;
  for (const Value& value : graph.inputs()) {
    orders[graph.input_of(value).name] = graph.input_of(value).order;
  }
  const auto seq_idx = inputs.find("seq_idx");
  Tensors64 states, joined;
  for (const StatePair& pair : graph.states()) states[pair.in] = inputs.at(pair.in);
  for (std::int64_t start = 0; start < total; start += length) {
    const std::int64_t now = std::min(length, total - start);
    if (start > 0 && seq_idx != inputs.end()) {
      for (const std::int64_t row : rows_that_start(seq_idx->second, start)) {
        for (auto& [name, state] : states) zero_row(state, orders.at(name), row);
      }
    }
    Tensors64 part = states;
    for (const auto& [name, order] : orders) {
      if (!states.count(name)) part[name] = window_of(inputs.at(name), order, start, now);
    }
    const Tensors64 outputs = runner.run(part, {}).outputs;
    for (const Output& output : graph.outputs()) {
      const Tensor64& piece = outputs.at(output.name);
      const std::optional<Around> dims = around(output.order, "t", piece.shape);
      if (!dims) {
        joined[output.name] = piece;
        continue;
      }
      std::vector<std::int64_t> shape = piece.shape;
      shape[position(output.order, "t")] = total;
      Tensor64& whole = joined.try_emplace(output.name, Tensor64(shape)).first->second;
      for_each_run({dims->outer, total, dims->inner}, start, now, whole.data.begin(),
                   piece.data.begin(),
                   [](auto to, auto from, std::int64_t count) { std::copy_n(from, count, to); });
    }
    for (const StatePair& pair : graph.states()) states[pair.in] = outputs.at(pair.out);
  }
  return joined;
}

}  // namespace krait
