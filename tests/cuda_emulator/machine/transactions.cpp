#include "tests/cuda_emulator/machine/transactions.h"

#include <algorithm>

namespace emulator {
namespace {

// Wavefronts of the lanes that are served together: the most different words in one bank.
unsigned wavefronts_of(const uint64_t* address, Mask lanes, unsigned words) {
  uint64_t first[32];
  Mask used = 0;
  bool conflict = false;
  in_order(lanes, [&](int lane) {
    for (unsigned i = 0; i < words; ++i) {
      const uint64_t word = (address[lane] >> 2) + i;
      const unsigned bank = word & 31;
      if (!(used >> bank & 1)) {
        used |= Mask{1} << bank;
        first[bank] = word;
      } else {
        conflict = conflict || first[bank] != word;
      }
    }
  });
  if (!conflict) return 1;
  uint64_t all[kLanes * 4];
  unsigned count = 0;
  in_order(lanes, [&](int lane) {
    for (unsigned i = 0; i < words; ++i) all[count++] = (address[lane] >> 2) + i;
  });
  std::sort(all, all + count);
  unsigned of_bank[32] = {};
  for (uint64_t *word = all, *end = std::unique(all, all + count); word != end; ++word)
    ++of_bank[*word & 31];
  return *std::max_element(of_bank, of_bank + 32);
}

// Lanes that are served together: all, a half or a quarter of a warp.
template <class F>
void each_pass(Mask lanes, unsigned bytes, F&& f) {
  if (bytes <= 4) {
    if (lanes) f(lanes);
    return;
  }
  const unsigned count = bytes == 8 ? 16 : 8;
  for (unsigned first = 0; first < kLanes; first += count) {
    const Mask pass = lanes & (((Mask{1} << count) - 1) << first);
    if (pass) f(pass);
  }
}

// One place for all, or one behind the other.
bool without_conflicts(const uint64_t* address, unsigned bytes) {
  uint64_t apart = 0, behind = 0;
  const uint64_t first = address[0];
  if (first & (bytes - 1)) return false;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    apart |= address[lane] ^ first;
    behind |= address[lane] ^ (first + lane * bytes);
  }
  return apart == 0 || behind == 0;
}

}  // namespace

unsigned shared_wavefronts(const uint64_t* address, Mask lanes, unsigned bytes) {
  if (lanes == kAll && without_conflicts(address, bytes)) return bytes <= 4 ? 1 : bytes / 4;
  unsigned wavefronts = 0;
  each_pass(lanes, bytes, [&](Mask pass) {
    wavefronts += wavefronts_of(address, pass, std::max(bytes / 4, 1u));
  });
  return wavefronts;
}

void count_shared(Block& block, const Access& access, Direction direction) {
  if (!access.counted || !access.lanes) return;
  Counters& counters = block.counters;
  const unsigned bytes = std::min(access.bytes, 16u);
  const unsigned wavefronts = shared_wavefronts(access.address, access.lanes, bytes);
  unsigned ideal = bytes <= 4 ? 1 : bytes / 4;
  if (access.lanes != kAll) {
    ideal = 0;
    each_pass(access.lanes, bytes, [&](Mask) { ++ideal; });
  }
  const auto lanes = static_cast<uint64_t>(std::popcount(access.lanes));
  const auto width = static_cast<size_t>(std::countr_zero(bytes));
  const auto add = [&](std::array<uint64_t, 5>& widths, uint64_t& taken, uint64_t& least) {
    widths[width] += lanes;
    taken += wavefronts;
    least += ideal;
  };
  switch (direction) {
    case Direction::load:
      add(counters.shared_load_lanes, counters.shared_load_wavefronts, counters.shared_load_ideal);
      break;
    case Direction::store:
      add(counters.shared_store_lanes, counters.shared_store_wavefronts,
          counters.shared_store_ideal);
      break;
    case Direction::async:
      add(counters.shared_async_lanes, counters.shared_async_wavefronts,
          counters.shared_async_ideal);
  }
  counters.worst_bank_conflict =
      std::max(counters.worst_bank_conflict, (wavefronts + ideal - 1) / ideal);
}

}  // namespace emulator
