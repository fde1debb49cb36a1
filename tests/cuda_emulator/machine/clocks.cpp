#include "tests/cuda_emulator/machine/clocks.h"

#include <algorithm>

#include "tests/cuda_emulator/machine/allocations.h"
#include "tests/cuda_emulator/machine/knowledge.h"

namespace emulator {
namespace {

const auto by_block = [](const auto& entry, uint64_t block) { return entry.first < block; };

using Others = Knowledge::Others;

void merge_into(Others& to, uint64_t block, const std::shared_ptr<const Times>& times) {
  const auto it = std::lower_bound(to.begin(), to.end(), block, by_block);
  if (it == to.end() || it->first != block) {
    to.insert(it, {block, times});
  } else if (it->second != times && !it->second->covers(*times)) {
    auto both = std::make_shared<Times>(*it->second);
    both->merge(*times);
    it->second = std::move(both);
  }
}

// Adds all that `from` knows.
void merge_into(Knowledge& to, const Knowledge& from) {
  if (from.block == to.block) to.own.merge(from.own);
  const bool same_others = from.others == to.others;
  if (from.block != to.block || (from.others && !same_others)) {
    auto others = to.others ? std::make_shared<Others>(*to.others) : std::make_shared<Others>();
    if (from.block != to.block)
      merge_into(*others, from.block, std::make_shared<const Times>(from.own));
    if (from.others && !same_others) {
      for (const auto& [block, times] : *from.others) {
        if (block == to.block)
          to.own.merge(*times);
        else
          merge_into(*others, block, times);
      }
    }
    to.others = std::move(others);
  }
  // Mostly one object for both scopes.
  const bool one = to.fenced[0] == to.fenced[1] && from.fenced[0] == from.fenced[1];
  to.fenced[1] = merged(to.block, to.fenced[1], from.fenced[1]);
  to.fenced[0] = one ? to.fenced[1] : merged(to.block, to.fenced[0], from.fenced[0]);
}

// A copy to be changed, as seen by that block; of nothing where it is null.
std::shared_ptr<Knowledge> copy_for(uint64_t block, const Known& known) {
  auto copy = std::make_shared<Knowledge>();
  copy->block = block;
  if (known) merge_into(*copy, *known);
  return copy;
}

Known without_fences(const Known& known) {
  if (!known->fenced[0] && !known->fenced[1]) return known;
  auto bare = std::make_shared<Knowledge>(*known);
  bare->fenced[0] = bare->fenced[1] = nullptr;
  return bare;
}

}  // namespace

const Times::Detail* Times::detail(unsigned warp) const {
  for (const Detail& d : details)
    if (d.warp == warp) return &d;
  return nullptr;
}

Mask Times::unknown(unsigned warp, uint32_t clock, Mask lanes) const {
  if (clock <= least[warp]) return 0;
  const Detail* d = detail(warp);
  if (!d) return lanes;
  Mask unknown = 0;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (d->lane[lane] < clock) unknown |= Mask{1} << lane;
  }
  return unknown;
}

void Times::settle(size_t i) {
  Detail& d = details[i];
  const auto [low, high] = std::minmax_element(d.lane.begin(), d.lane.end());
  least[d.warp] = *low;
  if (*low == *high) details.erase(details.begin() + static_cast<ptrdiff_t>(i));
}

void Times::raise(unsigned warp, Mask lanes, uint32_t clock) {
  if (clock <= least[warp]) return;
  const auto it = std::lower_bound(details.begin(), details.end(), warp,
                                   [](const Detail& d, unsigned w) { return d.warp < w; });
  const bool found = it != details.end() && it->warp == warp;
  if (lanes == kAll && !found) {
    least[warp] = clock;
    return;
  }
  const size_t i = static_cast<size_t>(it - details.begin());
  if (!found) {
    Detail fresh{warp, {}};
    fresh.lane.fill(least[warp]);
    details.insert(it, fresh);
  }
  for (int lane = 0; lane < kLanes; ++lane)
    if (lanes >> lane & 1) details[i].lane[lane] = std::max(details[i].lane[lane], clock);
  settle(i);
}

void Times::merge(const Times& other) {
  if (details.empty() && other.details.empty()) {
    for (unsigned w = 0; w < kMostWarps; ++w) least[w] = std::max(least[w], other.least[w]);
    return;
  }
  for (unsigned w = 0; w < kMostWarps; ++w) raise(w, kAll, other.least[w]);
  for (const Detail& d : other.details)
    for (int lane = 0; lane < kLanes; ++lane) raise(d.warp, Mask{1} << lane, d.lane[lane]);
}

