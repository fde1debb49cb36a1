// The algebra of layouts against counts by their definitions.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "codegen/tile/layout.h"

namespace krait {
namespace {

using Point = std::vector<std::int64_t>;

/// Calls f(register, lane, warp) for everything that holds a point.
template <typename Function>
void for_all_holders(const Layout& layout, const Function& f) {
  for (int warp = 0; warp < 1 << layout.warps.size(); ++warp)
    for (int lane = 0; lane < 32; ++lane)
      for (std::int64_t reg = 0; reg < layout.registers_per_thread(); ++reg) f(reg, lane, warp);
}

std::vector<Layout> samples() {
  std::vector<Layout> all = {mma_fragment(MmaPart::a), mma_fragment(MmaPart::b),
                             mma_fragment(MmaPart::accumulator)};
  for (const std::int64_t rows : {1, 5, 16, 24})
    for (const std::int64_t columns : {1, 3, 20, 32, 96})
      for (const int warps : {1, 4})
        all.push_back(deal({rows, columns}, {1, 0}, columns % 4 == 0 ? 4 : 1, warps));
  for (Layout& layout : all) layout.lanes.resize(5);
  return all;
}

TEST_CASE("who holds a point is found for every point") {
  for (const Layout& layout : samples()) {
    std::set<Point> reached;
    for_all_holders(layout, [&](std::int64_t reg, int lane, int warp) {
      reached.insert(layout.point(reg, lane, warp));
    });
    for (std::int64_t r = 0; r < layout.extents[0] + 2; ++r)
      for (std::int64_t c = 0; c < layout.extents[1] + 2; ++c) {
        const std::optional<Holder> holder = layout.holder({r, c});
        REQUIRE(holder.has_value() == (reached.count({r, c}) != 0));
        if (holder) {
          REQUIRE(layout.point(holder->reg, holder->lane, holder->warp) == Point{r, c});
          CHECK((static_cast<std::uint32_t>(holder->lane) & layout.replica_lanes()) == 0);
          CHECK((static_cast<std::uint32_t>(holder->warp) & layout.replica_warps()) == 0);
        }
      }
    CHECK(layout.surjective());
    Layout larger = layout;
    larger.extents[0] += layout.span(0);
    CHECK_FALSE(larger.surjective());
  }
}

TEST_CASE("dimensions of a layout change places and come back") {
  for (const Layout& layout : samples()) {
    const Layout turned = compose(layout, {layout.extents[1], 1, layout.extents[0]}, {2, 0});
    for_all_holders(layout, [&](std::int64_t reg, int lane, int warp) {
      const Point from = layout.point(reg, lane, warp);
      REQUIRE(turned.point(reg, lane, warp) == Point{from[1], 0, from[0]});
    });
    CHECK(compose(turned, layout.extents, {1, 1, 0}) == layout);
  }
}

TEST_CASE("fragments of m16n8k16 are those of the PTX manual") {
  for (int lane = 0; lane < 32; ++lane) {
    const std::int64_t group = lane / 4, four = lane % 4;
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
      const std::int64_t k = four * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      REQUIRE(mma_fragment(MmaPart::a).point(i, lane, 0) == Point{row, k});
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      REQUIRE(mma_fragment(MmaPart::b).point(i, lane, 0) ==
              Point{four * 2 + (i & 1) + (i >= 2 ? 8 : 0), group});
      REQUIRE(mma_fragment(MmaPart::accumulator).point(i, lane, 0) ==
              Point{group + (i >= 2 ? 8 : 0), four * 2 + (i & 1)});
    }
  }
  for (const MmaPart part : {MmaPart::a, MmaPart::b, MmaPart::accumulator})
    CHECK(mma_fragment(part).covers_once());
  // What lets a product's result be the next one's operand as it stands.
  CHECK(repeated(mma_fragment(MmaPart::accumulator), {16, 16}, {1, 0}) == mma_fragment(MmaPart::a));
  CHECK(repeated(mma_fragment(MmaPart::b), {64, 32}, {0, 1}).covers_once());
}

TEST_CASE("ldmatrix loads what it is said to") {
  // By its definition: lane l of a matrix gets elements 2 (l % 4) and one more of row l / 4; with
  // .trans, rows and columns change places.
  const auto gives = [](const Layout& layout, int contiguous, bool transposed) {
    bool all = true;
    for (std::int64_t reg = 0; reg < layout.registers_per_thread(); reg += 2) {
      const Point start = layout.point(reg, 0, 0);
      for (int lane = 0; lane < 32; ++lane)
        for (int e = 0; e < 2; ++e) {
          std::int64_t row = lane / 4, column = lane % 4 * 2 + e;
          if (transposed) std::swap(row, column);
          Point wanted = start;
          wanted[static_cast<std::size_t>(contiguous)] += column;
          wanted[static_cast<std::size_t>(1 - contiguous)] += row;
          all = all && layout.point(reg + e, lane, 0) == wanted;
        }
      for (int dim = 0; dim < 2; ++dim) all = all && start[static_cast<std::size_t>(dim)] % 8 == 0;
    }
    return all;
  };
  std::vector<Layout> all = samples();
  all.push_back(repeated(mma_fragment(MmaPart::a), {64, 32}, {1, 0}));
  all.push_back(compose(mma_fragment(MmaPart::b), {8, 16}, {1, 0}));
  int plain = 0, transposed = 0;
  for (const Layout& layout : all) {
    if (layout.registers_per_thread() % 2 != 0 || layout.extents[0] % 8 != 0 ||
        layout.extents[1] % 8 != 0)
      continue;
    for (const int contiguous : {0, 1}) {
      const Ldmatrix can = can_ldmatrix(layout, contiguous);
      CHECK((can == Ldmatrix::plain) == gives(layout, contiguous, false));
      CHECK((can == Ldmatrix::transposed) == gives(layout, contiguous, true));
      plain += can == Ldmatrix::plain;
      transposed += can == Ldmatrix::transposed;
    }
  }
  CHECK(plain == 5);
  CHECK(transposed == 5);
}

/// Bank by bank and pass by pass.
int counted(const std::vector<std::int64_t>& addresses, int bytes) {
  const int together = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
  int sum = 0;
  for (int first = 0; first < 32; first += together) {
    int most = 0;
    for (int bank = 0; bank < 32; ++bank) {
      std::set<std::int64_t> words;
      for (int lane = first; lane < first + together; ++lane)
        for (int b = 0; addresses[static_cast<std::size_t>(lane)] >= 0 && b < bytes; ++b) {
          const std::int64_t word = (addresses[static_cast<std::size_t>(lane)] + b) / 4;
          if (word % 32 == bank) words.insert(word);
        }
      most = std::max(most, static_cast<int>(words.size()));
    }
    sum += most;
  }
  return sum;
}

TEST_CASE("wavefronts of an access to shared memory") {
  const auto rows = [](std::int64_t stride, int bytes) {
    std::vector<std::int64_t> all;
    for (std::int64_t lane = 0; lane < 32; ++lane) all.push_back(lane * stride);
    return wavefronts(all, bytes);
  };
  CHECK(rows(4, 4) == 1);
  CHECK(rows(8, 8) == 2);
  CHECK(rows(16, 16) == 4);
  CHECK(rows(0, 4) == 1);
  CHECK(rows(128, 4) == 32);
  CHECK(rows(512, 16) == 32);
  CHECK(rows(512 + 16, 16) == 4);  // rows moved apart by 16 bytes
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int bytes = 4 << random() % 3;
    std::vector<std::int64_t> all;
    for (int lane = 0; lane < 32; ++lane)
      all.push_back(random() % 8 == 0 ? -1 : static_cast<std::int64_t>(random() % 64) * bytes);
    REQUIRE(wavefronts(all, bytes) == counted(all, bytes));
  }
}

TEST_CASE("a swizzle moves pieces of rows about and leaves no conflict") {
  // Rows of 128 bytes in pieces of 16: the row's number goes into the piece's.
  const Swizzle swizzle{3, 7, 4};
  std::set<std::int64_t> places;
  for (std::int64_t offset = 0; offset < 2048; ++offset) {
    CHECK(swizzle(swizzle(offset)) == offset);
    CHECK(swizzle(offset) / 128 == offset / 128);
    places.insert(swizzle(offset));
  }
  CHECK(places.size() == 2048);
  for (std::int64_t piece = 0; piece < 8; ++piece) {
    std::vector<std::int64_t> column, row;
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      column.push_back(
          swizzle(lane % 8 * 128 + piece * 16));  // a column of pieces, as ldmatrix reads
      row.push_back(swizzle(piece * 128 + lane * 4));
    }
    CHECK(wavefronts(column, 16) == 4);
    CHECK(wavefronts(row, 4) == 1);
  }
}

}  // namespace
}  // namespace krait
