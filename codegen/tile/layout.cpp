#include "codegen/tile/layout.h"

#include <algorithm>
#include <array>
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
  if (registers.empty() || side_by_side(registers[0].dim) != 0) return 1;
  return static_cast<int>(registers[0].count);
}

int Layout::side_by_side(int dim) const {
  for (std::size_t i = 0; i < registers.size(); ++i) {
    const Loop& loop = registers[i];
    if (loop.dim == dim && loop.stride == 1 && (loop.count == 4 || loop.count == 2) &&
        extents[static_cast<std::size_t>(dim)] % loop.count == 0)
      return static_cast<int>(i);
  }
  return -1;
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

/// How many positions from 0 on are stood at along the dimension, each by one, where each step is
/// as long as all shorter ones reach together; 0 where it is otherwise.
std::int64_t reached_in_a_row(const Layout& layout, int dim) {
  std::array<std::pair<std::int64_t, std::int64_t>, 32> steps;  // stride, count
  std::size_t size = 0;
  const auto add = [&](std::int64_t stride, std::int64_t count) {
    if (size < steps.size()) steps[size] = {stride, count};
    ++size;
  };
  for (const Layout::Loop& loop : layout.registers)
    if (loop.dim == dim) add(loop.stride, loop.count);
  for (const auto* bits : {&layout.lanes, &layout.warps})
    for (const Layout::Bit& bit : *bits)
      if (bit.dim == dim) add(bit.stride, 2);
  if (size > steps.size()) return 0;
  std::sort(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(size));
  std::int64_t reached = 1;
  for (std::size_t i = 0; i < size; ++i) {
    if (steps[i].first != reached) return 0;
    reached *= steps[i].second;
  }
  return reached;
}

bool contains(const std::vector<int>& list, int wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

std::uint32_t Layout::replica_lanes() const { return replicas(lanes); }
std::uint32_t Layout::replica_warps() const { return replicas(warps); }

bool Layout::covers_once() const {
  // Bits and loops move along one dimension each, so that the points that the threads stand at are
  // all combinations of what they reach along each dimension.
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (const std::int64_t count = reached_in_a_row(*this, dim); count > 0) {
      if (count < extents[d]) return false;
      continue;
    }
    std::vector<std::int64_t> reached{0};
    const auto extend = [&](std::int64_t stride, std::int64_t count) {
      const std::size_t before = reached.size();
      for (std::int64_t i = 1; i < count; ++i)
        for (std::size_t k = 0; k < before; ++k) reached.push_back(reached[k] + i * stride);
    };
    for (const Loop& loop : registers)
      if (loop.dim == dim) extend(loop.stride, loop.count);
    for (const auto* bits : {&lanes, &warps})
      for (const Bit& bit : *bits)
        if (bit.dim == dim) extend(bit.stride, 2);
    std::vector<char> seen(static_cast<std::size_t>(extents[d]), 0);
    std::int64_t found = 0;
    for (const std::int64_t at : reached) {
      if (at >= extents[d]) continue;
      if (seen[static_cast<std::size_t>(at)]++ != 0) return false;
      ++found;
    }
    if (found != extents[d]) return false;
  }
  return true;
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
