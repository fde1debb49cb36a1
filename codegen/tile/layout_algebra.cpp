// What can be asked of layouts and of addresses in shared memory: see layout.h.
#include <algorithm>
#include <array>

#include "codegen/tile/layout.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// One thing that moves along a dimension: a loop of registers, or a bit of the thread's number.
struct Mover {
  std::int64_t stride, count;
  enum Kind { reg, lane, warp } kind;
  std::int64_t weight;  // of one step in the number of the register, lane or warp
};

std::vector<Mover> movers(const Layout& layout, int dim) {
  std::vector<Mover> all;
  std::int64_t weight = 1;
  for (const Layout::Loop& loop : layout.registers) {
    if (loop.dim == dim) all.push_back({loop.stride, loop.count, Mover::reg, weight});
    weight *= loop.count;
  }
  const auto add = [&](const std::vector<Layout::Bit>& bits, Mover::Kind kind) {
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i].dim == dim) all.push_back({bits[i].stride, 2, kind, std::int64_t{1} << i});
  };
  add(layout.lanes, Mover::lane);
  add(layout.warps, Mover::warp);
  // The largest steps first, so that what is left for the others is small.
  std::stable_sort(all.begin(), all.end(),
                   [](const Mover& a, const Mover& b) { return a.stride > b.stride; });
  return all;
}

/// Adds to `holder` the steps that make up `rest`; false where none do.
bool reach(const std::vector<Mover>& all, std::size_t from, std::int64_t rest, Holder& holder) {
  if (from == all.size()) return rest == 0;
  const Mover& mover = all[from];
  for (std::int64_t steps = std::min(mover.count - 1, rest / mover.stride); steps >= 0; --steps) {
    Holder next = holder;
    const std::int64_t moved = steps * mover.weight;
    if (mover.kind == Mover::reg) next.reg += moved;
    if (mover.kind == Mover::lane) next.lane += static_cast<int>(moved);
    if (mover.kind == Mover::warp) next.warp += static_cast<int>(moved);
    if (!reach(all, from + 1, rest - steps * mover.stride, next)) continue;
    holder = next;
    return true;
  }
  return false;
}

}  // namespace

std::optional<Holder> Layout::holder(const std::vector<std::int64_t>& point) const {
  Holder holder;
  for (std::size_t d = 0; d < extents.size(); ++d)
    if (!reach(movers(*this, static_cast<int>(d)), 0, point.at(d), holder)) return std::nullopt;
  return holder;
}

bool Layout::surjective() const {
  // Dimensions are reached apart from one another.
  std::vector<std::int64_t> point(extents.size(), 0);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    for (point[d] = 0; point[d] < extents[d]; ++point[d])
      if (!holder(point)) return false;
    point[d] = 0;
  }
  return true;
}

Layout compose(const Layout& layout, std::vector<std::int64_t> extents,
               const std::vector<int>& dims) {
  Layout made = layout;
  made.extents = std::move(extents);
  for (Layout::Loop& loop : made.registers) loop.dim = dims.at(static_cast<std::size_t>(loop.dim));
  for (auto* bits : {&made.lanes, &made.warps})
    for (Layout::Bit& bit : *bits)
      if (bit.dim >= 0) bit.dim = dims.at(static_cast<std::size_t>(bit.dim));
  return made;
}

int wavefronts(const std::vector<std::int64_t>& addresses, int bytes) {
  constexpr std::int64_t banks = 32, word = 4;
  const std::size_t together = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  int sum = 0;
  std::array<std::array<std::int64_t, banks>, banks> words;  // different ones of each bank
  for (std::size_t first = 0; first < addresses.size(); first += together) {
    std::array<std::size_t, banks> of_bank{};
    for (std::size_t i = first; i < std::min(first + together, addresses.size()); ++i)
      for (std::int64_t byte = 0; addresses[i] >= 0 && byte < bytes; byte += word) {
        const std::int64_t number = (addresses[i] + byte) / word;
        const auto bank = static_cast<std::size_t>(number % banks);
        const auto begin = words[bank].begin(),
                   end = begin + static_cast<std::ptrdiff_t>(of_bank[bank]);
        if (std::find(begin, end, number) == end) words[bank][of_bank[bank]++] = number;
      }
    sum += static_cast<int>(*std::max_element(of_bank.begin(), of_bank.end()));
  }
  return sum;
}

Layout mma_fragment(MmaPart part) {
  // A and the accumulator: four lanes along the columns, eight along the rows. B: four along its
  // rows, eight along its columns.
  const int pairs = part == MmaPart::b ? 0 : 1, eights = 1 - pairs;
  Layout layout;
  layout.extents = part == MmaPart::a   ? std::vector<std::int64_t>{16, 16}
                   : part == MmaPart::b ? std::vector<std::int64_t>{16, 8}
                                        : std::vector<std::int64_t>{16, 8};
  layout.registers = {{pairs, 1, 2}};
  if (part != MmaPart::b) layout.registers.push_back({eights, 8, 2});
  if (part != MmaPart::accumulator) layout.registers.push_back({pairs, 8, 2});
  layout.lanes = {{pairs, 2}, {pairs, 4}, {eights, 1}, {eights, 2}, {eights, 4}};
  return layout;
}

Layout repeated(Layout layout, const std::vector<std::int64_t>& extents,
                const std::vector<int>& order) {
  for (const int dim : order) {
    const auto d = static_cast<std::size_t>(dim);
    KRAIT_ASSERT(extents.at(d) % layout.extents.at(d) == 0, "a tile of ", extents[d],
                 " from fragments of ", layout.extents[d]);
    if (const std::int64_t count = extents[d] / layout.extents[d]; count > 1)
      layout.registers.push_back({dim, layout.extents[d], count});
  }
  layout.extents = extents;
  return layout;
}

Ldmatrix can_ldmatrix(const Layout& layout, int contiguous) {
  // A lane holds two neighbours; four lanes make a row of eight, eight of these a matrix.
  if (layout.extents.size() != 2 || layout.registers.empty() || layout.lanes.size() != 5)
    return Ldmatrix::no;
  const Layout::Loop& first = layout.registers[0];
  const int along = first.dim, across = 1 - along;
  const std::vector<Layout::Bit> lanes = {
      {along, 2}, {along, 4}, {across, 1}, {across, 2}, {across, 4}};
  bool whole = first.stride == 1 && first.count == 2 && layout.lanes == lanes;
  for (std::size_t i = 1; i < layout.registers.size(); ++i)
    whole = whole && layout.registers[i].stride % 8 == 0;
  for (const Layout::Bit& bit : layout.warps) whole = whole && (bit.dim < 0 || bit.stride % 8 == 0);
  for (const std::int64_t extent : layout.extents) whole = whole && extent % 8 == 0;
  if (!whole) return Ldmatrix::no;
  return contiguous == along ? Ldmatrix::plain : Ldmatrix::transposed;
}

}  // namespace krait
