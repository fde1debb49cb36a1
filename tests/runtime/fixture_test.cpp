// Every golden fixture through its block: outputs and gradients of the float64 evaluator.
#include "runtime/fixture.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "dsl/differentiate.h"
#include "dsl/evaluate.h"
#include "runtime/safetensors.h"

using namespace krait;

namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

constexpr double kBound = 1e-10;

struct Golden {
  std::string op, options;
  Tensors64 in, out, cot, grad;
  Shapes shapes;
};

Golden load(const std::filesystem::path& path) {
  const SafeTensors file = load_safetensors(path.string());
  Golden golden{file.metadata.at("op"), file.metadata.at("options"), {}, {}, {}, {}, {}};
  for (const auto& [name, tensor] : file.tensors) {
    const std::size_t dot = name.find('.');
    const std::string kind = name.substr(0, dot), rest = name.substr(dot + 1);
    if (kind == "in") golden.shapes[rest] = tensor.shape;
    Tensors64& into = kind == "in"    ? golden.in
                      : kind == "out" ? golden.out
                      : kind == "cot" ? golden.cot
                                      : golden.grad;
    into[rest] = to_tensor64(tensor);
  }
  return golden;
}

/// |got - expected| / max(|expected|, 1e-3 sqrt(count)); angles by their wrapped difference.
double error_of(const Tensor64& got, const Tensor64& expected, bool angle) {
  REQUIRE(got.shape == expected.shape);
  double difference = 0, size = 0;
  const double turn = 2 * std::numbers::pi;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    double d = got.data[i] - expected.data[i];
    if (angle) d -= turn * std::round(d / turn);
    difference += d * d;
    size += expected.data[i] * expected.data[i];
  }
  const double root = std::sqrt(static_cast<double>(expected.count()));
  return std::sqrt(difference) /
         (angle ? std::numbers::pi * root : std::max(std::sqrt(size), 1e-3 * root));
}

void run_fixture(const std::filesystem::path& path) {
  const Golden golden = load(path);
  INFO(path.filename());
  const Graph graph = fixture_graph(golden.op, golden.options, golden.shapes, DType::f64);
  const Tensors64 out = evaluate(graph, golden.in);
  for (const auto& [name, expected] : golden.out) {
    INFO("output " << name);
    REQUIRE(out.count(name) == 1);
    const double error = error_of(out.at(name), expected, name == "state.angle");
    CHECK(error <= kBound);
  }
  std::vector<std::string> cotangents, wanted;
  for (const auto& [name, value] : golden.cot) cotangents.push_back(name);
  for (const auto& [name, value] : golden.grad) wanted.push_back(name);
  REQUIRE(!wanted.empty());
  const Graph gradients = differentiate(graph, cotangents, wanted);
  Tensors64 given;
  for (const Value value : gradients.inputs()) {
    const std::string& name = gradients.input_of(value).name;
    given[name] = name.rfind("cot.", 0) == 0 ? golden.cot.at(name.substr(4)) : golden.in.at(name);
  }
  const Tensors64 grad = evaluate(gradients, given);
  for (const auto& [name, expected] : golden.grad) {
    INFO("gradient " << name);
    REQUIRE(grad.count("grad." + name) == 1);
    const double error = error_of(grad.at("grad." + name), expected, false);
    CHECK(error <= kBound);
  }
}

void run_fixtures(const std::string& prefix, std::size_t count) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KRAIT_TEST_DATA)) {
    if (entry.path().extension() != ".safetensors") continue;
    if (entry.path().filename().string().rfind(prefix, 0) != 0) continue;
    ++found;
    run_fixture(entry.path());
  }
  CHECK(found == count);
}

}  // namespace

TEST_CASE("Mamba-1 fixtures: outputs and gradients", "[fixture]") { run_fixtures("m1_", 7); }
TEST_CASE("Mamba-2 scan fixtures: outputs and gradients", "[fixture]") {
  run_fixtures("m2_ssd", 11);
}
TEST_CASE("Mamba-2 block fixtures: outputs and gradients", "[fixture]") { run_fixtures("m2_b", 7); }
TEST_CASE("Mamba-3 scan fixtures: outputs and gradients", "[fixture]") {
  run_fixtures("m3_scan", 7);
}
TEST_CASE("Mamba-3 block fixtures: outputs and gradients", "[fixture]") { run_fixtures("m3_b", 6); }
TEST_CASE("Mamba-3 fixtures with several inputs a head: outputs and gradients", "[fixture]") {
  run_fixtures("m3_mimo", 5);
}
