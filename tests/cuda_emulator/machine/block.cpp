#include "tests/cuda_emulator/machine/block.h"

#include <algorithm>
#include <cstring>

#include "tests/cuda_emulator/machine/races.h"
#include "tests/cuda_emulator/machine/state.h"

namespace emulator {
namespace {

constexpr unsigned kLongestSlice = 64;
constexpr unsigned kNaps = 64;
constexpr uint64_t kLongestNap = 20'000;  // instructions of others: a wait has a limit of time

uint64_t scrambled(uint64_t value) {  // splitmix64
  value += 0x9e37'79b9'7f4a'7c15;
  value = (value ^ value >> 30) * 0xbf58'476d'1ce4'e5b9;
  value = (value ^ value >> 27) * 0x94d0'49bb'1331'11eb;
  return value ^ value >> 31;
}

const Entry& entry_of(const Grid& grid) {
  const auto& entries = grid.program.entries;
  return *std::find_if(entries.begin(), entries.end(),
                       [&](const Entry& e) { return &e.info == grid.launch.entry; });
}

void number_threads(Warp& warp, const Dim& size) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t thread = warp.thread(lane);
    warp.state->thread[0][lane] = thread % size.x;
    warp.state->thread[1][lane] = thread / size.x % size.y;
    warp.state->thread[2][lane] = thread / size.x / size.y;
  }
}

void make_shared(Block& block, const Entry& entry) {
  const unsigned dynamic = block.grid.launch.dynamic_shared;
  const uint64_t bytes = dynamic ? entry.dynamic + dynamic : entry.shared_end;
  block.shared.resize(bytes);
  block.shared_defined.resize(bytes);
  block.shared_valid.resize(bytes);
  const auto valid = [&](uint64_t offset, uint64_t count) {
    std::fill_n(block.shared_valid.begin() + static_cast<std::ptrdiff_t>(offset), count, 1);
  };
  for (const Range& range : entry.shared) valid(range.offset, range.bytes);
  if (dynamic) valid(entry.dynamic, dynamic);
  block.shared_shadow = std::make_shared<SharedShadow>(bytes);
}

// Groups that doze look again where something changed since, or all of them.
void wake_sleepers(Block& block, bool all) {
  block.state->sleepers = false;
  block.state->looked_at = block.progress;
  if (all) block.state->woken_at = block.state->executed;
  for (Warp& warp : block.warps) {
    for (Group& group : warp.state->groups) {
      if (group.wait != Wait::doze) continue;
      if (!all && group.progress == block.progress) {
        block.state->sleepers = true;
        continue;
      }
      group.wait = Wait::none;
      wake(block, warp.index);
    }
  }
}

// Nobody can run: they look again at what they wait for, in vain after some time.
void nap(Block& block) {
  Block::State& state = *block.state;
  if (!state.sleepers) deadlock(block, "no thread of the block can go on");
  state.naps = state.napped_at == block.progress ? state.naps + 1 : 0;
  state.napped_at = block.progress;
  if (state.naps > kNaps) deadlock(block, "what the threads of the block wait for never comes");
  wake_sleepers(block, true);
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = scrambled(seed++ * 0x9e37'79b9'7f4a'7c15);
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9, shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

Block::Block(Grid& grid, Dim index, uint64_t linear)
    : grid(grid),
      index(index),
      linear(linear),
      warps((grid.launch.block.count() + kLanes - 1) / kLanes),
      threads(static_cast<unsigned>(grid.launch.block.count())),
      clocks(linear, threads),
      state(std::make_unique<State>(scrambled(grid.launch.seed) ^ scrambled(linear + 1))) {
  const Entry& entry = entry_of(grid);
  make_shared(*this, entry);
  counters.blocks = 1;
  state->listed.assign(warps.size(), 1);
  state->unfinished = static_cast<unsigned>(warps.size());
  for (unsigned i = 0; i < warps.size(); ++i) {
    Warp& warp = warps[i];
    warp.block = this;
    warp.index = i;
    const unsigned left = threads - i * kLanes;
    warp.existing = left >= kLanes ? kAll : (Mask{1} << left) - 1;
    number_threads(warp, grid.launch.block);
    start(warp, grid.program.codes[entry.function]);
    state->runnable.push_back(i);
  }
}

Block::~Block() = default;

void wake(Block& block, unsigned warp) {
  if (block.state->listed[warp]) return;
  block.state->listed[warp] = 1;
  block.state->runnable.push_back(warp);
}

bool advance(Block& block, uint64_t budget) {
  Block::State& state = *block.state;
  const uint64_t end = state.executed + budget;
  while (state.executed < end) {
    if (state.sleepers) {
      const bool all = state.executed - state.woken_at > kLongestNap;
      if (all || state.looked_at != block.progress) wake_sleepers(block, all);
    }
    if (state.runnable.empty()) {
      if (state.unfinished == 0) return false;
      nap(block);
      continue;
    }
    const uint32_t pick = state.random.below(static_cast<uint32_t>(state.runnable.size()));
    const uint32_t warp = state.runnable[pick];
    const Slice slice = advance(block.warps[warp], 1 + state.random.below(kLongestSlice));
    if (slice == Slice::over) continue;
    state.listed[warp] = 0;
    state.runnable.erase(state.runnable.begin() + pick);
    if (slice == Slice::done) --state.unfinished;
  }
  return true;
}

void deadlock(Block& block, const std::string& why) {
  constexpr int kShown = 6;
  const Warp* first = nullptr;
  const Group* at = nullptr;
  std::string waits;
  int shown = 0, more = 0;
  for (const Warp& warp : block.warps) {
    for (const Group& group : warp.state->groups) {
      if (!at || (at->wait == Wait::none && group.wait != Wait::none)) {
        first = &warp;
        at = &group;
      }
      if (++shown > kShown) {
        ++more;
      } else {
        waits +=
            (shown > 1 ? "; warp " : ": warp ") + std::to_string(warp.index) + " " + where(group);
      }
    }
  }
  if (more) waits += "; and " + std::to_string(more) + " more";
  const uint32_t position = at->wait == Wait::doze ? at->at - 1 : at->at;
  fail(*first, at->frame->code->ops[position], std::countr_zero(at->lanes), Fault::deadlock,
       why + waits);
}

}  // namespace emulator