bool Times::covers(const Times& other) const {
  for (unsigned w = 0; w < kMostWarps; ++w)
    if (other.least[w] > least[w] && unknown(w, other.least[w], kAll)) return false;
  for (const Detail& d : other.details)
    for (int lane = 0; lane < kLanes; ++lane)
      if (unknown(d.warp, d.lane[lane], Mask{1} << lane)) return false;
  return true;
}

const Times* Knowledge::of(uint64_t wanted) const {
  if (wanted == block) return &own;
  if (!others) return nullptr;
  const auto it = std::lower_bound(others->begin(), others->end(), wanted, by_block);
  return it != others->end() && it->first == wanted ? it->second.get() : nullptr;
}

Mask Knowledge::unknown(uint64_t of_block, unsigned warp, uint32_t clock, Mask lanes) const {
  const Times* times = of(of_block);
  return times ? times->unknown(warp, clock, lanes) : lanes;
}

bool Knowledge::covers(const Knowledge& other) const {
  const Times* times = of(other.block);
  if (!times || !times->covers(other.own)) return false;
  if (other.others && other.others != others) {
    for (const auto& [b, theirs] : *other.others) {
      const Times* mine = of(b);
      if (!mine || (mine != theirs.get() && !mine->covers(*theirs))) return false;
    }
  }
  for (int s = 0; s < 2; ++s) {
    if (!other.fenced[s] || other.fenced[s] == fenced[s]) continue;
    if (!fenced[s] || !fenced[s]->covers(*other.fenced[s])) return false;
  }
  return true;
}

Known merged(uint64_t block, const Known& a, const Known& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  if (a->block == block && a->covers(*b)) return a;
  if (b->block == block && b->covers(*a)) return b;
  auto both = std::make_shared<Knowledge>();
  both->block = block;
  merge_into(*both, *a);
  merge_into(*both, *b);
  return both;
}

Clocks::Impl::Impl(uint64_t block, unsigned threads) : block(block) {
  auto nothing = std::make_shared<Knowledge>();
  nothing->block = block;
  for (unsigned first = 0; first < threads; first += kLanes) {
    OfWarp warp;
    const unsigned count = std::min<unsigned>(threads - first, kLanes);
    warp.existing = count == kLanes ? kAll : (Mask{1} << count) - 1;
    warp.groups.push_back({kAll, nothing});
    warps.push_back(std::move(warp));
  }
}

const Known& Clocks::Impl::known(unsigned warp, int lane) const {
  const auto& groups = warps[warp].groups;
  for (const Group& g : groups)
    if (g.lanes >> lane & 1) return g.known;
  return groups.front().known;
}

void Clocks::Impl::knowledge(unsigned warp, Mask lanes, const Knowledge* (&to)[kLanes]) const {
  const auto& groups = warps[warp].groups;
  if (groups.size() == 1) [[likely]] {
    std::fill_n(to, kLanes, groups.front().known.get());
    return;
  }
  for (const Group& g : groups)
    each_lane(g.lanes & lanes, [&](int lane) { to[lane] = g.known.get(); });
}

void Clocks::Impl::replace(unsigned warp, Mask lanes, const Known& known) {
  auto& groups = warps[warp].groups;
  // Lanes that no thread is of go with the first ones.
  if ((lanes & warps[warp].existing) == warps[warp].existing) lanes = kAll;
  for (Group& g : groups) {
    if (g.known == known) lanes |= g.lanes;
    g.lanes &= ~lanes;
  }
  std::erase_if(groups, [](const Group& g) { return g.lanes == 0; });
  groups.push_back({lanes, known});
}

void Clocks::Impl::acquire(unsigned warp, Mask lanes, const Known& acquired) {
  if (!acquired) return;
  const std::vector<Group> before = warps[warp].groups;
  for (const Group& g : before) {
    if (!(g.lanes & lanes)) continue;
    const Known now = merged(block, g.known, acquired);
    if (now != g.known) replace(warp, g.lanes & lanes, now);
  }
}

void Clocks::Impl::make_known(unsigned warp, Mask lanes, bool wide) {
  auto& seen = warps[warp].seen;
  if (seen.empty()) return;
  for (Seen& s : seen) {
    if (!(s.lanes & lanes) || (s.wide && !wide)) continue;
    acquire(warp, s.lanes & lanes, s.known);
    s.lanes &= ~lanes;
  }
  std::erase_if(seen, [](const Seen& s) { return s.lanes == 0; });
}

void Clocks::Impl::see(unsigned warp, Mask lanes, bool wide, const Known& known) {
  if (!known) return;
  auto& seen = warps[warp].seen;
  for (Seen& s : seen) {
    if (s.wide != wide) continue;
    if (s.known == known) {
      s.lanes |= lanes;
      return;
    }
    // Whoever polls sees more each time.
    if (s.lanes == lanes || seen.size() > 64) {
      s.known = merged(block, s.known, known);
      s.lanes |= lanes;
      return;
    }
  }
  seen.push_back({lanes, wide, known});
}

