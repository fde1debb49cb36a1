// A block on the host and on the emulated GPU, bit by bit.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "runtime/krait.h"

namespace krait::testing {

/// Normal with deviation 2, f32.
inline Tensor drawn(const Shape& shape, unsigned seed) {
  Tensor made(DType::f32, shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  for (std::int64_t i = 0; i < made.count(); ++i) made.data_as<float>()[i] = normal(random);
  return made;
}

/// Elements that differ in a bit; NaNs are all alike.
inline std::int64_t differing(const Tensor& a, const Tensor& b) {
  const std::size_t size = static_cast<std::size_t>(size_in_bytes(a.dtype()));
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    const bool same = std::memcmp(static_cast<const char*>(a.data()) + at,
                                  static_cast<const char*>(b.data()) + at, size) == 0;
    const bool nan = a.dtype() == DType::f32 && a.data_as<float>()[i] != a.data_as<float>()[i] &&
                     b.data_as<float>()[i] != b.data_as<float>()[i];
    count += same || nan ? 0 : 1;
  }
  return count;
}

/// The block's outputs under the schedule, on the host and on a GPU. Gives those of the GPU.
inline Tensors require_same_bits(const BlockFunction& block, const std::string& schedule,
                                 const Tensors& inputs) {
  ::setenv("KRAIT_LIBCUDA", KRAIT_EMULATOR_LIBRARY, 1);
  LayerOptions options;
  options.schedule = parse_schedule(schedule + " math=exact");
  options.cotangents = options.wanted = std::vector<std::string>{};
  const Layer host(block, options);
  options.device = "cuda:0";
  const Layer gpu(block, options);
  Tensors there, outputs;
  for (const auto& [name, tensor] : inputs) there[name] = to_device(tensor.ref(), *gpu.device());
  const Layer::Forward expected = host.forward(refs(inputs)), got = gpu.forward(refs(there));
  REQUIRE(got.outputs.size() == expected.outputs.size());
  for (const auto& [name, tensor] : expected.outputs) {
    INFO(name);
    outputs[name] = to_host(got.outputs.at(name).ref(), *gpu.device());
    REQUIRE(outputs[name].dtype() == tensor.dtype());
    CHECK(differing(outputs[name], tensor) == 0);
  }
  return outputs;
}

}  // namespace krait::testing
