// Blocks of a launch on the threads of the host.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <optional>
#include <thread>

#include "tests/cuda_emulator/machine/state.h"

namespace emulator {
namespace {

// Instructions of a block before others have their turn; before one in which nothing changed gives
// way, as it may wait for others; and for how long it goes on when it has its turn again.
constexpr uint64_t kTurn = 250'000, kQuiet = 32'768, kStep = 2'048;
// What blocks execute in vain before one more is begun, which they may wait for. Those in which
// something changes may wait too: their instructions count less.
constexpr uint64_t kBeforeNext = 100'000, kBusy = 40;
// Blocks that are under way at a time, where the launch is not cooperative.
constexpr uint64_t kResident = 64;
// What blocks before one that reported may still execute to report something themselves.
constexpr uint64_t kAfterReport = 4'000'000;

Dim position(uint64_t linear, const Dim& size) {
  return {static_cast<uint32_t>(linear % size.x), static_cast<uint32_t>(linear / size.x % size.y),
          static_cast<uint32_t>(linear / size.x / size.y)};
}

std::vector<std::byte> constants_now(const Program& program, const DeviceMemory& memory) {
  std::vector<std::byte> bytes(program.constant_bytes);
  if (!bytes.empty()) memory.read(bytes.data(), program.constant_address, bytes.size());
  return bytes;
}

class Blocks {
 public:
  Blocks(Grid& grid, Counters& counters)
      : grid_(grid), counters_(counters), count_(grid.launch.grid.count()) {}

  void run(unsigned threads) {
    std::vector<std::thread> workers;
    for (unsigned i = 1; i < threads; ++i) workers.emplace_back([this] { work(); });
    work();
    for (std::thread& worker : workers) worker.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  struct Running {
    std::unique_ptr<Block> block;
    uint64_t linear = 0;
    uint64_t executed = 0, in_turn = 0;
    bool moved = false;  // something changed in its last turn
    bool waits = false;  // nothing did for long
  };

  void work() {
    while (std::optional<Running> running = take()) {
      bool more = false;
      try {
        if (!running->block) {
          running->block = std::make_unique<Block>(
              grid_, position(running->linear, grid_.launch.grid), running->linear);
        }
        more = turn(*running);
        if (more) look_for_progress(*running);
      } catch (const LaunchFailure& failure) {
        report(running->linear, failure.report.fault == Fault::deadlock);
      } catch (...) {
        report(running->linear, false);
      }
      give(std::move(*running), more);
    }
  }

  // False at the end of the block.
  bool turn(Running& running) {
    Block& block = *running.block;
    running.in_turn = 0;
    running.moved = false;
    const uint64_t quiet = running.waits ? kStep : kQuiet;
    for (uint64_t changed_at = 0; running.in_turn < turn_;) {
      const uint64_t before = block.progress;
      if (!advance(block, kStep)) return false;
      running.in_turn += kStep;
      if (block.progress != before) {
        changed_at = running.in_turn;
        running.moved = true;
        running.waits = false;
      } else if (running.in_turn - changed_at >= quiet) {
        running.waits = true;
        break;
      }
    }
    return true;
  }

  // The next block to run, waiting for one if need be; none at the end.
  std::optional<Running> take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (next_ < last() && admits()) {
        Running running;
        running.linear = next_++;
        ++under_way_;
        in_vain_ = 0;
        return running;
      }
      for (std::deque<Running>* blocks : {&ready_, &waiting_}) {
        if (blocks->empty()) continue;
        Running running = std::move(blocks->front());
        blocks->pop_front();
        return running;
      }
      if (under_way_ == 0) {
        changed_.notify_all();
        return std::nullopt;
      }
      changed_.wait(lock);
    }
  }

  bool admits() const {
    if (grid_.launch.cooperative || (ready_.empty() && waiting_.empty())) return true;
    return in_vain_ >= kBeforeNext && under_way_ < kResident;
  }

  void give(Running running, bool more) {
    const std::lock_guard lock(mutex_);
    const bool stop = reported_ && (running.linear >= *reported_ || left_after_report_ == 0);
    if (more && !stop) {
      if (reported_) left_after_report_ -= std::min(left_after_report_, running.in_turn);
      in_vain_ += running.waits ? running.in_turn : running.in_turn / kBusy;
      (running.waits ? waiting_ : ready_).push_back(std::move(running));
    } else {
      if (running.block) counters_ += running.block->counters;
      --under_way_;
      idle_ = 0;
    }
    changed_.notify_one();
    if (under_way_ == 0) changed_.notify_all();
  }

  // Blocks from there on need not run.
  uint64_t last() const { return reported_ ? std::min(count_, *reported_) : count_; }

  // The report of the first block is the one that counts; a deadlock only where there is no other,
  // for a block may wait in vain for one that was stopped.
  void report(uint64_t linear, bool deadlock) {
    const std::lock_guard lock(mutex_);
    grid_.failed = true;
    if (reported_ && (linear > *reported_ || (deadlock && !deadlock_))) return;
    reported_ = linear;
    deadlock_ = deadlock;
    error_ = std::current_exception();
    for (std::deque<Running>* blocks : {&ready_, &waiting_}) {
      under_way_ -=
          std::erase_if(*blocks, [&](const Running& running) { return running.linear >= linear; });
    }
  }

  // A grid in which nothing changes for long hangs.
  void look_for_progress(Running& running) {
    running.executed += running.in_turn;
    if (running.executed >= grid_.launch.most_instructions) {
      deadlock(*running.block, "more instructions than this launch may execute");
    }
    const uint64_t grid_progress = grid_.progress.load();
    std::unique_lock lock(mutex_);
    if (running.moved || grid_progress != progress_) {
      progress_ = grid_progress;
      idle_ = 0;
      return;
    }
    idle_ += running.in_turn;
    if (idle_ < grid_.launch.patience) return;
    lock.unlock();
    deadlock(*running.block, "nothing changes any more while threads go round in loops");
  }

  Grid& grid_;
  Counters& counters_;
  const uint64_t count_;
  const uint64_t turn_ = std::min(kTurn, grid_.launch.patience);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Running> ready_, waiting_;
  uint64_t next_ = 0, under_way_ = 0, in_vain_ = 0, idle_ = 0, progress_ = 0;
  std::optional<uint64_t> reported_;
  bool deadlock_ = false;
  uint64_t left_after_report_ = kAfterReport;
  std::exception_ptr error_;
};

}  // namespace

LaunchStatistics run(const Launch& launch, const Limits& limits, DeviceMemory& memory) {
  static std::atomic<uint64_t> launches{0};
  const auto start = std::chrono::steady_clock::now();
  const Program& program = *launch.module->program;
  Grid grid{launch, limits, memory, program, ++launches, constants_now(program, memory)};

  LaunchStatistics statistics;
  statistics.kernel = launch.entry->name;
  statistics.grid = launch.grid;
  statistics.block = launch.block;
  statistics.dynamic_shared = launch.dynamic_shared;
  statistics.static_shared = launch.entry->static_shared;
  statistics.seed = launch.seed;
  unsigned threads = launch.threads ? launch.threads : std::thread::hardware_concurrency();
  threads = static_cast<unsigned>(std::min<uint64_t>(std::max(threads, 1u), launch.grid.count()));
  Blocks(grid, statistics.counters).run(threads);
  statistics.sectors = {grid.sectors_read, grid.sectors_written, grid.sectors_any};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  statistics.seconds = took.count();
  return statistics;
}

}  // namespace emulator
