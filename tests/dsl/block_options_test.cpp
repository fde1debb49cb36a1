// What single options of the blocks mean, by identities and by plain loops.
#include "tests/dsl/blocks_testing.h"

using namespace krait;
using namespace krait::testing;

namespace {

Graph graph_of(const BlockSpec& spec) { return build_graph(block_function(spec), DType::f64); }

/// Rows [from, from + count) of a tensor's first dimension.
Tensor64 rows(const Tensor64& x, std::int64_t from, std::int64_t count) {
  std::vector<std::int64_t> shape = x.shape;
  const std::int64_t inner = x.count() / shape[0];
  shape[0] = count;
  Tensor64 result(shape);
  for (std::int64_t i = 0; i < count * inner; ++i) result.data[i] = x.data[from * inner + i];
  return result;
}

/// Columns [from, from + count) of a matrix.
Tensor64 columns(const Tensor64& x, std::int64_t from, std::int64_t count) {
  Tensor64 result({x.shape[0], count});
  for (std::int64_t r = 0; r < x.shape[0]; ++r) {
    for (std::int64_t c = 0; c < count; ++c) {
      result.data[r * count + c] = x.data[r * x.shape[1] + from + c];
    }
  }
  return result;
}

/// x W^T over the last dimension of x (b, t, in), W (out, in).
Tensor64 multiply(const Tensor64& x, const Tensor64& w) {
  const std::int64_t in = w.shape[1], out = w.shape[0], count = x.count() / in;
  Tensor64 result({x.shape[0], x.shape[1], out});
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t k = 0; k < in; ++k) {
        result.data[i * out + o] += x.data[i * in + k] * w.data[o * in + k];
      }
    }
  }
  return result;
}

