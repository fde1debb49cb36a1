// Runs graphs on the host and holds them to `evaluate`.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "dsl/evaluate.h"
#include "runtime/executor.h"
#include "runtime/host/device.h"

namespace krait {

/// Threads, a BLAS or ("none") no BLAS, kernels kept in memory.
inline std::shared_ptr<HostDevice> test_device(int threads = 2,
                                               const std::string& libblas = "libopenblas.so.0") {
  HostDeviceOptions options = HostDeviceOptions::from();
  options.compiler.use_disk = false;
  options.libblas = libblas;
  options.threads = threads;
  return std::make_shared<HostDevice>(options);
}

inline Tensor64 random_tensor(const Shape& shape, std::uint64_t seed, double low = -1,
                              double high = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Tensor64 tensor(shape);
  // Exact in f32, so that both sides read the same numbers.
  for (double& x : tensor.data) x = static_cast<float>(draw(random));
  return tensor;
}

/// Random tensors for every input that `given` lacks.
inline Tensors64 random_inputs(const Graph& graph, const Sizes& sizes, std::uint64_t seed,
                               Tensors64 given = {}) {
  for (Value value : graph.inputs()) {
    const Input& input = graph.input_of(value);
    Shape shape;
    for (const auto& axis : input.order) shape.push_back(graph.axis(axis).extent.value(sizes));
    ++seed;
    if (!given.count(input.name)) given[input.name] = random_tensor(shape, seed);
  }
  return given;
}

/// |got - reference| / max(|reference|, 1e-3 sqrt(count)), L2 norms.
inline double relative_error(const Tensor64& got, const Tensor64& reference) {
  if (got.shape != reference.shape) return HUGE_VAL;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    difference += (got.data[i] - reference.data[i]) * (got.data[i] - reference.data[i]);
    norm += reference.data[i] * reference.data[i];
  }
  const double least = 1e-3 * std::sqrt(static_cast<double>(got.data.size()));
  return std::sqrt(difference) / std::max(std::sqrt(norm), least);
}

/// Runs the plan over dense tensors and gives its outputs.
inline Tensors64 run_plan(const Executor& executor, const Tensors64& inputs) {
  const Plan& plan = executor.plan();
  Tensors given, results;
  std::vector<const TensorRef*> bound(plan.objects.size(), nullptr);
  std::vector<TensorRef> views(plan.objects.size());
  Sizes sizes = sizes_from_inputs(plan.graph, inputs);
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const MemoryObject& object = plan.objects[i];
    if (object.kind == MemoryObject::Kind::temporary) continue;
    if (object.kind == MemoryObject::Kind::input) {
      given[object.name] = from_float64(inputs.at(object.name), object.dtype);
      views[i] = given[object.name].ref();
    } else {
      results[object.name] = Tensor(object.dtype, shape_of(object, sizes));
      views[i] = results[object.name].ref();
    }
    bound[i] = &views[i];
  }
  executor.run(bound);
  Tensors64 outputs;
  for (const auto& [name, tensor] : results) outputs[name] = to_float64(tensor.ref());
  return outputs;
}

inline void check_close(const Tensors64& got, const Tensors64& reference, double bound) {
  REQUIRE(got.size() == reference.size());
  for (const auto& [name, tensor] : reference) {
    INFO("output " << name);
    REQUIRE(got.count(name) == 1);
    CHECK(relative_error(got.at(name), tensor) <= bound);
  }
}

}  // namespace krait
