#include "schedules/target.h"

#include <catch2/catch.hpp>

namespace krait {
namespace {

TEST_CASE("the machine's target is plausible, and the same each time it is asked") {
  const Target target = machine_target(256);
  CHECK(target == machine_target(256));
  CHECK(target.threads >= 1);
  CHECK(target.l1_bytes >= 1024);
  CHECK(target.l2_bytes >= target.l1_bytes);
  CHECK(target.memory_bytes > target.l2_bytes);
  CHECK(target.scratch_limit > 0);
  CHECK(target.scratch_limit * target.threads <= target.memory_bytes / 4);
}

TEST_CASE("lanes follow the width of vectors and of elements") {
  Target target;
  target.vector_bits = 512;
  CHECK(target.lanes(DType::f32) == 16);
  CHECK(target.lanes(DType::f64) == 8);
  CHECK(target.lanes(DType::bf16) == 32);
  CHECK(machine_target(128).lanes(DType::f32) == 4);
}

}  // namespace
}  // namespace krait
