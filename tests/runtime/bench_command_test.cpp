// krait bench: what it reports, never how fast it is.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/run_program.h"

namespace krait {
namespace {

using nlohmann::json;

json bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"bench", "--json", "--repeat", "2"});
  const ProgramResult result = run_program(arguments);
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1);
  return json::parse(result.out);
}

TEST_CASE("bench reports each pass asked for, the memory and the limits") {
  const json all =
      bench({"--block", "ssd", "--heads", "3", "--headdim", "8", "--d-state", "16", "--batch", "2",
             "--seqlen", "40", "--threads", "1", "--passes", "forward,backward,step"});
  for (const char* key : {"forward_ms", "forward_backward_ms", "step_ms"})
    CHECK(all.at(key).get<double>() > 0);
  for (const json& pass : all.at("passes")) {
    CHECK(pass.at("all_ms").size() == 2);
    CHECK(pass.at("flops") > 0);
    CHECK(pass.at("least_ms") <= pass.at("median_ms"));
    CHECK(pass.at("median_ms") <= pass.at("most_ms"));
  }
  for (const char* key : {"bandwidth_gb_s", "arithmetic_gflop_s", "blas_gflop_s"})
    CHECK(all.at("limits").at(key).is_number());
  CHECK(all.at("limits").at("bandwidth_gb_s") > 0);
  CHECK(all.at("limits").at("arithmetic_gflop_s") > 0);
  CHECK(all.at("threads") == 1);
  // x, B, C, dt (no dt_bias) and A, D; y and the last state; a gradient for every input.
  const std::int64_t inputs = 2 * 40 * (3 * 8 + 2 * 16 + 3) + 2 * 3;
  const json& memory = all.at("memory");
  CHECK(memory.at("inputs_bytes") == 4 * inputs);
  CHECK(memory.at("outputs_bytes") == 4 * (2 * 40 * 3 * 8 + 2 * 3 * 8 * 16));
  CHECK(memory.at("gradients_bytes") == 4 * inputs);
  CHECK(memory.at("interface_bytes").get<std::int64_t>() ==
        memory.at("inputs_bytes").get<std::int64_t>() +
            memory.at("outputs_bytes").get<std::int64_t>() +
            memory.at("gradients_bytes").get<std::int64_t>());
}

TEST_CASE("bench of the scan with angles has them once for all heads") {
  const json all =
      bench({"--block", "mamba3_scan", "--heads", "3", "--headdim", "4", "--d-state", "8",
             "--seqlen", "20", "--dtype", "f64", "--passes", "backward", "--schedule", "chunk=8"});
  // q, k, v, adt, dt, trap, 2 angles; biases and D.
  CHECK(all.at("memory").at("inputs_bytes") ==
        8 * (20 * (2 * 8 + 3 * 4 + 3 * 3 + 2) + 2 * 3 * 8 + 3));
  CHECK(all.at("schedule") == "chunk=8");
  CHECK_FALSE(all.contains("forward_ms"));
}

}  // namespace
}  // namespace krait