std::shared_ptr<Knowledge> Clocks::Impl::gather(
    const std::vector<std::pair<unsigned, Mask>>& of) const {
  std::vector<const Knowledge*> distinct;
  for (const auto& [w, lanes] : of) {
    for (const Group& g : warps[w].groups) {
      const Knowledge* k = g.known.get();
      if ((g.lanes & lanes) && std::find(distinct.rbegin(), distinct.rend(), k) == distinct.rend())
        distinct.push_back(k);
    }
  }
  auto all = std::make_shared<Knowledge>();
  all->block = block;
  if (!distinct.empty()) *all = *distinct.front();
  for (size_t i = 1; i < distinct.size(); ++i) merge_into(*all, *distinct[i]);
  for (const auto& [w, lanes] : of) {
    const Mask whole = (lanes & warps[w].existing) == warps[w].existing ? kAll : lanes;
    all->own.raise(w, whole, warps[w].clock);
  }
  if (!any_fence) return all;
  for (int s = 0; s < 2; ++s) {
    std::shared_ptr<Knowledge> fenced;
    for (const auto& [w, lanes] : of) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const uint32_t when = warps[w].fence[s][lane];
        if (!(lanes >> lane & 1) || when == 0) continue;
        if (all->fenced[s] && !fenced && !all->fenced[s]->unknown(block, w, when, Mask{1} << lane))
          continue;
        if (!fenced) fenced = copy_for(block, all->fenced[s]);
        fenced->own.raise(w, Mask{1} << lane, when);
      }
    }
    if (fenced) all->fenced[s] = fenced;
  }
  return all;
}

void Clocks::Impl::fence(unsigned warp, Mask lanes, bool acquires, bool releases, bool wide) {
  OfWarp& w = warps[warp];
  if (acquires) make_known(warp, lanes, wide);
  if (!releases) return;
  any_fence = true;
  const std::vector<Group> before = w.groups;
  for (const Group& g : before) {
    if (!(g.lanes & lanes)) continue;
    const Known bare = without_fences(g.known);
    auto now = std::make_shared<Knowledge>(*g.known);
    now->fenced[0] = bare;
    if (wide) now->fenced[1] = bare;
    replace(warp, g.lanes & lanes, now);
  }
  for (int s = 0; s <= (wide ? 1 : 0); ++s)
    each_lane(lanes, [&](int lane) { w.fence[s][lane] = w.clock; });
  advance(warp);
}

Known Clocks::Impl::fenced(unsigned warp, int lane, bool wide) const {
  if (!any_fence) return nullptr;
  const Known& base = known(warp, lane)->fenced[wide];
  const uint32_t when = warps[warp].fence[wide][lane];
  if (when == 0 || (base && !base->unknown(block, warp, when, Mask{1} << lane))) return base;
  const auto released = copy_for(block, base);
  released->own.raise(warp, Mask{1} << lane, when);
  return released;
}

Clocks::Clocks(uint64_t block, unsigned threads) : impl(std::make_unique<Impl>(block, threads)) {
  ++living_blocks;
}
Clocks::~Clocks() { --living_blocks; }

void Clocks::join(const std::vector<Mask>& lanes_of_warp) {
  std::vector<std::pair<unsigned, Mask>> all;
  for (unsigned w = 0; w < lanes_of_warp.size(); ++w) {
    if (!lanes_of_warp[w]) continue;
    impl->make_known(w, lanes_of_warp[w], true);
    all.emplace_back(w, lanes_of_warp[w]);
  }
  const Known known = impl->gather(all);
  for (const auto& [w, lanes] : all) {
    impl->replace(w, lanes, known);
    impl->advance(w);
  }
}

void Clocks::join_warp(unsigned warp, Mask lanes) {
  impl->replace(warp, lanes, impl->gather({{warp, lanes}}));
  impl->advance(warp);
}

void Clocks::meet(unsigned warp) {
  impl->warps[warp].met = impl->warps[warp].clock;
  impl->advance(warp);
}

Known Clocks::release(unsigned warp, Mask lanes) {
  const Known known = impl->gather({{warp, lanes}});
  impl->advance(warp);
  return known;
}

Known Clocks::merge(const Known& a, const Known& b) { return merged(a ? a->block : 0, a, b); }

void Clocks::acquire(unsigned warp, Mask lanes, const Known& known) {
  impl->acquire(warp, lanes, known);
}

}  // namespace emulator
