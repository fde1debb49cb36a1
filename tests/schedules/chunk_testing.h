// Random data for a graph, and the comparison of a graph with its chunked form.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "dsl/evaluate.h"
#include "dsl/expr.h"
#include "schedules/chunk.h"

namespace krait {

/// Inputs of the shapes that `sizes` give. Integers: documents that change every few positions for
/// "seq_idx", rare ones for names that start with "reset", else 0, 1 or 2. Reals: N(0, 1), for
/// names in `negative` below 0, for names in `positive` above 0.
inline Tensors64 random_inputs(const Graph& graph, const Sizes& sizes, unsigned seed,
                               const std::set<std::string>& negative = {},
                               const std::set<std::string>& positive = {}) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Tensors64 inputs;
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    std::vector<std::int64_t> shape;
    for (const auto& axis : input.order) shape.push_back(graph.axis(axis).extent.value(sizes));
    Tensor64 tensor(shape);
    const std::int64_t row = shape.empty() ? 1 : shape.back();
    double document = 0;
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      double& x = tensor.data[static_cast<std::size_t>(i)];
      if (input.dtype != DType::i32) {
        x = normal(random);
        if (negative.count(input.name) != 0) x = -std::abs(x);
        if (positive.count(input.name) != 0) x = std::abs(x);
      } else if (input.name == "seq_idx") {
        document = i % row == 0 ? 0 : document + (random() % 3 == 0);
        x = document;
      } else if (input.name.rfind("reset", 0) == 0) {
        x = random() % 4 == 0;
      } else {
        x = static_cast<double>(random() % 3);
      }
    }
    inputs[input.name] = std::move(tensor);
  }
  return inputs;
}

/// |got - expected| / max(|expected|, 1e-3 sqrt(count)); NaN is infinite.
inline double relative_error(const Tensor64& got, const Tensor64& expected) {
  REQUIRE(got.shape == expected.shape);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    difference += std::pow(got.data[i] - expected.data[i], 2);
    norm += std::pow(expected.data[i], 2);
  }
  const double error =
      std::sqrt(difference) /
      std::max(std::sqrt(norm), 1e-3 * std::sqrt(static_cast<double>(got.count())));
  return std::isnan(error) ? INFINITY : error;
}

inline void require_equal(const Tensors64& got, const Tensors64& expected, double bound) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    INFO("output " << name);
    REQUIRE(got.count(name) == 1);
    REQUIRE(relative_error(got.at(name), tensor) <= bound);
  }
}

/// That the chunked graph has the same interface, no step of the recurrence along t, and no value
/// over (chunk, position) and all of the axes `outer` (of a state).
inline void require_chunked(const Graph& graph, const Graph& chunked, const AxisNames& outer) {
  REQUIRE(chunked.inputs().size() == graph.inputs().size());
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    REQUIRE(chunked.input_of(chunked.inputs()[i]) == graph.input_of(graph.inputs()[i]));
  REQUIRE(chunked.outputs().size() == graph.outputs().size());
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    REQUIRE(chunked.outputs()[i].name == graph.outputs()[i].name);
    REQUIRE(chunked.outputs()[i].order == graph.outputs()[i].order);
    REQUIRE(chunked.type(chunked.outputs()[i].value) == graph.type(graph.outputs()[i].value));
  }
  REQUIRE(chunked.states().size() == graph.states().size());
  for (const Node& node : chunked.nodes()) {
    if (const auto* scan = std::get_if<Scan>(&node.op)) REQUIRE(scan->axis != "t");
    if (const auto* cumsum = std::get_if<Cumsum>(&node.op)) REQUIRE(cumsum->axis != "t");
    if (outer.empty()) continue;
    for (const Type& type : node.results) {
      AxisNames axes = outer;
      axes.push_back("q");
      CAPTURE(to_text(chunked));
      REQUIRE(!without(axes, type.axes).empty());
      axes.back() = "k";
      REQUIRE(!without(axes, type.axes).empty());
    }
  }
}

struct ChunkCase {
  AxisNames outer;                               // axes of an outer product that must not be stored
  std::set<std::string> negative{}, positive{};  // inputs
  bool gradients = true;
  double bound = 1e-11;
};

/// Values, and gradients of all that is floating, over lengths around the chunk.
inline void check_chunk(const Graph& graph, const ChunkCase& options) {
  REQUIRE(why_not_chunkable(graph) == std::nullopt);
  unsigned seed = 1;
  for (std::int64_t size : {1, 4, 7}) {
    const Graph chunked = chunk(graph, size);
    require_chunked(graph, chunked, options.outer);
    Graph gradient, chunked_gradient;
    if (options.gradients) {
      gradient = differentiate(graph);
      chunked_gradient = differentiate(chunked);
    }
    for (std::int64_t length : std::set<std::int64_t>{1, size - 1, size, size + 1, 3 * size + 5}) {
      if (length < 1) continue;
      CAPTURE(size, length);
      const Sizes sizes{{"b", 2}, {"t", length}};
      const Tensors64 inputs =
          random_inputs(graph, sizes, ++seed, options.negative, options.positive);
      require_equal(evaluate(chunked, inputs), evaluate(graph, inputs), options.bound);
      if (!options.gradients) continue;
      Tensors64 given = random_inputs(gradient, sizes, ++seed);
      Tensors64 chunked_given = random_inputs(chunked_gradient, sizes, seed);
      for (Tensors64* tensors : {&given, &chunked_given})
        for (auto& [name, tensor] : *tensors) {
          if (inputs.count(name) != 0) tensor = inputs.at(name);
          if (given.count(name) != 0) tensor = given.at(name);
          if (inputs.count(name) != 0) tensor = inputs.at(name);
        }
      require_equal(evaluate(chunked_gradient, chunked_given), evaluate(gradient, given),
                    10 * options.bound);
    }
  }
}

}  // namespace krait
