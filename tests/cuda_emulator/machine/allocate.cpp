#include "tests/cuda_emulator/machine/allocate.h"

#include <algorithm>
#include <bit>
#include <queue>

namespace emulator {
namespace {

class Bits {
 public:
  explicit Bits(size_t count) : words_((count + 63) / 64) {}
  bool test(uint32_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(uint32_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  // this |= a & ~b; true where that changed something.
  bool add_without(const Bits& a, const Bits& b) {
    bool changed = false;
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t fresh = a.words_[i] & ~b.words_[i] & ~words_[i];
      words_[i] |= fresh;
      changed |= fresh != 0;
    }
    return changed;
  }
  template <class F>
  void each(F&& f) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t rest = words_[i]; rest; rest &= rest - 1) {
        f(static_cast<uint32_t>(i * 64 + std::countr_zero(rest)));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

struct Interval {
  uint32_t reg = 0;
  // Instructions in the order of blocks. One that ends where another starts is in its way.
  uint32_t start = UINT32_MAX, end = 0;
  bool used = false;

  void cover(uint32_t place) {
    start = std::min(start, place);
    end = std::max(end, place);
    used = true;
  }
};

struct Liveness {
  std::vector<Bits> in, out;
};

Liveness live(const FlowGraph& graph, const std::vector<Accesses>& accesses, size_t registers) {
  const size_t count = graph.blocks.size();
  Liveness live{std::vector<Bits>(count, Bits(registers)),
                std::vector<Bits>(count, Bits(registers))};
  std::vector<Bits> written(count, Bits(registers));
  const Bits nothing(registers);
  for (size_t b = 0; b < count; ++b) {
    for (uint32_t i = graph.blocks[b].first; i < graph.blocks[b].last; ++i) {
      for (uint32_t reg : accesses[i].reads) {
        if (!written[b].test(reg)) live.in[b].set(reg);
      }
      if (accesses[i].guarded) continue;
      for (uint32_t reg : accesses[i].writes) written[b].set(reg);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto b = graph.order.rbegin(); b != graph.order.rend(); ++b) {
      for (uint32_t successor : graph.blocks[*b].successors) {
        live.out[*b].add_without(live.in[successor], nothing);
      }
      changed |= live.in[*b].add_without(live.out[*b], written[*b]);
    }
  }
  return live;
}

std::vector<Interval> intervals(const FlowGraph& graph, const std::vector<Accesses>& accesses,
                                const Liveness& live, size_t registers) {
  std::vector<Interval> result(registers);
  for (uint32_t reg = 0; reg < registers; ++reg) result[reg].reg = reg;
  uint32_t place = 0;
  for (uint32_t b : graph.order) {
    const FlowGraph::Block& block = graph.blocks[b];
    live.in[b].each([&](uint32_t reg) { result[reg].cover(place); });
    for (uint32_t i = block.first; i < block.last; ++i, ++place) {
      for (uint32_t reg : accesses[i].reads) result[reg].cover(place);
      for (uint32_t reg : accesses[i].writes) result[reg].cover(place);
    }
    live.out[b].each([&](uint32_t reg) { result[reg].cover(place); });
  }
  return result;
}

// Registers of one size and their slots. Lanes of a register lie at other bytes than those of a
// wider one, and lanes of a warp may be at different places of the program; so a unit only ever
// holds registers of one size, and what a lane has there is its own.
struct Pool {
  uint32_t width = 0;  // in units; 0: predicates
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free;
  uint32_t slots = 0, in_use = 0;

  uint32_t take() {
    ++in_use;
    if (free.empty()) return slots++;
    const uint32_t slot = free.top();
    free.pop();
    return slot;
  }
  void give(uint32_t slot) {
    --in_use;
    free.push(slot);
  }
};

class Pools {
 public:
  Pool& of(ptx::Type type) {
    if (type == ptx::Type::pred) return pools_[0];
    const unsigned bytes = ptx::bytes_of(type);
    return pools_[bytes <= 4 ? 1 : bytes == 8 ? 2 : 3];
  }
  uint32_t units_in_use() const {
    uint32_t units = 0;
    for (const Pool& pool : pools_) units += pool.in_use * pool.width;
    return units;
  }
  // First unit of a pool, wide registers first.
  uint32_t base(const Pool& pool) const {
    uint32_t units = 0;
    for (const Pool& other : pools_) {
      if (other.width > pool.width) units += other.slots * other.width;
    }
    return units;
  }
  uint32_t units() const { return base(pools_[0]); }
  uint32_t predicates() const { return pools_[0].slots; }

 private:
  Pool pools_[4] = {{0, {}, 0, 0}, {1, {}, 0, 0}, {2, {}, 0, 0}, {4, {}, 0, 0}};
};

}  // namespace

Allocation allocate(const FlowGraph& graph, const std::vector<Accesses>& accesses,
                    const std::vector<ptx::Type>& types) {
  const Liveness liveness = live(graph, accesses, types.size());
  std::vector<Interval> todo = intervals(graph, accesses, liveness, types.size());
  std::erase_if(todo, [](const Interval& i) { return !i.used; });
  std::stable_sort(todo.begin(), todo.end(),
                   [](const Interval& a, const Interval& b) { return a.start < b.start; });

  Allocation result;
  std::vector<uint32_t>& slot = result.unit;
  slot.assign(types.size(), 0);
  Pools pools;
  using End = std::pair<uint32_t, uint32_t>;  // place, register
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  for (const Interval& interval : todo) {
    for (; !ends.empty() && ends.top().first < interval.start; ends.pop()) {
      const uint32_t reg = ends.top().second;
      pools.of(types[reg]).give(slot[reg]);
    }
    slot[interval.reg] = pools.of(types[interval.reg]).take();
    ends.emplace(interval.end, interval.reg);
    result.pressure = std::max(result.pressure, pools.units_in_use());
  }
  for (const Interval& interval : todo) {
    const Pool& pool = pools.of(types[interval.reg]);
    if (pool.width) slot[interval.reg] = pools.base(pool) + slot[interval.reg] * pool.width;
  }
  liveness.in[0].each([&](uint32_t reg) { result.live_at_start.push_back(reg); });
  result.units = pools.units();
  result.predicates = pools.predicates();
  return result;
}

}  // namespace emulator
