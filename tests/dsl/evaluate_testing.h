// A graph with its inputs, to evaluate one value of it at a time.
#pragma once

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "dsl/error.h"
#include "dsl/evaluate.h"
#include "dsl/graph.h"

namespace krait {

struct Bench {
  Graph graph;
  Tensors64 inputs;
  std::mt19937 random{7};

  Value input(const std::string& name, const AxisNames& order, std::vector<std::int64_t> shape,
              std::vector<double> data, DType dtype = DType::f64) {
    inputs[name].shape = std::move(shape);
    inputs[name].data = std::move(data);
    return graph.input(Input{name, order, dtype, Role::data, {}});
  }

  /// Numbers from a uniform distribution over [low, high).
  Value random_input(const std::string& name, const AxisNames& order,
                     std::vector<std::int64_t> shape, double low, double high) {
    Tensor64 tensor(std::move(shape));
    std::uniform_real_distribution<double> draw(low, high);
    for (double& x : tensor.data) x = draw(random);
    return input(name, order, tensor.shape, tensor.data);
  }

  /// Ones with probability 1 in `period`, as i32.
  Value random_flags(const std::string& name, const AxisNames& order,
                     std::vector<std::int64_t> shape, int period) {
    Tensor64 tensor(std::move(shape));
    for (double& x : tensor.data) x = random() % static_cast<unsigned>(period) == 0;
    return input(name, order, tensor.shape, tensor.data, DType::i32);
  }

  Tensor64 run(Value value, const AxisNames& order) const {
    Graph whole = graph;
    whole.add_output("y", value, order);
    return evaluate(whole, inputs).at("y");
  }

  std::vector<double> data(Value value, const AxisNames& order) const {
    return run(value, order).data;
  }
};

using Numbers = std::vector<double>;

inline void require_close(const Numbers& got, const Numbers& expected, double bound = 1e-12) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    REQUIRE(std::abs(got[i] - expected[i]) <= bound * (1 + std::abs(expected[i])));
  }
}

inline double inner_product(const Numbers& a, const Numbers& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace krait
