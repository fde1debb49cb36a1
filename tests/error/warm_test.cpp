// Wrong use of warm.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/error/refusal.h"

namespace krait {
namespace {

TEST_CASE("warm refuses flags that do not fit, before anything is compiled") {
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& said) {
    expect_refusal("warm", arguments, 2, said);
  };
  expect({"--block", "ssd", "--device", "evaluate"}, "--device is evaluate; allowed: host, cuda:N");
  expect({"--block", "ssd", "--device", "cuda:0", "--arch", "9.0"}, "allowed: none with --arch");
  expect({"--block", "ssd", "--arch", "6.1"}, "compute capability is 6.1; allowed: 7.5");
  expect({"--block", "ssd", "--shapes", "8by64"}, "--shapes is 8by64; allowed: BATCHxSEQLEN");
}

TEST_CASE("a spec that cannot be warmed is said, and the others are warmed") {
  const TestFolder cache;
  const ProgramResult result = run_program({"warm", "/no/such/spec.json", "--json"},
                                           {"KRAIT_CACHE_DIR=" + cache.path.string()});
  CHECK(result.status == 3);
  CHECK(result.out.find("\"compiled\": 0") != std::string::npos);
  CHECK(run_program({"warm", "--block", "ssd"}, {"KRAIT_CACHE_DIR=", "XDG_CACHE_HOME=", "HOME="})
            .err.find("no cache on disk to warm") != std::string::npos);
}

TEST_CASE("kernels that cannot be kept are an error of the environment") {
  const TestFolder folder;
  std::ofstream(folder.file("file")) << "no folder";
  const ProgramResult result =
      run_program({"warm", "--block", "ssd", "--heads", "1", "--headdim", "2", "--d-state", "2"},
                  {"KRAIT_CACHE_DIR=" + folder.file("file")});
  INFO(result.err);
  CHECK(result.status == 3);
  CHECK(result.err.find("not all could be kept on disk") != std::string::npos);
}

}  // namespace
}  // namespace krait
