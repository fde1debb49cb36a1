#include "codegen/tile/layout.h"

#include <catch2/catch.hpp>

#include "codegen/cuda/cuda_target.h"
#include "dsl/error.h"

namespace krait {
namespace {

TEST_CASE("extents are a power of two times 1 or 3, or padded") {
  const auto split = [](std::int64_t extent) {
    const PowerSplit made = split_extent(extent);
    return std::pair(made.odd, made.power);
  };
  CHECK(split(1) == std::pair<std::int64_t, std::int64_t>(1, 1));
  CHECK(split(64) == std::pair<std::int64_t, std::int64_t>(1, 64));
  CHECK(split(96) == std::pair<std::int64_t, std::int64_t>(3, 32));
  CHECK(split(24) == std::pair<std::int64_t, std::int64_t>(3, 8));
  CHECK(split(20) == std::pair<std::int64_t, std::int64_t>(1, 32));
  CHECK(split(12) == std::pair<std::int64_t, std::int64_t>(1, 16));
  CHECK(split(5) == std::pair<std::int64_t, std::int64_t>(1, 8));
}

TEST_CASE("every point of a tile belongs to one thread") {
  for (const int warps : {1, 2, 8})
    for (const std::int64_t rows : {1, 2, 5, 16, 24, 64})
      for (const std::int64_t columns : {1, 3, 4, 20, 32, 96}) {
        INFO(rows << " by " << columns << ", " << warps << " warps");
        const std::int64_t vector = columns % 4 == 0 ? 4 : 1;
        CHECK(deal({rows, columns}, {1, 0}, vector, warps).covers_once());
        CHECK(deal({rows, columns}, {0, 1}, 1, warps, {{1, 1, 4}, {0, 1, 2}}).covers_once());
        CHECK(deal({rows, columns}, {1, 0}, 1, warps, {}, {1}).covers_once());
      }
}

TEST_CASE("neighbours go to vectors, then lanes, then warps, then registers") {
  const Layout layout = deal({64, 128}, {1, 0}, 4, 4);
  // 4 columns a thread, 32 lanes across the row, rows to the 4 warps, 16 rows a thread.
  CHECK(layout.registers_per_thread() == 64);
  CHECK(layout.point(3, 0, 0) == std::vector<std::int64_t>{0, 3});
  CHECK(layout.point(0, 1, 0) == std::vector<std::int64_t>{0, 4});
  CHECK(layout.point(0, 31, 3) == std::vector<std::int64_t>{3, 124});
  CHECK(layout.point(4, 0, 0) == std::vector<std::int64_t>{4, 0});
  CHECK_FALSE(layout.has_replicas());
  const Layout few = deal({5}, {0}, 1, 2);
  CHECK(few.padded(0));
  CHECK(few.span(0) == 8);
  CHECK(few.replica_lanes() == 0b11000);
  CHECK(few.replica_warps() == 1);
}

TEST_CASE("dimensions that stay within a warp are not dealt to warps") {
  const Layout layout = deal({4, 256}, {1, 0}, 1, 8, {}, {1});
  for (const Layout::Bit& bit : layout.warps) CHECK(bit.dim != 1);
  CHECK(layout.covers_once());
}

TEST_CASE("parts that krait knows") {
  CHECK(cuda_target(75).shared_limit == 64 << 10);
  CHECK(cuda_target(90).architecture == "sm_90a");
  CHECK_THROWS_WITH(cuda_target(70), Catch::Contains("compute capability is 7.0; allowed: 7.5"));
}

}  // namespace
}  // namespace krait
