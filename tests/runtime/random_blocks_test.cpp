// Blocks drawn at random, run by kernels on the host: whatever a user may write.
#include <catch2/catch.hpp>
#include <random>

#include "schedules/chunk.h"
#include "tests/random_block.h"
#include "tests/runtime/layer_testing.h"

namespace krait {
namespace {

Tensors64 drawn_inputs(const Graph& graph, const Sizes& sizes, unsigned seed) {
  Tensors64 inputs;
  std::uint64_t number = 100 * seed;
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    Shape shape;
    for (const auto& axis : input.order) shape.push_back(graph.axis(axis).extent.value(sizes));
    Tensor64 tensor = random_tensor(shape, ++number);
    for (double& x : tensor.data) x = input.dtype == DType::i32 ? (x > 1.2 ? 1 : 0) : 0.5 * x;
    inputs[input.name] = std::move(tensor);
  }
  return inputs;
}

void run_random_blocks(unsigned from, unsigned to) {
  const Sizes sizes{{"b", 2}, {"t", 19}};
  int ran = 0;
  for (unsigned seed = from; seed < to; ++seed) {
    const Graph graph = build_graph(
        testing::random_block(seed, {.operations = 8 + static_cast<int>(seed % 5)}), DType::f64);
    if (why_not_chunkable(graph)) continue;
    const int segments = 1 + static_cast<int>(seed % 3);
    const int chunk = seed % 2 == 0 ? 8 : 5;
    // States of every chunk in memory, or of every second or third.
    const std::string save = seed % 4 == 0 ? "" : text(" save.every=", 6 * (seed % 4));
    // States whole, or in tiles that a kernel holds one at a time.
    const std::string tile = seed % 3 == 0 ? "" : text(" tile=", seed % 3);
    const std::string width = seed % 5 < 2 ? "" : text(" width=", 4 * (seed % 5));
    LayerOptions options = testing::layer_options(
        DType::f64, text("chunk=", chunk, " segments=", segments, save, tile, width));
    options.sizes = sizes;
    options.step = false;
    INFO("seed " << seed << " " << to_text(options.schedule));
    check_layer(Layer(graph, options), drawn_inputs(graph, sizes, seed), 1e-10);
    ++ran;
  }
  CHECK(ran > 0);
}

TEST_CASE("random blocks on the host: outputs and gradients") { run_random_blocks(0, 9); }

TEST_CASE("a hundred random blocks on the host: outputs and gradients", "[slow]") {
  run_random_blocks(9, 110);
}

TEST_CASE("one head in several segments") {
  for (const char* schedule :
       {"chunk=8 segments=2", "chunk=8 segments=3", "chunk=8 segments=chunks"}) {
    INFO(schedule);
    Mamba3ScanSpec spec;
    spec.nheads = 1;
    spec.headdim = 4;
    spec.d_state = 8;
    const Graph graph = build_graph(block_function(spec), DType::f64);
    const Sizes sizes{{"b", 1}, {"t", 29}};
    LayerOptions options = testing::layer_options(DType::f64, schedule);
    options.sizes = sizes;
    options.step = false;
    std::mt19937 random(3);
    check_layer(Layer(graph, options), testing::block_inputs(graph, sizes, random), 1e-10);
  }
}

}  // namespace
}  // namespace krait
