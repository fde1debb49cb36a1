// A recurrence that the tests of this folder wrote themselves, and layers of it on host and GPU.
#pragma once

#include <random>

#include "tests/gpu/caller.h"

namespace krait::testing {

/// Retention of two heads between a projection in and one out, with a state that is carried.
inline void retention(Scope& s) {
  const Axis b("b"), t("t"), d("d", 4), f("f", 3), h("h", 2), n("n", 4), p("p", 8);
  const auto weights = [&](const char* name, const std::vector<Axis>& axes, double inputs) {
    return s.param(name, axes, {Init::Kind::fan_in, inputs});
  };
  const Expr u = s.input("u", {b, t, d});
  const Expr q = sum(u * weights("w_q", {h, n, d}, 4), d).named("q");
  const Expr k = sum(u * weights("w_k", {h, n, d}, 4), d).named("k");
  const Expr v = sum(u * weights("w_v", {h, p, d}, 4), d).named("v");
  const Expr rate = exp(s.param("log_rate", {h}, {Init::Kind::uniform, -1, 0}));
  const ScanResult state =
      scan(t, -rate, k * v, {.initial = s.state("start", "end", {b, h, n, p})});
  s.output("y", sum(sum(state.leaving * q, n) * weights("w_o", {f, h, p}, 16), {h, p}), {b, t, f});
  s.leave("end", state.last);
}

inline Layer retention_on(const std::string& device, std::shared_ptr<Device> on = nullptr) {
  LayerOptions options;
  options.device = device;
  options.on = std::move(on);
  options.schedule = parse_schedule("chunk=8");
  options.sizes = {{"b", 2}, {"t", 21}};
  return Layer(retention, options);
}

inline std::vector<float> drawn(std::size_t count, unsigned seed) {
  std::vector<float> values(count);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  for (float& value : values) value = normal(random);
  return values;
}

/// |got - reference| / |reference|.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& reference) {
  REQUIRE(got.size() == reference.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double(got[i]) - double(reference[i]), 2);
    size += std::pow(double(reference[i]), 2);
  }
  return std::sqrt(difference / size);
}

inline std::vector<float> values_of(const Tensor& tensor) {
  const float* data = tensor.data_as<float>();
  return {data, data + tensor.count()};
}

}  // namespace krait::testing
