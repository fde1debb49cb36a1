// Gradients against central differences of the float64 evaluator.
//
// The loss is the sum over outputs of <output, cotangent> with random cotangents. Every floating
// input is moved along random directions and at single elements, the first and the last included,
// and the change of the loss is compared with what `differentiate` says.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "dsl/differentiate.h"
#include "dsl/evaluate.h"

namespace krait::testing {

inline std::vector<std::int64_t> shape_of(const Graph& graph, const AxisNames& order,
                                          const Sizes& sizes) {
  std::vector<std::int64_t> shape;
  for (const auto& axis : order) shape.push_back(graph.axis(axis).extent.value(sizes));
  return shape;
}

/// Uniform in [low, high].
inline Tensor64 random_tensor(std::vector<std::int64_t> shape, std::mt19937& random,
                              double low = -1, double high = 1) {
  Tensor64 tensor(std::move(shape));
  std::uniform_real_distribution<double> draw(low, high);
  for (double& x : tensor.data) x = draw(random);
  return tensor;
}

/// Whole numbers in [0, count).
inline Tensor64 random_integers(std::vector<std::int64_t> shape, std::mt19937& random, int count) {
  Tensor64 tensor(std::move(shape));
  for (double& x : tensor.data) x = static_cast<double>(random() % count);
  return tensor;
}

/// `given`, and [-1, 1] for every floating input that it lacks.
inline Tensors64 random_inputs(const Graph& graph, const Sizes& sizes, std::mt19937& random,
                               Tensors64 given = {}) {
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    if (given.count(input.name) != 0 || !is_float(input.dtype)) continue;
    given[input.name] = random_tensor(shape_of(graph, input.order, sizes), random);
  }
  return given;
}

struct GradientCheck {
  double tolerance = 1e-6;  // relative to the gradient's size
  double step = 5e-5;
  int directions = 2;
  int elements = 6;              // sampled beside the first and the last
  std::set<std::string> skip{};  // inputs that are not moved, such as ones at a kink
};

/// The inputs of the gradient graph among `inputs` and `cotangents` (by output name).
inline Tensors64 gradient_inputs(const Graph& gradients, const Tensors64& inputs,
                                 const Tensors64& cotangents) {
  Tensors64 given;
  for (Value value : gradients.inputs()) {
    const std::string& name = gradients.input_of(value).name;
    auto input = inputs.find(name);
    given[name] = input != inputs.end() ? input->second : cotangents.at(name.substr(4));
  }
  return given;
}

/// Checks the gradients of all floating inputs at this point. Uses CHECK.
inline void check_gradients(const Graph& graph, const Tensors64& inputs, std::mt19937& random,
                            const GradientCheck& options = {}) {
  verify(graph);
  Tensors64 cotangents;
  for (const auto& [name, value] : evaluate(graph, inputs)) cotangents[name] = value;
  for (const Output& output : graph.outputs()) {
    if (is_float(graph.type(output.value).dtype)) {
      cotangents[output.name] = random_tensor(cotangents[output.name].shape, random);
    } else {
      cotangents.erase(output.name);
    }
  }
  auto loss = [&](const Tensors64& at) {
    double sum = 0;
    for (const auto& [name, value] : evaluate(graph, at)) {
      auto cotangent = cotangents.find(name);
      if (cotangent == cotangents.end()) continue;
      for (std::size_t i = 0; i < value.data.size(); ++i)
        sum += value.data[i] * cotangent->second.data[i];
    }
    return sum;
  };
  Graph gradients = differentiate(graph);
  Tensors64 found = evaluate(gradients, gradient_inputs(gradients, inputs, cotangents));
  double loss_size = std::fabs(loss(inputs));
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    if (!is_float(input.dtype) || options.skip.count(input.name) != 0) continue;
    INFO("gradient of " << input.name);
    REQUIRE(found.count("grad." + input.name) == 1);
    const Tensor64& gradient = found.at("grad." + input.name);
    const Tensor64& x = inputs.at(input.name);
    REQUIRE(gradient.shape == x.shape);
    double norm = 0;
    for (double g : gradient.data) norm += g * g;
    double typical = std::sqrt(norm / static_cast<double>(x.count()));
    auto compare = [&](const Tensor64& direction, const std::string& what) {
      Tensors64 moved = inputs;
      auto shift = [&](double amount) {
        for (std::size_t i = 0; i < x.data.size(); ++i)
          moved[input.name].data[i] = x.data[i] + amount * direction.data[i];
        return loss(moved);
      };
      auto difference = [&](double step) { return (shift(step) - shift(-step)) / (2 * step); };
      // The error of a central difference grows with the square of the step: taken out.
      double numeric = (4 * difference(options.step) - difference(2 * options.step)) / 3;
      double product = 0, length = 0;
      for (std::size_t i = 0; i < x.data.size(); ++i) {
        product += gradient.data[i] * direction.data[i];
        length += direction.data[i] * direction.data[i];
      }
      double scale = std::max(std::fabs(numeric), typical * std::sqrt(length));
      // What rounding of the loss does to a difference.
      double noise = 2e-15 * (1 + loss_size) / options.step;
      INFO(what << ": differences give " << numeric << ", differentiate gives " << product);
      CHECK(std::fabs(product - numeric) <= options.tolerance * scale + noise);
    };
    for (int i = 0; i < options.directions; ++i)
      compare(random_tensor(x.shape, random), "a random direction");
    std::set<std::size_t> picked{0, x.data.size() - 1};
    for (int i = 0; i < options.elements; ++i) picked.insert(random() % x.data.size());
    for (std::size_t element : picked) {
      Tensor64 direction(x.shape);
      direction.data[element] = 1;
      compare(direction, "element " + std::to_string(element));
    }
  }
}

/// With random inputs beside the given ones.
inline void check_gradients(const Graph& graph, const Sizes& sizes, const Tensors64& given = {},
                            const GradientCheck& options = {}) {
  std::mt19937 random(7);
  check_gradients(graph, random_inputs(graph, sizes, random, given), random, options);
}

}  // namespace krait::testing
