// Wrong use of bench.
#include <catch2/catch.hpp>

#include "tests/error/refusal.h"

namespace krait {
namespace {

void expect(const std::vector<std::string>& arguments, int status, const std::string& said) {
  expect_refusal("bench", arguments, status, said);
}

TEST_CASE("bench refuses flags that do not fit, before anything is timed") {
  expect({}, 2, "--block is not given; allowed: ssd");
  expect({"--block", "toaster"}, 2, "--block is toaster; allowed: ssd");
  expect({"--block", "ssd", "--device", "tpu"}, 2, "--device is tpu; allowed: host, cuda:N");
  expect({"--block", "ssd", "--dtype", "bf16"}, 2, "--dtype is bf16; allowed: f32, f64");
  expect({"--block", "ssd", "--threads", "-1"}, 2, "--threads is -1; allowed: 0");
  expect({"--block", "ssd", "--repeat", "0"}, 2, "--repeat is 0; allowed: 1 to");
  expect({"--block", "ssd", "--passes", "sideways"}, 2,
         "--passes is sideways; allowed: forward, backward, step");
  expect({"--block", "ssd", "--passes", ""}, 2, "--passes");
  expect({"--block", "ssd", "--passes", "forward,forward"}, 2, "--passes is forward,forward");
  expect({"--block", "ssd", "--schedule", "chunk=none"}, 2, "chunk is none");
  expect({"--block", "ssd", "--schedule", "plan=step"}, 2, "--schedule is plan=step");
  expect({"--block", "ssd", "--headdim", "0"}, 2, "headdim is 0");
  expect({"--block", "selective_scan", "--seqlen", "64"}, 2, "plan");
}

}  // namespace
}  // namespace krait
