// Times of an emulated GPU: that they are there; they mean nothing.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/run_program.h"

namespace krait {
namespace {

TEST_CASE("krait bench times a GPU") {
  const ProgramResult result = run_program(
      {"bench", "--block", "ssd", "--heads", "2", "--headdim", "8", "--d-state", "8", "--seqlen",
       "32", "--device", "cuda:0", "--passes", "forward,backward,step", "--repeat", "2", "--json"},
      {"KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const auto report = nlohmann::json::parse(result.out);
  CHECK(report.at("device") == "cuda:0");
  for (const char* pass : {"forward_ms", "forward_backward_ms", "step_ms"})
    CHECK(report.at(pass).get<double>() > 0);
  CHECK(report.at("limits").at("copy_gb_s").get<double>() > 0);
}

}  // namespace
}  // namespace krait
