#include "runtime/check.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "dsl/error.h"

namespace krait {
namespace {

/// The fixtures whose names begin so; `count` of them, so that none goes missing unseen.
std::vector<std::string> fixture_files(const std::string& prefix, std::size_t count) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KRAIT_TEST_DATA)) {
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() == count);
  return files;
}

std::string fixture(const std::string& name) { return KRAIT_TEST_DATA "/" + name + ".safetensors"; }

void check_passes(const std::string& file, const CheckOptions& options) {
  INFO(file << " with schedule \"" << to_text(options.schedule) << "\"");
  const CheckReport report = check_fixture(load_fixture(file), options);
  REQUIRE_FALSE(report.rows.empty());
  for (const CheckRow& row : report.rows) {
    INFO(row.name << " has error " << row.error << ", bound " << row.bound);
    CHECK(row.passed());
  }
}

CheckOptions with_schedule(const std::string& text) {
  CheckOptions options;
  options.schedule = parse_schedule(text);
  return options;
}

TEST_CASE("fixtures through evaluate, whole: Mamba-1") {
  for (const std::string& file : fixture_files("m1_", 7)) check_passes(file, {});
}
TEST_CASE("fixtures through evaluate, whole: scans of Mamba-2") {
  for (const std::string& file : fixture_files("m2_s", 11)) check_passes(file, {});
}
TEST_CASE("fixtures through evaluate, whole: blocks of Mamba-2") {
  for (const std::string& file : fixture_files("m2_b", 7)) check_passes(file, {});
}
TEST_CASE("fixtures through evaluate, whole: scans of Mamba-3") {
  for (const std::string& file : fixture_files("m3_s", 7)) check_passes(file, {});
}
TEST_CASE("fixtures through evaluate, whole: blocks of Mamba-3") {
  for (const std::string& file : fixture_files("m3_b", 6)) check_passes(file, {});
}
TEST_CASE("fixtures through evaluate, whole: Mamba-3 with several inputs a head") {
  for (const std::string& file : fixture_files("m3_m", 5)) check_passes(file, {});
}

TEST_CASE("fixtures through evaluate, chunked") {
  const auto size = GENERATE(1, 5, 16, 50, 64, 256);
  for (const std::string& file : fixture_files("", 43)) {
    check_passes(file, with_schedule(text("chunk=", size)));
  }
}

TEST_CASE("fixtures through evaluate, backward chunks unequal to forward ones") {
  for (const std::string& file : fixture_files("m2_b", 7)) {
    check_passes(file, with_schedule("chunk=16 backward.chunk=50"));
  }
}

TEST_CASE("fixtures through evaluate, windows of one position") {
  for (const std::string& file : fixture_files("", 43)) {
    check_passes(file, with_schedule("plan=step"));
  }
}

TEST_CASE("a block that cannot be chunked is evaluated whole and says so") {
  const CheckReport report =
      check_fixture(load_fixture(fixture("m1_scan")), with_schedule("chunk=16"));
  CHECK(report.passed());
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0].find("evaluated whole") != std::string::npos);
  CHECK(check_fixture(load_fixture(fixture("m1_scan")), {}).notes.empty());
}

