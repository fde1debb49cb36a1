#include "codegen/tile/layout.h"

#include <algorithm>
#include <bit>
#include <map>

#include "dsl/error.h"

namespace krait {

std::int64_t Layout::registers_per_thread() const {
  std::int64_t count = 1;
  for (const Loop& loop : registers) count *= loop.count;
  return count;
}

int Layout::neighbours() const {
  if (registers.empty()) return 1;
  const Loop& first = registers[0];
  const bool fits = first.stride == 1 && (first.count == 4 || first.count == 2) &&
                    extents[static_cast<std::size_t>(first.dim)] % first.count == 0;
  return fits ? static_cast<int>(first.count) : 1;
}

std::vector<std::int64_t> Layout::point(std::int64_t reg, int lane, int warp) const {
  std::vector<std::int64_t> at(extents.size(), 0);
  for (const Loop& loop : registers) {
    at[static_cast<std::size_t>(loop.dim)] += reg % loop.count * loop.stride;
    reg /= loop.count;
  }
  const auto add = [&](const std::vector<Bit>& bits, int number) {
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i].dim >= 0 && (number >> i & 1) != 0)
        at[static_cast<std::size_t>(bits[i].dim)] += bits[i].stride;
  };
  add(lanes, lane);
  add(warps, warp);
  return at;
}

std::int64_t Layout::span(int dim) const {
  std::int64_t last = 0;
  for (const Loop& loop : registers)
    if (loop.dim == dim) last += (loop.count - 1) * loop.stride;
  for (const auto* bits : {&lanes, &warps})
    for (const Bit& bit : *bits)
      if (bit.dim == dim) last += bit.stride;
  return last + 1;
}

namespace {

std::uint32_t replicas(const std::vector<Layout::Bit>& bits) {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i].dim < 0) mask |= 1u << i;
  return mask;
}

bool contains(const std::vector<int>& list, int wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

std::uint32_t Layout::replica_lanes() const { return replicas(lanes); }
std::uint32_t Layout::replica_warps() const { return replicas(warps); }

bool Layout::covers_once() const {
  std::int64_t points = 1;
  for (std::int64_t extent : extents) points *= extent;
  std::vector<char> seen(static_cast<std::size_t>(points), 0);
  std::int64_t found = 0;
  const int lane_count = 1 << lanes.size(), warp_count = 1 << warps.size();
  for (int warp = 0; warp < warp_count; ++warp)
    for (int lane = 0; lane < lane_count; ++lane) {
      if ((static_cast<std::uint32_t>(lane) & replica_lanes()) != 0 ||
          (static_cast<std::uint32_t>(warp) & replica_warps()) != 0)
        continue;
      for (std::int64_t reg = 0; reg < registers_per_thread(); ++reg) {
        std::int64_t number = 0;
        bool inside = true;
        const std::vector<std::int64_t> at = point(reg, lane, warp);
        for (std::size_t d = 0; d < extents.size(); ++d) {
          inside = inside && at[d] < extents[d];
          number = number * extents[d] + at[d];
        }
        if (!inside) continue;
        if (seen[static_cast<std::size_t>(number)]++ != 0) return false;
        ++found;
      }
    }
  return found == points;
}

std::string to_text(const Layout& layout, const std::vector<std::string>& names) {
  std::string out;
  const auto name = [&](int dim) { return names.at(static_cast<std::size_t>(dim)); };
  out += "registers";
  for (const Layout::Loop& loop : layout.registers)
    out += text(" ", name(loop.dim), ":", loop.count, "*", loop.stride);
  const auto bits = [&](const char* what, const std::vector<Layout::Bit>& list) {
    out += text("; ", what);
    for (const Layout::Bit& bit : list)
      out += bit.dim < 0 ? " -" : text(" ", name(bit.dim), "+", bit.stride);
  };
  bits("lanes", layout.lanes);
  bits("warps", layout.warps);
  return out;
}

PowerSplit split_extent(std::int64_t extent) {
  KRAIT_ASSERT(extent >= 1, "a tile of extent ", extent);
  if (extent % 3 == 0 && std::has_single_bit(static_cast<std::uint64_t>(extent / 3)) &&
      extent / 3 >= 8)
    return {3, extent / 3};
  return {1, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)))};
}

Layout deal(const std::vector<std::int64_t>& extents, const std::vector<int>& order,
            std::int64_t vector, int warps, const std::vector<Layout::Loop>& first,
            const std::vector<int>& within_warp) {
  KRAIT_ASSERT(std::has_single_bit(static_cast<unsigned>(warps)), warps, " warps");
  Layout layout;
  layout.extents = extents;
  struct Rest {
    int dim;
    std::int64_t stride, left, odd;  // positions that are not dealt out yet, a power of two
  };
  std::vector<Rest> rest;
  for (int dim : order) {
    const PowerSplit split = split_extent(extents.at(static_cast<std::size_t>(dim)));
    rest.push_back({dim, 1, split.power, split.odd});
  }
  const auto keep = [&](Rest& from, std::int64_t count) {
    count = std::min(count, from.left);
    if (count <= 1) return;
    layout.registers.push_back({from.dim, from.stride, count});
    from.stride *= count;
    from.left /= count;
  };
  if (!rest.empty()) keep(rest[0], vector);
  // What a thread keeps beside a vector lies as far apart as can be: neighbours are for the lanes.
  std::vector<std::int64_t> kept(extents.size(), 1);
  for (const Layout::Loop& loop : first)
    for (Rest& from : rest)
      if (from.dim == loop.dim) {
        const std::int64_t count = std::min(loop.count, from.left);
        from.left /= count;
        kept[static_cast<std::size_t>(loop.dim)] *= count;
      }
  const auto hand_out = [&](std::vector<Layout::Bit>& bits, int wanted, bool to_warps) {
    for (Rest& from : rest)
      while (!(to_warps && contains(within_warp, from.dim)) &&
             static_cast<int>(bits.size()) < wanted && from.left > 1) {
        bits.push_back({from.dim, from.stride});
        from.stride *= 2;
        from.left /= 2;
      }
    bits.resize(static_cast<std::size_t>(wanted));
  };
  hand_out(layout.lanes, 5, false);
  hand_out(layout.warps, std::countr_zero(static_cast<unsigned>(warps)), true);
  for (Rest& from : rest) {
    const std::int64_t count = from.left * kept[static_cast<std::size_t>(from.dim)] * from.odd;
    if (count > 1) layout.registers.push_back({from.dim, from.stride, count});
  }
  return layout;
}

}  // namespace krait
