// krait check as processes of their own: a kernel cache that the second finds warm, and products
// without a BLAS.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/run_program.h"

namespace krait {
namespace {

struct Kernels {
  int compiled = 0, from_cache = 0;
};

/// Runs the fixtures on the host; all must pass.
Kernels check(const std::vector<std::string>& files, const std::vector<std::string>& flags,
              const std::vector<std::string>& environment) {
  std::vector<std::string> arguments{"check", "--device", "host", "--json"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), files.begin(), files.end());
  const ProgramResult result = run_program(arguments, environment);
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  const nlohmann::json report = nlohmann::json::parse(result.out);
  CHECK(report.at("passed") == files.size());
  CHECK(report.at("failed") == 0);
  Kernels all;
  for (const nlohmann::json& file : report.at("files"))
    for (const nlohmann::json& note : file.at("notes")) {
      Kernels one;
      REQUIRE(std::sscanf(note.get<std::string>().c_str(), "%d kernels compiled, %d from the cache",
                          &one.compiled, &one.from_cache) == 2);
      all.compiled += one.compiled;
      all.from_cache += one.from_cache;
    }
  return all;
}

std::vector<std::string> all_fixtures() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KRAIT_TEST_DATA)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("m2_") || name.starts_with("m3_")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() == 36);
  return files;
}

void check_twice(const std::vector<std::string>& files, const std::vector<std::string>& flags,
                 const std::string& libblas) {
  INFO("KRAIT_LIBBLAS=" << libblas);
  const TestFolder folder;
  const std::vector<std::string> environment{"KRAIT_CACHE_DIR=" + folder.file("cache"),
                                             "KRAIT_LIBBLAS=" + libblas};
  const Kernels cold = check(files, flags, environment);
  CHECK(cold.compiled > 0);
  const Kernels warm = check(files, flags, environment);
  CHECK(warm.compiled == 0);
  CHECK(warm.from_cache >= cold.compiled);
}

TEST_CASE("a second check compiles nothing, with a BLAS and without") {
  const std::vector<std::string> files{KRAIT_TEST_DATA "/m2_block.safetensors",
                                       KRAIT_TEST_DATA "/m3_scan_state.safetensors"};
  check_twice(files, {"--dtype", "f32"}, "");
  check_twice(files, {"--dtype", "f64", "--chunk", "50"}, "none");
  check_twice(files, {"--schedule", "plan=step"}, "none");
}

TEST_CASE("every fixture twice, with a BLAS and without, in both dtypes", "[slow]") {
  for (const char* dtype : {"f32", "f64"})
    for (const char* libblas : {"", "none"})
      for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
               {"--dtype", dtype, "--chunk", "16"}, {"--dtype", dtype, "--schedule", "plan=step"}})
        check_twice(all_fixtures(), flags, libblas);
}

}  // namespace
}  // namespace krait
