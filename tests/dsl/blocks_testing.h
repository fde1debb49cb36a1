// Data for blocks: inputs that fit a graph, windows of them, documents.
#pragma once

#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "dsl/blocks/blocks.h"
#include "tests/dsl/finite_differences.h"

namespace krait::testing {

/// Small specs of every block, with every option on one side or the other.
inline std::vector<BlockSpec> small_specs() {
  SsdSpec ssd{.nheads = 4, .headdim = 3, .d_state = 5, .ngroups = 2};
  SsdSpec bare = ssd;
  bare.D = "none";
  bare.dt_bias = bare.dt_softplus = false;
  SsdSpec wide = ssd;
  wide.D = "channel";
  wide.z = true;
  wide.dt_limit = {0.3, 0.9};
  SelectiveScanSpec selective{.channels = 6, .d_state = 3, .ngroups = 2};
  selective.z = true;
  SelectiveScanSpec constant = selective;
  constant.is_variable_B = constant.is_variable_C = false;
  constant.ngroups = 1;
  constant.D = constant.z = constant.delta_bias = constant.delta_softplus = false;
  Mamba1Spec mamba1{.d_model = 4, .d_state = 3, .d_conv = 3};
  Mamba1Spec falcon = mamba1;
  falcon.bcdt_rms = falcon.bias = true;
  falcon.conv_bias = false;
  falcon.dt_rank = 2;
  Mamba2Spec mamba2{.d_model = 6, .d_state = 3, .headdim = 3, .ngroups = 2};
  Mamba2Spec plain = mamba2;
  plain.rmsnorm = plain.conv_bias = false;
  plain.D_has_hdim = true;
  plain.d_conv = 1;
  Mamba2Spec beside = mamba2;
  beside.d_ssm = 6;
  beside.bias = beside.norm_before_gate = beside.learnable_init_states = true;
  Mamba2Spec groups = mamba2;
  groups.ngroups = 1;
  groups.norm_group_size = 2;
  Mamba3ScanSpec siso{.nheads = 4, .headdim = 3, .d_state = 6, .ngroups = 2};
  Mamba3ScanSpec full = siso;
  full.rope_fraction = 1;
  full.z = true;
  full.D = false;
  Mamba3MimoScanSpec mimo{.nheads = 2, .headdim = 3, .d_state = 6, .ngroups = 1, .mimo_rank = 2};
  Mamba3MimoScanSpec mimo_norm = mimo;
  mimo_norm.norm = true;
  mimo_norm.D = mimo_norm.z = false;
  mimo_norm.rope_fraction = 1;
  Mamba3MimoScanSpec single = mimo;
  single.mimo_rank = 1;
  Mamba3Spec mamba3{.d_model = 6, .d_state = 4, .headdim = 3, .ngroups = 2};
  Mamba3Spec normed = mamba3;
  normed.is_outproj_norm = true;
  normed.rope_fraction = 1;
  normed.a_activation = "softplus";
  Mamba3Spec several = normed;
  several.is_mimo = true;
  several.mimo_rank = 2;
  BackboneSpec backbone{.d_model = 4, .n_layer = 2, .d_input = 3, .ssm_cfg = mamba2};
  std::get<Mamba2Spec>(backbone.ssm_cfg).headdim = 2;
  BackboneSpec words{.d_model = 6, .n_layer = 1, .vocab_size = 5, .ssm_cfg = mamba3};
  return {ssd,  bare, wide, selective, constant, mamba1, falcon, mamba2,  plain,    beside, groups,
          siso, full, mimo, mimo_norm, single,   mamba3, normed, several, backbone, words};
}

/// "mamba2 3": the block and where it stands in the list.
inline std::string title(const BlockSpec& spec, std::size_t position) {
  return text(block_name(spec), " ", position);
}

/// Rows of documents of these lengths; the last one fills the row.
inline Tensor64 documents(std::int64_t b, std::int64_t t,
                          const std::vector<std::int64_t>& lengths) {
  Tensor64 seq_idx({b, t});
  for (std::int64_t row = 0; row < b; ++row) {
    std::int64_t at = 0;
    for (const std::int64_t length : lengths) {
      at += length + row;
      for (std::int64_t i = at; i < t; ++i) seq_idx.data[row * t + i] += 1;
    }
  }
  return seq_idx;
}

/// Random inputs of a block's graph: decays that are <= 0, tokens in range, angles in [0, 2 pi).
inline Tensors64 block_inputs(const Graph& graph, const Sizes& sizes, std::mt19937& random,
                              const std::vector<std::int64_t>& lengths = {}) {
  Tensors64 given;
  for (const Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    const auto shape = shape_of(graph, input.order, sizes);
    const auto draw = [&](double low, double high) {
      given[input.name] = random_tensor(shape, random, low, high);
    };
    if (input.name == "seq_idx") given["seq_idx"] = documents(shape[0], shape[1], lengths);
    if (input.name == "tokens") given["tokens"] = random_integers(shape, random, 5);
    if (input.name == "A" || input.name == "adt") draw(-1, -0.1);
    if (input.name == "dt" || input.name == "delta") draw(0.1, 1);
    if (input.name.ends_with("state.angle")) draw(0, 2 * std::numbers::pi);
  }
  return random_inputs(graph, sizes, random, given);
}

/// Positions [from, from + length) of axis t of every input that has it; the others unchanged.
inline Tensors64 window(const Graph& graph, const Tensors64& inputs, std::int64_t from,
                        std::int64_t length) {
  Tensors64 result;
  for (const Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    const Tensor64& whole = inputs.at(input.name);
    std::size_t axis = 0;
    while (axis < input.order.size() && input.order[axis] != "t") ++axis;
    if (axis == input.order.size()) {
      result[input.name] = whole;
      continue;
    }
    std::vector<std::int64_t> shape = whole.shape;
    std::int64_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    const std::int64_t t = shape[axis];
    shape[axis] = length;
    Tensor64 part(shape);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < length * inner; ++i) {
        part.data[o * length * inner + i] = whole.data[(o * t + from) * inner + i];
      }
    }
    result[input.name] = part;
  }
  return result;
}

/// The largest difference of a window's output (b, t, ...) from the whole's, t from `from` on.
inline double window_difference(const Tensor64& whole, const Tensor64& part, std::int64_t from) {
  const std::int64_t b = whole.shape[0], t = whole.shape[1], length = part.shape[1];
  const std::int64_t inner = whole.count() / (b * t);
  double largest = 0;
  for (std::int64_t row = 0; row < b; ++row) {
    for (std::int64_t i = 0; i < length * inner; ++i) {
      largest = std::max(largest, std::fabs(part.data[row * length * inner + i] -
                                            whole.data[(row * t + from) * inner + i]));
    }
  }
  return largest;
}

/// The largest difference; `turn` above 0: modulo that.
inline double difference(const Tensor64& a, const Tensor64& b, double turn = 0) {
  REQUIRE(a.shape == b.shape);
  double largest = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    double d = a.data[i] - b.data[i];
    if (turn > 0) d -= turn * std::round(d / turn);
    largest = std::max(largest, std::fabs(d));
  }
  return largest;
}

}  // namespace krait::testing