TEST_CASE("an output, a gradient or a state that is a little wrong fails, and only its row") {
  Fixture wrong = load_fixture(fixture("m3_scan_odd"));
  const auto failed = [&] {
    std::vector<std::string> names;
    for (const CheckRow& row : check_fixture(wrong, {}).rows) {
      if (!row.passed()) names.push_back(row.name);
    }
    return names;
  };
  const auto with = [&](Tensor64& tensor, double value) {
    const double before = std::exchange(tensor.data[3], value);
    const std::vector<std::string> names = failed();
    tensor.data[3] = before;
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(failed().empty());
  Tensor64& y = wrong.outputs.at("y");
  CHECK(with(y, y.data[3] + 1e-5) == Names{"out.y"});
  CHECK(with(y, std::nan("")) == Names{"out.y"});
  Tensor64& angle = wrong.outputs.at("state.angle");
  CHECK(with(angle, angle.data[3] + 1e-6) == Names{"out.state.angle"});
  CHECK(with(angle, angle.data[3] + 2 * std::numbers::pi).empty());
  Tensor64& gradient = wrong.gradients.at("state.ssm");
  CHECK(with(gradient, gradient.data[3] + 1e-5) == Names{"grad.state.ssm"});
}

TEST_CASE("the gradients of one parameter of a backbone are pooled over its layers") {
  Fixture backbone = load_fixture(fixture("m3_backbone_seq"));
  std::vector<std::string> names;
  for (const CheckRow& row : check_fixture(backbone, {}).rows) names.push_back(row.name);
  const auto has = [&](const std::string& name) {
    return std::count(names.begin(), names.end(), name) == 1;
  };
  CHECK(has("grad.layers.*.mixer.in_proj"));
  CHECK(has("grad.layers.*.norm"));
  CHECK(has("grad.input_proj.weight"));
  CHECK_FALSE(has("grad.layers.0.mixer.in_proj"));

  Tensor64& last = backbone.gradients.at("layers.1.mixer.D");
  last.data[0] += 1e-3 * std::abs(last.data[0]) + 1e-3;
  const CheckReport report = check_fixture(backbone, {});
  for (const CheckRow& row : report.rows) {
    CHECK(row.passed() == (row.name != "grad.layers.*.mixer.D"));
  }
}

TEST_CASE("errors are relative to the reference, or to a thousandth where it is smaller") {
  const auto tensor = [](std::vector<double> values) {
    Tensor64 result({static_cast<std::int64_t>(values.size())});
    result.data = std::move(values);
    return result;
  };
  CHECK(tensor_error(tensor({3, 4.5}), tensor({3, 4})) == Approx(0.1));
  CHECK(tensor_error(tensor({0, 0, 0, 1e-6}), tensor({0, 0, 0, 0})) == Approx(1e-6 / 2e-3));
  CHECK(tensor_error(tensor({}), tensor({})) == 0);
  CHECK(std::isnan(tensor_error(tensor({1}), tensor({1, 1}))));
  CHECK(std::isnan(tensor_error(tensor({std::nan("")}), tensor({1}))));
  const double pi = std::numbers::pi;
  CHECK(angle_error(tensor({0.01, 6}), tensor({2 * pi + 0.01, 6})) == Approx(0).margin(1e-12));
  CHECK(angle_error(tensor({pi, pi}), tensor({0, 0})) == Approx(1));
  CHECK(std::isnan(angle_error(tensor({std::nan("")}), tensor({1}))));
  CHECK_FALSE(CheckRow{"out.y", std::nan(""), 1}.passed());
  CHECK_FALSE(CheckReport{}.passed());
}

TEST_CASE("bounds by kind of block, dtype and tensor") {
  CHECK(output_bound("ssd", DType::f64) == 1e-10);
  CHECK(output_bound("backbone", DType::f32) == 1e-5);
  CHECK(output_bound("mamba3_scan", DType::bf16) == 6e-3);
  CHECK(output_bound("mamba3_block", DType::bf16) == 1.2e-2);
  CHECK(output_bound("backbone", DType::bf16) == 2e-2);
  CHECK(output_bound("ssd", DType::f16) == 2e-3);
  CHECK(gradient_bound("ssd", "x", DType::f64) == 1e-10);
  CHECK(gradient_bound("mamba3_scan", "angles", DType::f32) == 5e-5);
  CHECK(gradient_bound("mamba3_scan", "angles", DType::f16) == 6e-3);
  CHECK(gradient_bound("mamba3_scan", "angles", DType::bf16) == 2.5e-2);
  CHECK(gradient_bound("mamba3_scan", "state.angle", DType::bf16) == 4e-2);
  CHECK(gradient_bound("ssd", "x", DType::bf16) == 2e-2);
  CHECK(gradient_bound("ssd", "x", DType::f16) == 4e-3);
  CHECK(gradient_bound("backbone", "x", DType::f16) == 8e-3);
  CHECK(gradient_bound("backbone", "x", DType::bf16) == 5e-2);
  CHECK_THROWS_AS(output_bound("ssd", DType::i32), UsageError);
}

}  // namespace
}  // namespace krait
