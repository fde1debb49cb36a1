// What holds for every block: gradients, windows, documents, decays, names.
#include <numbers>

#include "tests/dsl/blocks_testing.h"

using namespace krait;
using namespace krait::testing;

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

Graph graph_of(const BlockSpec& spec) { return build_graph(block_function(spec), DType::f64); }

double state_difference(const std::string& name, const Tensor64& a, const Tensor64& b) {
  return difference(a, b, name.ends_with("angle") ? kTurn : 0);
}

const std::string& sequence_output(const Graph& graph) {
  for (const Output& output : graph.outputs()) {
    if (output.name == "y" || output.name == "logits") return output.name;
  }
  throw InternalError("no output over time");
}

}  // namespace

TEST_CASE("Gradients of every block agree with finite differences", "[blocks]") {
  const auto specs = small_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const bool states : {false, true}) {
      INFO(title(specs[i], i) << (states ? " with states" : ""));
      const Graph graph = graph_of(with_states(specs[i], states));
      std::mt19937 random(static_cast<unsigned>(i));
      const Tensors64 inputs = block_inputs(graph, {{"b", 1}, {"t", 5}}, random);
      check_gradients(graph, inputs, random, {.directions = 1, .elements = 1});
    }
  }
}

TEST_CASE("Gradients across documents agree with finite differences", "[blocks]") {
  const auto specs = small_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    INFO(title(specs[i], i));
    const Graph graph = graph_of(with_documents(with_states(specs[i], true), true));
    std::mt19937 random(static_cast<unsigned>(i));
    const Tensors64 inputs = block_inputs(graph, {{"b", 2}, {"t", 7}}, random, {1, 3, 1});
    check_gradients(graph, inputs, random, {.directions = 1, .elements = 1});
  }
}

TEST_CASE("Windows with carried states equal one window", "[blocks]") {
  const auto specs = small_specs();
  constexpr std::int64_t kTime = 9;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const bool packed : {false, true}) {
      const Graph graph = graph_of(with_documents(with_states(specs[i], true), packed));
      std::mt19937 random(static_cast<unsigned>(i));
      // Windows begin inside documents, not where one starts.
      const Tensors64 inputs = block_inputs(graph, {{"b", 2}, {"t", kTime}}, random, {2, 4, 100});
      const Tensors64 whole = evaluate(graph, inputs);
      const std::string y = sequence_output(graph);
      REQUIRE(!graph.states().empty());
      for (const std::vector<std::int64_t>& lengths :
           std::vector<std::vector<std::int64_t>>{{5, 4}, {1, 3, 3, 2}}) {
        INFO(title(specs[i], i) << (packed ? " packed" : "") << ", " << lengths.size()
                                << " windows");
        Tensors64 states;
        std::int64_t from = 0;
        for (const std::int64_t length : lengths) {
          Tensors64 now = window(graph, inputs, from, length);
          for (const auto& [name, value] : states) now[name] = value;
          const Tensors64 out = evaluate(graph, now);
          CHECK(window_difference(whole.at(y), out.at(y), from) < 1e-12);
          for (const StatePair& pair : graph.states()) states[pair.in] = out.at(pair.out);
          from += length;
        }
        REQUIRE(from == kTime);
        for (const StatePair& pair : graph.states()) {
          INFO("state " << pair.out);
          CHECK(state_difference(pair.out, states.at(pair.in), whole.at(pair.out)) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("Packed documents equal separate runs", "[blocks]") {
  const auto specs = small_specs();
  const std::vector<std::int64_t> lengths{1, 4, 1, 3};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    // Learnt initial states belong to the first document only, as carried ones do.
    const Graph packed = graph_of(with_documents(with_states(specs[i], true), true));
    const Graph alone = graph_of(with_states(specs[i], true));
    std::mt19937 random(static_cast<unsigned>(i));
    const Tensors64 inputs = block_inputs(packed, {{"b", 1}, {"t", 9}}, random, {1, 4, 1});
    const Tensors64 whole = evaluate(packed, inputs);
    const std::string y = sequence_output(packed);
    std::int64_t from = 0;
    for (const std::int64_t length : lengths) {
      INFO(title(specs[i], i) << " from " << from);
      Tensors64 now = window(alone, inputs, from, length);
      for (const StatePair& pair : alone.states()) {
        if (from > 0) now[pair.in] = Tensor64(now.at(pair.in).shape);
      }
      const Tensors64 out = evaluate(alone, now);
      CHECK(window_difference(whole.at(y), out.at(y), from) < 1e-12);
      from += length;
      if (from < 9) continue;
      for (const StatePair& pair : alone.states()) {
        INFO("state " << pair.out);
        CHECK(state_difference(pair.out, out.at(pair.out), whole.at(pair.out)) < 1e-12);
      }
    }
  }
}

TEST_CASE("A window without states starts from zero", "[blocks]") {
  const auto specs = small_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto* mamba2 = std::get_if<Mamba2Spec>(&specs[i]);
    if (mamba2 != nullptr && mamba2->learnable_init_states) continue;
    INFO(title(specs[i], i));
    const Graph bare = graph_of(specs[i]), carried = graph_of(with_states(specs[i], true));
    CHECK(bare.states().empty());
    std::mt19937 random(static_cast<unsigned>(i));
    Tensors64 inputs = block_inputs(carried, {{"b", 2}, {"t", 4}}, random);
    for (const StatePair& pair : carried.states()) {
      inputs[pair.in] = Tensor64(inputs.at(pair.in).shape);
    }
    const Tensors64 expected = evaluate(carried, inputs);
    for (const StatePair& pair : carried.states()) inputs.erase(pair.in);
    const Tensors64 out = evaluate(bare, inputs);
    REQUIRE(out.size() == expected.size());
    for (const auto& [name, value] : expected) {
      INFO("output " << name);
      CHECK(difference(out.at(name), value) < 1e-14);
    }
  }
}

TEST_CASE("Every block's decay is proven or declared", "[blocks]") {
  const auto specs = small_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    INFO(title(specs[i], i));
    const Graph graph = graph_of(specs[i]);
    int scans = 0;
    bool declared = false;
    for (const Node& node : graph.nodes()) {
      if (const auto* map = std::get_if<Map>(&node.op)) {
        for (const ScalarNode& scalar : map->expression.nodes()) {
          declared |= scalar.op == ScalarOp::nonpositive;
        }
      }
      if (!std::holds_alternative<Scan>(node.op)) continue;
      ++scans;
      CHECK(graph.interval(node.operands[0]).nonpositive());
    }
    CHECK(scans >= 1);
    // Only scans take their decay as data.
    CHECK(declared == checkpoint_names(specs[i]).empty());
  }
}

TEST_CASE("What a group shares never carries its heads", "[blocks]") {
  // B and C of a scan are read as (b, t, g, n) and contracted so.
  SsdSpec spec{.nheads = 6, .headdim = 4, .d_state = 8, .ngroups = 2};
  const Graph graph = graph_of(spec);
  for (const Node& node : graph.nodes()) {
    if (!std::holds_alternative<Contract>(node.op)) continue;
    for (const Value operand : node.operands) {
      const AxisNames& axes = graph.type(operand).axes;
      if (contains(axes, "n") && !contains(axes, "p")) CHECK(!contains(axes, "j"));
    }
  }
}

TEST_CASE("Text of a block's graph depends on its spec alone", "[blocks]") {
  const auto specs = small_specs();
  std::vector<std::string> first;
  for (const BlockSpec& spec : specs) first.push_back(to_text(graph_of(spec)));
  for (std::size_t i = specs.size(); i-- > 0;) CHECK(to_text(graph_of(specs[i])) == first[i]);
}

TEST_CASE("Every parameter of a block has one public name of its size", "[blocks]") {
  const auto specs = small_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::vector<CheckpointName> names = checkpoint_names(specs[i]);
    if (names.empty()) continue;
    const Graph graph = graph_of(specs[i]);
    std::map<std::string, std::int64_t> counts;
    for (const Value value : graph.inputs()) {
      const Input& input = graph.input_of(value);
      if (input.role != Role::parameter) continue;
      std::int64_t count = 1;
      for (const std::string& axis : input.order) count *= graph.axis(axis).extent.offset;
      counts[input.name] = count;
    }
    std::set<std::string> checkpoints;
    for (const CheckpointName& name : names) {
      INFO(title(specs[i], i) << " " << name.parameter);
      REQUIRE(counts.count(name.parameter) == 1);
      std::int64_t count = 1;
      for (const std::int64_t size : name.shape) count *= size;
      CHECK(count == counts.at(name.parameter));
      CHECK(checkpoints.insert(name.checkpoint).second);
    }
    CHECK(names.size() == counts.size());
  }
}

