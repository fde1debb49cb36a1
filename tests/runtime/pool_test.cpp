#include "runtime/host/pool.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <set>
#include <thread>

#include "dsl/error.h"
#include "tests/runtime/allocations.h"

using namespace krait;

TEST_CASE("a pool runs every item once") {
  for (const int threads : {1, 2, 5}) {
    Pool pool(threads);
    CHECK(pool.threads() == threads);
    for (const std::int64_t count : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count) + 1);
      pool.parallel_for(count, 0, [&](std::int64_t begin, std::int64_t end, void* scratch) {
        if (scratch || begin >= end) ++seen.back();
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      CHECK(seen.back() == 0);
      bool once = true;
      for (std::int64_t i = 0; i < count; ++i) once = once && seen[i] == 1;
      CHECK(once);
    }
  }
}

TEST_CASE("scratch is aligned and belongs to one call at a time") {
  Pool pool(4);
  std::atomic<int> faults = 0;
  const auto use = [&](std::int64_t begin, std::int64_t, void* scratch) {
    if (reinterpret_cast<std::uintptr_t>(scratch) % 64 != 0) ++faults;
    auto* mine = static_cast<volatile std::int64_t*>(scratch);
    for (int i = 0; i < 12; ++i) mine[i] = begin;
    std::this_thread::yield();
    for (int i = 0; i < 12; ++i) faults += mine[i] != begin;
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) pool.parallel_for(i == 0 ? 1 : 200, 96, use);
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(faults == 0);
}

TEST_CASE("scratch that was reserved is not allocated again") {
  Pool pool(3);
  pool.reserve_scratch(1000);
  const std::int64_t before = aligned_allocations();
  CHECK(before >= 3);
  for (const std::size_t bytes : {1000, 10}) {
    pool.parallel_for(300, bytes, [](std::int64_t, std::int64_t, void*) {});
  }
  CHECK(aligned_allocations() == before);
  std::atomic<int> short_blocks = 0;
  pool.parallel_for(300, 100000, [&](std::int64_t, std::int64_t, void* scratch) {
    static_cast<volatile char*>(scratch)[99999] = 1;
    if (aligned_allocations() == before) ++short_blocks;
  });
  CHECK(short_blocks == 0);
}

TEST_CASE("calls within calls, and an exception of the body") {
  Pool pool(2);
  std::atomic<int> sum = 0;
  pool.parallel_for(10, 64, [&](std::int64_t begin, std::int64_t end, void*) {
    for (std::int64_t i = begin; i < end; ++i) {
      pool.parallel_for(
          10, 64, [&](std::int64_t b, std::int64_t e, void*) { sum += static_cast<int>(e - b); });
    }
  });
  CHECK(sum == 100);
  const auto throwing = [](std::int64_t, std::int64_t, void*) {
    throw EnvironmentError("from the body");
  };
  CHECK_THROWS_WITH(pool.parallel_for(100, 64, throwing), "from the body");
  CHECK_THROWS_WITH(pool.parallel_for(1, 64, throwing), "from the body");
}

TEST_CASE("the number of a pool's threads") {
  CHECK(Pool().threads() >= 1);
  CHECK_THROWS_AS(Pool(-1), UsageError);
}