double silu_of(double x) { return x / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("d_ssm below d_inner puts a gated MLP beside a narrower block", "[blocks]") {
  Mamba2Spec wide{.d_model = 8, .d_state = 3, .expand = 2, .headdim = 4, .d_ssm = 8};
  Mamba2Spec narrow = wide;
  narrow.expand = 1;
  narrow.d_ssm = 0;
  const Graph beside = graph_of(wide), alone = graph_of(narrow);
  std::mt19937 random(1);
  const Tensors64 inputs = block_inputs(beside, {{"b", 2}, {"t", 5}}, random);
  const Tensor64 &in_proj = inputs.at("w.in_proj"), &out_proj = inputs.at("w.out_proj");
  Tensors64 inner = inputs;
  inner["w.in_proj"] = rows(in_proj, 16, in_proj.shape[0] - 16);
  inner["w.out_proj"] = columns(out_proj, 8, 8);
  Tensor64 expected = evaluate(alone, inner).at("y");
  const Tensor64 z0 = multiply(inputs.at("u"), rows(in_proj, 0, 8));
  Tensor64 x0 = multiply(inputs.at("u"), rows(in_proj, 8, 8));
  for (std::size_t i = 0; i < x0.data.size(); ++i) x0.data[i] *= silu_of(z0.data[i]);
  const Tensor64 mlp = multiply(x0, columns(out_proj, 0, 8));
  for (std::size_t i = 0; i < mlp.data.size(); ++i) expected.data[i] += mlp.data[i];
  CHECK(difference(evaluate(beside, inputs).at("y"), expected) < 1e-12);
}

TEMPLATE_TEST_CASE("Projection biases add to what the projections give", "[blocks]", Mamba1Spec,
                   Mamba2Spec) {
  TestType spec{.d_model = 4, .d_state = 3};
  if constexpr (requires { spec.headdim; }) spec.headdim = 4;
  TestType biased = spec;
  biased.bias = true;
  const Graph graph = graph_of(biased);
  std::mt19937 random(2);
  Tensors64 inputs = block_inputs(graph, {{"b", 2}, {"t", 4}}, random);
  // A bias W v is the same as v added to every u.
  const Tensor64 v = random_tensor({1, 1, 4}, random);
  const Tensor64 product = multiply(v, inputs.at("w.in_proj"));
  inputs["w.in_proj_bias"].data = product.data;
  const Tensor64 y = evaluate(graph, inputs).at("y");
  Tensors64 moved = inputs;
  moved.erase("w.in_proj_bias");
  moved.erase("w.out_proj_bias");
  for (std::size_t i = 0; i < moved["u"].data.size(); ++i) moved["u"].data[i] += v.data[i % 4];
  Tensor64 expected = evaluate(graph_of(spec), moved).at("y");
  for (std::size_t i = 0; i < expected.data.size(); ++i) {
    expected.data[i] += inputs.at("w.out_proj_bias").data[i % 4];
  }
  CHECK(difference(y, expected) < 1e-12);
}

TEST_CASE("Learnt initial states are the first state of every row", "[blocks]") {
  Mamba2Spec spec{.d_model = 4, .d_state = 3, .headdim = 2};
  Mamba2Spec learnt = spec;
  learnt.learnable_init_states = true;
  const Graph graph = graph_of(learnt), carried = graph_of(with_states(spec, true));
  std::mt19937 random(3);
  Tensors64 inputs = block_inputs(graph, {{"b", 2}, {"t", 4}}, random);
  const Tensor64 y = evaluate(graph, inputs).at("y");
  const Tensor64 states = inputs.at("w.init_states");
  inputs["conv_state"] = Tensor64({2, 14, 4});
  inputs["h0"] = Tensor64({2, 4, 2, 3});
  for (std::size_t i = 0; i < 48; ++i) inputs["h0"].data[i] = states.data[i % 24];
  inputs.erase("w.init_states");
  CHECK(difference(y, evaluate(carried, inputs).at("y")) < 1e-14);
}

TEST_CASE("Gated norms over groups of any width that divides", "[blocks]") {
  const Axis e("e", 24), p("p", 4);
  const HeadAxes heads(6, 2);
  std::mt19937 random(4);
  const Tensor64 y = random_tensor({1, 2, 24}, random), z = random_tensor({1, 2, 24}, random);
  const Tensor64 weight = random_tensor({24}, random);
  for (const bool before : {false, true}) {
    for (const std::int64_t size : {1, 2, 3, 4, 6, 8, 12, 24}) {
      INFO("groups of " << size << (before ? ", norm first" : ""));
      Scope s(DType::f64);
      const auto channels = [&](const char* name) {
        return split_channels(s.input(name, {batch_axis(), time_axis(), e}), e, heads, p);
      };
      const Expr out = gated_rms_norm(channels("y"), channels("z"), s.param("weight", {e}), e,
                                      heads, p, size, 1e-5, before);
      s.output("out", out, {"b", "t", "e"});
      const Tensor64 got = evaluate(s.finish(), {{"y", y}, {"z", z}, {"weight", weight}}).at("out");
      Tensor64 expected({1, 2, 24});
      for (std::int64_t first = 0; first < 48; first += size) {
        double squares = 0;
        const auto value = [&](std::int64_t i) {
          return before ? y.data[i] : y.data[i] * silu_of(z.data[i]);
        };
        for (std::int64_t i = first; i < first + size; ++i) squares += value(i) * value(i);
        const double factor = 1 / std::sqrt(squares / static_cast<double>(size) + 1e-5);
        for (std::int64_t i = first; i < first + size; ++i) {
          expected.data[i] =
              value(i) * factor * weight.data[i % 24] * (before ? silu_of(z.data[i]) : 1);
        }
      }
      CHECK(difference(got, expected) < 1e-13);
    }
  }
}

TEST_CASE("B and C constant in time, a row for each channel", "[blocks]") {
  SelectiveScanSpec constant{.channels = 4, .d_state = 3, .ngroups = 1};
  constant.is_variable_B = constant.is_variable_C = false;
  SelectiveScanSpec variable = constant;
  variable.is_variable_B = variable.is_variable_C = true;
  variable.ngroups = 4;  // a group for each channel
  const Graph graph = graph_of(constant);
  std::mt19937 random(5);
  Tensors64 inputs = block_inputs(graph, {{"b", 2}, {"t", 3}}, random);
  const Tensor64 y = evaluate(graph, inputs).at("y");
  for (const std::string name : {"B", "C"}) {
    Tensor64 spread({2, 3, 4, 3});
    for (std::size_t i = 0; i < spread.data.size(); ++i) {
      spread.data[i] = inputs.at(name).data[i % 12];
    }
    inputs[name] = spread;
  }
  CHECK(difference(y, evaluate(graph_of(variable), inputs).at("y")) < 1e-14);
}

TEST_CASE("With bcdt_rms the sizes of B, C and dt do not matter", "[blocks]") {
  Mamba1Spec spec{.d_model = 4, .d_state = 3, .dt_rank = 2};
  spec.mixer_rms_eps = 1e-30;
  for (const bool normed : {true, false}) {
    spec.bcdt_rms = normed;
    const Graph graph = graph_of(spec);
    std::mt19937 random(6);
    Tensors64 inputs = block_inputs(graph, {{"b", 1}, {"t", 4}}, random);
    const Tensor64 y = evaluate(graph, inputs).at("y");
    Tensor64& x_proj = inputs["w.x_proj"];  // rows: dt 2, B 3, C 3; columns: 8 channels
    const double factors[] = {3, 3, 0.5, 0.5, 0.5, 7, 7, 7};
    for (std::size_t i = 0; i < x_proj.data.size(); ++i) x_proj.data[i] *= factors[i / 8];
    const double change = difference(y, evaluate(graph, inputs).at("y"));
    CHECK((normed ? change < 1e-12 : change > 1e-3));
  }
}

TEST_CASE("One input a head of several turns other pairs than a single input", "[blocks]") {
  const Mamba3MimoScanSpec several{
      .nheads = 2, .headdim = 3, .d_state = 8, .mimo_rank = 1, .z = false};
  const Mamba3ScanSpec single{.nheads = 2, .headdim = 3, .d_state = 8};
  const Graph graph = graph_of(with_states(several, true));
  std::mt19937 random(10);
  Tensors64 inputs = block_inputs(graph, {{"b", 2}, {"t", 4}}, random);
  for (const char* name : {"mimo_x", "mimo_o"}) inputs[name] = Tensor64({2, 1, 3}, 1.0);
  const Tensors64 out = evaluate(graph, inputs);
  // Channels (i, 4 + i) of the one are channels (2 i, 2 i + 1) of the other.
  const auto turned = [](const Tensor64& x, std::vector<std::int64_t> shape) {
    Tensor64 result(std::move(shape));
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const std::size_t n = i % 8;
      result.data[i - n + (n < 4 ? 2 * n : 2 * (n - 4) + 1)] = x.data[i];
    }
    return result;
  };
  const auto turn = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    inputs[name] = turned(inputs.at(name), shape);
  };
  for (const char* name : {"q", "k"}) turn(name, {2, 4, 1, 8});
  for (const char* name : {"q_bias", "k_bias"}) turn(name, {2, 8});
  turn("state.ssm", {2, 2, 3, 8});
  turn("state.k", {2, 2, 8});
  for (const char* name : {"mimo_x", "mimo_o"}) inputs.erase(name);
  const Tensors64 expected = evaluate(graph_of(with_states(single, true)), inputs);
  CHECK(difference(out.at("y"), expected.at("y")) < 1e-13);
  CHECK(difference(turned(out.at("state.ssm"), {2, 2, 3, 8}), expected.at("state.ssm")) < 1e-13);
  CHECK(difference(turned(out.at("state.k"), {2, 2, 8}), expected.at("state.k")) < 1e-13);
}

