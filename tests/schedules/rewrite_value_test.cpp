// Every rewrite between a graph and its plan keeps the value: evaluate before and after, on blocks
// and on graphs drawn at random, for lengths around the chunk.
#include <functional>

#include "dsl/blocks/blocks.h"
#include "dsl/differentiate.h"
#include "schedules/checkpoint.h"
#include "schedules/chunk.h"
#include "schedules/normalise.h"
#include "schedules/one_step.h"
#include "tests/dsl/blocks_testing.h"
#include "tests/random_block.h"

namespace krait {
namespace {

using testing::block_inputs;
using testing::difference;

constexpr std::int64_t kChunk = 4;
constexpr std::int64_t kLengths[] = {1, kChunk - 1, kChunk, kChunk + 1, 3 * kChunk + 5};

struct Rewrite {
  const char* name;
  Graph (*apply)(const Graph&);
};
constexpr Rewrite kRewrites[] = {
    {"lower_gaps", lower_gaps},   {"take_shifted_late", take_shifted_late},
    {"slice_early", slice_early}, {"pair_contracts", pair_contracts},
    {"join_parts", join_parts},   {"fuse_maps", fuse_maps},
};

/// |got - expected| by the largest of expected, and at least 1e-3.
void require_same(const Tensors64& got, const Tensors64& expected, double bound = 1e-10) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    INFO("output " << name);
    REQUIRE(got.count(name) == 1);
    double size = 1e-3;
    for (double x : tensor.data) size = std::max(size, std::fabs(x));
    REQUIRE(difference(got.at(name), tensor) <= bound * size);
  }
}

/// A graph with the data that it is run on, and what it must give; per length.
struct Sample {
  Graph graph;
  std::vector<Tensors64> inputs, expected;
};

Tensors64 read_by(const Graph& graph, const Tensors64& all) {
  Tensors64 read;
  for (Value value : graph.inputs()) {
    const std::string& name = graph.input_of(value).name;
    read[name] = all.at(name);
  }
  return read;
}

void hold(const Sample& sample, const Graph& graph) {
  verify(graph);
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    INFO("length " << kLengths[i]);
    require_same(evaluate(graph, read_by(graph, sample.inputs[i])), sample.expected[i]);
  }
}

/// Each rewrite by itself, and one after the other as the pipeline has them.
void check_rewrites(const Sample& sample) {
  hold(sample, sample.graph);
  Graph so_far = sample.graph;
  for (const Rewrite& rewrite : kRewrites) {
    INFO("rewrite " << rewrite.name);
    const Graph alone = rewrite.apply(sample.graph);
    if (to_text(alone) != to_text(sample.graph)) hold(sample, alone);
    const Graph next = rewrite.apply(so_far);
    if (to_text(next) != to_text(so_far)) hold(sample, next);
    so_far = next;
  }
  const Graph whole = normalise(sample.graph);
  hold(sample, whole);
}

using Draw = std::function<Tensors64(const Graph&, std::int64_t length, std::mt19937&)>;

/// The graph chunked; its gradients, cut at the checkpoints that lowering makes and uncut.
void check_graph(const Graph& graph, const Draw& draw, unsigned seed) {
  std::mt19937 random(seed);
  Sample forward, backward;
  const Graph live = prune(graph);
  const std::vector<Checkpoint> cuts = checkpoints(live);
  const Graph kept = with_checkpoints(live, cuts);
  const Graph gradients = differentiate(live);
  for (std::int64_t length : kLengths) {
    Tensors64 inputs = draw(graph, length, random);
    forward.inputs.push_back(inputs);
    forward.expected.push_back(evaluate(graph, inputs));
    for (auto& [name, tensor] : evaluate(kept, inputs)) {
      if (name.rfind("saved.", 0) == 0) inputs[name] = tensor;
      const auto& shape = tensor.shape;
      if (forward.expected.back().count(name) != 0)
        inputs["cot." + name] = testing::random_tensor(shape, random);
    }
    backward.inputs.push_back(inputs);
    backward.expected.push_back(evaluate(gradients, read_by(gradients, inputs)));
  }
  {
    INFO("forward");
    forward.graph = chunk(graph, kChunk);
    check_rewrites(forward);
  }
  {
    INFO("backward with " << cuts.size() << " cuts");
    const auto made = [&](const std::vector<Checkpoint>& at, std::int64_t size) {
      return backward_graph(live, at, size, floating_outputs(live), floating_inputs(live));
    };
    backward.graph = made(cuts, kChunk);
    check_rewrites(backward);
    hold(backward, normalise(made({}, kChunk + 3)));
    if (cuts.size() > 1) {  // any subset of the cuts will do
      std::vector<Checkpoint> some;
      for (std::size_t i = 0; i < cuts.size(); i += 2) some.push_back(cuts[i]);
      hold(backward, normalise(made(some, kChunk)));
    }
  }
}