TEST_CASE("Public names as the checkpoints spell them", "[blocks]") {
  const auto find = [](const BlockSpec& spec, const std::string& parameter) {
    for (const CheckpointName& name : checkpoint_names(spec)) {
      if (name.parameter == parameter) return name;
    }
    return CheckpointName{};
  };
  const CheckpointName conv = find(Mamba2Spec{}, "w.conv_weight");
  CHECK(conv.checkpoint == "conv1d.weight");
  CHECK(conv.shape == std::vector<std::int64_t>{768, 1, 4});
  CHECK(find(Mamba1Spec{}, "w.dt_bias").checkpoint == "dt_proj.bias");
  CHECK(find(Mamba3Spec{}, "w.B_norm").checkpoint == "B_norm.weight");
  const BackboneSpec words{.vocab_size = 259, .tie_embeddings = false};
  CHECK(find(words, "layers.1.norm").checkpoint == "backbone.layers.1.norm.weight");
  CHECK(find(words, "layers.0.mixer.A_log").checkpoint == "backbone.layers.0.mixer.A_log");
  CHECK(find(words, "embedding").shape == std::vector<std::int64_t>{264, 256});
  CHECK(find(words, "lm_head").checkpoint == "lm_head.weight");
}

TEST_CASE("Parameters are drawn as the public constructors do", "[blocks]") {
  const Graph graph = graph_of(Mamba2Spec{.dt_init_floor = 2e-3});
  const auto init = [&](const std::string& name) {
    return graph.input_of(graph.find_input(name).value()).init;
  };
  CHECK(init("w.A_log") == Init{Init::Kind::log_uniform, 1, 16});
  CHECK(init("w.dt_bias") == Init{Init::Kind::inverse_softplus_dt, 1e-3, 1e-1, 2e-3});
  CHECK(init("w.in_proj") == Init{Init::Kind::fan_in, 256});
  CHECK(init("w.conv_weight") == Init{Init::Kind::fan_in, 4});
  CHECK(init("w.D") == Init{Init::Kind::one});
}
