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
  // Places: two an instruction, counted in the order of blocks from 2; reads and writes both take
  // the whole instruction. 0 is the start of the function.
  uint32_t start = UINT32_MAX, end = 0;
  bool used = false;

  void cover(uint32_t from, uint32_t to) {
    start = std::min(start, from);
    end = std::max(end, to);
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
  live.in[0].each([&](uint32_t reg) { result[reg].cover(0, 0); });
  uint32_t place = 2;
  for (uint32_t b : graph.order) {
    const FlowGraph::Block& block = graph.blocks[b];
    live.in[b].each([&](uint32_t reg) { result[reg].cover(place, place); });
    for (uint32_t i = block.first; i < block.last; ++i, place += 2) {
      for (uint32_t reg : accesses[i].reads) result[reg].cover(place, place + 1);
      for (uint32_t reg : accesses[i].writes) result[reg].cover(place, place + 1);
    }
    live.out[b].each([&](uint32_t reg) { result[reg].cover(place, place); });
  }
  return result;
}

uint32_t units_of(ptx::Type type) { return std::max(1u, ptx::bytes_of(type) / 4); }

// The lowest run of free units.
class Pool {
 public:
  uint32_t take(uint32_t count) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < free_.size() && i - first < count; ++i) {
      if (!free_[i]) first = i + 1;
    }
    if (free_.size() < first + count) free_.resize(first + count, 1);
    for (uint32_t i = first; i < first + count; ++i) free_[i] = 0;
    in_use_ += count;
    most_ = std::max(most_, in_use_);
    return first;
  }
  void give(uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) free_[i] = 1;
    in_use_ -= count;
  }
  uint32_t size() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t most() const { return most_; }

 private:
  std::vector<char> free_;
  uint32_t in_use_ = 0, most_ = 0;
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
  result.unit.assign(types.size(), 0);
  // Registers of different widths share no unit: lanes lie at different places in it, and those
  // that diverge may hold one register while others write another.
  Pool ones, twos, fours, predicates;
  using End = std::pair<uint32_t, uint32_t>;  // place, register
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  const auto pool = [&](uint32_t reg) -> Pool& {
    if (types[reg] == ptx::Type::pred) return predicates;
    const uint32_t count = units_of(types[reg]);
    return count == 1 ? ones : count == 2 ? twos : fours;
  };
  for (const Interval& interval : todo) {
    for (; !ends.empty() && ends.top().first < interval.start; ends.pop()) {
      const uint32_t reg = ends.top().second;
      pool(reg).give(result.unit[reg], units_of(types[reg]));
    }
    result.unit[interval.reg] = pool(interval.reg).take(units_of(types[interval.reg]));
    ends.emplace(interval.end, interval.reg);
  }
  liveness.in[0].each([&](uint32_t reg) { result.live_at_start.push_back(reg); });
  for (const Interval& interval : todo) {
    const Pool& its = pool(interval.reg);
    if (&its == &twos) result.unit[interval.reg] += ones.size();
    if (&its == &fours) result.unit[interval.reg] += ones.size() + twos.size();
  }
  result.units = ones.size() + twos.size() + fours.size();
  result.predicates = predicates.size();
  result.pressure = ones.most() + twos.most() + fours.most();
  return result;
}

}  // namespace emulator