Tensors64 draw_block(const Graph& graph, std::int64_t length, std::mt19937& random) {
  return block_inputs(graph, {{"b", 2}, {"t", length}}, random, {1, 5, 1, 6});
}

Tensors64 draw_random(const Graph& graph, std::int64_t length, std::mt19937& random) {
  Tensors64 given;
  if (auto reset = graph.find_input("reset"))
    given["reset"] = testing::random_integers({2, length}, random, 2);
  return testing::random_inputs(graph, {{"b", 2}, {"t", length}}, random, given);
}

/// Without documents and states, with both; `mixed`: with one of them.
void check_specs(std::size_t from, std::size_t to, bool mixed) {
  const std::vector<BlockSpec> specs = testing::small_specs();
  REQUIRE(to <= specs.size());
  for (std::size_t i = from; i < to; ++i)
    for (const bool states : {false, true})
      for (const bool documents : {false, true}) {
        if ((documents != states) != mixed) continue;
        INFO(testing::title(specs[i], i) << " states " << states << " documents " << documents);
        const Graph graph = build_graph(
            block_function(with_documents(with_states(specs[i], states), documents)), DType::f64);
        if (why_not_chunkable(graph)) continue;
        check_graph(graph, draw_block, static_cast<unsigned>(i));
      }
}

TEST_CASE("rewrites keep the value of every block") {
  REQUIRE(testing::small_specs().size() == 21);
  check_specs(0, 11, false);
}
TEST_CASE("rewrites keep the value of every block, rotations") { check_specs(11, 16, false); }
TEST_CASE("rewrites keep the value of every block, layers") { check_specs(16, 21, false); }
TEST_CASE("rewrites keep the value of every block, states or documents alone", "[slow]") {
  check_specs(0, 21, true);
}

void check_random(unsigned from, unsigned to, int operations) {
  unsigned checked = 0;
  for (unsigned seed = from; seed < to; ++seed) {
    INFO("seed " << seed);
    const Graph graph =
        build_graph(testing::random_block(seed, {.operations = operations}), DType::f64);
    INFO(to_text(graph));
    if (why_not_chunkable(graph)) continue;
    check_graph(graph, draw_random, seed);
    ++checked;
  }
  CHECK(checked > (to - from) / 2);
}

TEST_CASE("rewrites keep the value of graphs drawn at random") { check_random(0, 40, 9); }
TEST_CASE("rewrites keep the value of many graphs drawn at random", "[slow]") {
  check_random(1000, 1300, 14);
}

/// States carried through steps of one position give what one window gives.
void check_steps(const Graph& graph, const Draw& draw, unsigned seed) {
  constexpr std::int64_t length = 5;
  std::mt19937 random(seed);
  const Tensors64 inputs = draw(graph, length, random);
  const Graph step = one_step(graph);
  verify(step);
  const Graph planned = normalise(step);
  for (const Node& node : step.nodes()) {
    const auto* scan = std::get_if<Scan>(&node.op);
    REQUIRE((scan == nullptr || scan->axis != "t"));
  }
  Tensors64 states;
  for (std::int64_t t = 0; t < length; ++t) {
    Tensors64 now = testing::window(graph, inputs, t, 1);
    for (const auto& [name, value] : states) now[name] = value;
    const Tensors64 expected = evaluate(graph, now);
    require_same(evaluate(step, now), expected, 1e-12);
    require_same(evaluate(planned, now), expected, 1e-12);
    for (const StatePair& pair : graph.states()) states[pair.in] = expected.at(pair.out);
  }
}

TEST_CASE("the graph of one step gives what a window of one gives") {
  const std::vector<BlockSpec> specs = testing::small_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const bool documents : {false, true}) {
      INFO(testing::title(specs[i], i));
      check_steps(
          build_graph(block_function(with_documents(with_states(specs[i], true), documents)),
                      DType::f64),
          draw_block, static_cast<unsigned>(i));
    }
  }
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const Graph graph = build_graph(testing::random_block(seed, {.operations = 12}), DType::f64);
    // A reverse sum reads what comes later, a look ahead too: no step can give them.
    bool ahead = false;
    for (const Node& node : graph.nodes()) {
      if (const auto* sums = std::get_if<Cumsum>(&node.op)) ahead |= sums->reverse;
    }
    if (!ahead) check_steps(graph, draw_random, seed);
  }
}

}  // namespace
}  // namespace krait
