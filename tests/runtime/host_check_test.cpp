// Golden fixtures through generated kernels: outputs and gradients, within the bounds of the dtype.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "dsl/error.h"
#include "runtime/check.h"

namespace krait {
namespace {

/// All fixtures that the host runs; so many of them, that none goes missing unseen.
std::vector<std::string> host_fixtures() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KRAIT_TEST_DATA)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("m2_") || name.starts_with("m3_")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() == 36);
  return files;
}

void check_all(const std::string& schedule, DType dtype) {
  CheckOptions options;
  options.device = "host";
  options.dtype = dtype;
  options.schedule = parse_schedule(schedule);
  for (const std::string& file : host_fixtures()) {
    INFO(file << " in " << name(dtype) << " with schedule \"" << schedule << "\"");
    const CheckReport report = check_fixture(load_fixture(file), options);
    REQUIRE_FALSE(report.rows.empty());
    for (const CheckRow& row : report.rows) {
      INFO(row.name << " has error " << row.error << ", bound " << row.bound);
      CHECK(row.passed());
    }
  }
}

TEST_CASE("fixtures on the host, in both dtypes") {
  check_all("", DType::f64);
  check_all("", DType::f32);
}

TEST_CASE("fixtures on the host, one position at a time") {
  check_all("plan=step", DType::f32);
  check_all("plan=step", DType::f64);
}

TEST_CASE("fixtures on the host, chunk sizes and segments", "[slow]") {
  for (const char* schedule : {"chunk=16", "chunk=50", "chunk=256", "chunk=16 backward.chunk=50",
                               "chunk=64 segments=3", "chunk=16 segments=chunks"}) {
    check_all(schedule, DType::f64);
    check_all(schedule, DType::f32);
  }
}

TEST_CASE("what the host cannot run yet is refused with the reason") {
  CheckOptions options;
  options.device = "host";
  options.dtype = DType::f32;
  const Fixture fixture = load_fixture(KRAIT_TEST_DATA "/m1_scan.safetensors");
  CHECK_THROWS_WITH(check_fixture(fixture, options),
                    Catch::Contains("schedule.plan is chunks; allowed: another plan, since"));
  options.schedule = parse_schedule("plan=recurrent");
  CHECK_THROWS_WITH(check_fixture(fixture, options), Catch::Contains("not on this device yet"));
}

}  // namespace
}  // namespace krait