TEST_CASE("A scan without D or gate", "[blocks]") {
  SsdSpec with{.nheads = 2, .headdim = 3, .d_state = 4, .D = "channel"};
  SsdSpec without = with;
  without.D = "none";
  std::mt19937 random(7);
  Tensors64 inputs = block_inputs(graph_of(with), {{"b", 1}, {"t", 3}}, random);
  const Tensor64 y = evaluate(graph_of(with), inputs).at("y");
  Tensor64 expected = y;
  for (std::size_t i = 0; i < y.data.size(); ++i) {
    expected.data[i] -= inputs.at("D").data[i % 6] * inputs.at("x").data[i];
  }
  inputs.erase("D");
  CHECK(difference(evaluate(graph_of(without), inputs).at("y"), expected) < 1e-14);
}

TEST_CASE("A scan's data that breaks its promise of decay is rejected", "[blocks]") {
  for (const BlockSpec& spec :
       {BlockSpec(SsdSpec{.nheads = 1, .headdim = 1, .d_state = 1}),
        BlockSpec(SelectiveScanSpec{.channels = 1, .d_state = 1}),
        BlockSpec(Mamba3ScanSpec{.nheads = 1, .headdim = 1, .d_state = 4})}) {
    const Graph graph = graph_of(spec);
    std::mt19937 random(8);
    Tensors64 inputs = block_inputs(graph, {{"b", 1}, {"t", 2}}, random);
    CHECK_NOTHROW(evaluate(graph, inputs));
    Tensor64& decay = inputs[inputs.count("adt") ? "adt" : "A"];
    decay.data.back() = 0.5;
    CHECK_THROWS_AS(evaluate(graph, inputs), UsageError);
  }
}

TEST_CASE("A backbone's words: embedding, head, tied or not", "[blocks]") {
  BackboneSpec tied{.d_model = 6, .n_layer = 1, .vocab_size = 5};
  tied.ssm_cfg = Mamba3Spec{.d_state = 4, .headdim = 3};
  BackboneSpec apart = tied;
  apart.tie_embeddings = false;
  std::mt19937 random(9);
  const Graph graph = graph_of(apart);
  Tensors64 inputs = block_inputs(graph, {{"b", 2}, {"t", 3}}, random);
  inputs["lm_head"] = inputs.at("embedding");
  const Tensor64 logits = evaluate(graph, inputs).at("logits");
  CHECK(logits.shape == std::vector<std::int64_t>{2, 3, 8});
  // The same through the backbone that takes what the embedding gives.
  BackboneSpec bare = tied;
  bare.vocab_size = 0;
  Tensors64 inner = inputs;
  inner["x"] = Tensor64({2, 3, 6});
  for (std::int64_t i = 0; i < 36; ++i) {
    const auto token = static_cast<std::int64_t>(inputs.at("tokens").data[i / 6]);
    inner["x"].data[i] = inputs.at("embedding").data[token * 6 + i % 6];
  }
  for (const char* name : {"tokens", "embedding", "lm_head"}) inner.erase(name);
  const Tensor64 y = evaluate(graph_of(bare), inner).at("y");
  CHECK(difference(logits, multiply(y, inputs.at("embedding"))) < 1e-13);
  inputs.erase("lm_head");
  CHECK(difference(evaluate(graph_of(tied), inputs).at("logits"), logits) < 1e-14);
}
