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

// Instructions of a block before others have their turn.
constexpr uint64_t kTurn = 250'000;
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
      : grid_(grid),
        counters_(counters),
        count_(grid.launch.grid.count()),
        resident_(grid.launch.cooperative ? count_ : kResident) {}

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
    uint64_t linear = 0, executed = 0, progress = 0;
  };

  void work() {
    while (std::optional<Running> running = take()) {
      bool more = false;
      try {
        if (!running->block) {
          running->block = std::make_unique<Block>(
              grid_, position(running->linear, grid_.launch.grid), running->linear);
        }
        more = advance(*running->block, turn_);
        if (more) look_for_progress(*running);
      } catch (const LaunchFailure& failure) {
        report(running->linear, failure.report.fault == Fault::deadlock);
      } catch (...) {
        report(running->linear, false);
      }
      give(std::move(*running), more);
    }
  }

  // The next block to run, waiting for one if need be; none at the end.
  std::optional<Running> take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const bool admits = next_ < last() && (waiting_.empty() || under_way_ < resident_);
      if (admits) {
        Running running;
        running.linear = next_++;
        ++under_way_;
        return running;
      }
      if (!waiting_.empty()) {
        Running running = std::move(waiting_.front());
        waiting_.pop_front();
        return running;
      }
      if (under_way_ == 0) {
        changed_.notify_all();
        return std::nullopt;
      }
      changed_.wait(lock);
    }
  }

  void give(Running running, bool more) {
    const std::lock_guard lock(mutex_);
    const bool stop = reported_ && (running.linear >= *reported_ || left_after_report_ == 0);
    if (more && !stop) {
      if (reported_) left_after_report_ -= std::min(left_after_report_, kTurn);
      waiting_.push_back(std::move(running));
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
    std::erase_if(waiting_, [&](const Running& running) {
      const bool late = running.linear >= linear;
      under_way_ -= late;
      return late;
    });
  }

  // A grid in which nothing changes for long hangs.
  void look_for_progress(Running& running) {
    running.executed += turn_;
    if (running.executed >= grid_.launch.most_instructions) {
      deadlock(*running.block, "more instructions than this launch may execute");
    }
    const uint64_t grid_progress = grid_.progress.load();
    const bool moved = running.progress != running.block->progress;
    running.progress = running.block->progress;
    std::unique_lock lock(mutex_);
    if (moved || grid_progress != progress_) {
      progress_ = grid_progress;
      idle_ = 0;
      return;
    }
    idle_ += turn_;
    if (idle_ < grid_.launch.patience) return;
    lock.unlock();
    deadlock(*running.block, "nothing changes any more while threads go round in loops");
  }

  Grid& grid_;
  Counters& counters_;
  const uint64_t count_, resident_;
  const uint64_t turn_ = std::min(kTurn, grid_.launch.patience);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Running> waiting_;
  uint64_t next_ = 0, under_way_ = 0, idle_ = 0, progress_ = 0;
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
