// Occupancy, from the limits of the part alone.

#include <algorithm>

#include "tests/cuda_emulator/driver/launch.h"
#include "tests/cuda_emulator/driver/modules.h"

using namespace emulator::driver;

namespace emulator::driver {
namespace {

constexpr unsigned kWarp = 32, kRegisterUnit = 256, kSharedUnit = 128;

uint64_t rounded(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

unsigned resident_blocks(const Limits& limits, const Function& function, unsigned threads,
                         uint64_t dynamic_shared) {
  const FunctionInfo& info = *function.info;
  if (threads == 0 || threads > limits.threads_per_block || threads > info.max_threads) return 0;
  const uint64_t warps = (threads + kWarp - 1) / kWarp;
  uint64_t blocks = std::min<uint64_t>(limits.blocks_per_multiprocessor,
                                       limits.threads_per_multiprocessor / (warps * kWarp));
  // Registers are handed out by the warp.
  const uint64_t registers = warps * rounded(uint64_t{info.registers} * kWarp, kRegisterUnit);
  if (registers > limits.registers_per_block) return 0;
  if (registers) blocks = std::min(blocks, limits.registers_per_multiprocessor / registers);
  const uint64_t shared = info.static_shared + dynamic_shared;
  if (shared > limits.shared_per_block_opt_in) return 0;
  const uint64_t taken = rounded(shared + limits.shared_reserved, kSharedUnit);
  if (taken) blocks = std::min(blocks, limits.shared_per_multiprocessor / taken);
  return static_cast<unsigned>(blocks);
}

namespace {

constexpr unsigned kFlags = CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;

CUresult active_blocks(const char* name, int* numBlocks, CUfunction func, int blockSize,
                       size_t dynamicSMemSize, unsigned flags) {
  return entry(name, [&](Call& call) {
    call.context();
    const std::shared_ptr<Function> function = function_at(call, func);
    require(numBlocks && blockSize > 0 && !(flags & ~kFlags));
    *numBlocks = static_cast<int>(resident_blocks(
        call.driver.limits, *function, static_cast<unsigned>(blockSize), dynamicSMemSize));
  });
}

CUresult potential(const char* name, int* minGridSize, int* blockSize, CUfunction func,
                   CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit, unsigned flags) {
  return entry(name, [&](Call& call) {
    call.context();
    const std::shared_ptr<Function> function = function_at(call, func);
    require(minGridSize && blockSize && limit >= 0 && !(flags & ~kFlags));
    const Limits& limits = call.driver.limits;
    unsigned most = std::min(limits.threads_per_block, function->info->max_threads);
    if (limit > 0) most = std::min(most, static_cast<unsigned>(limit));
    unsigned best_threads = 0, best_size = 0, best_blocks = 0;
    // Multiples of a warp from the largest down; the largest of those that fill as much.
    for (unsigned size = static_cast<unsigned>(rounded(most, kWarp)); size > 0; size -= kWarp) {
      const unsigned threads = std::min(size, most);
      const size_t shared = dynamic_of ? dynamic_of(static_cast<int>(threads)) : dynamic;
      const unsigned blocks = resident_blocks(limits, *function, threads, shared);
      if (blocks * threads > best_threads) {
        best_threads = blocks * threads;
        best_size = threads;
        best_blocks = blocks;
      }
    }
    require(best_size > 0);
    *blockSize = static_cast<int>(best_size);
    *minGridSize = static_cast<int>(best_blocks * limits.multiprocessors);
  });
}

}  // namespace
}  // namespace emulator::driver

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  return active_blocks("cuOccupancyMaxActiveBlocksPerMultiprocessor", numBlocks, func, blockSize,
                       dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func,
                                                              int blockSize, size_t dynamicSMemSize,
                                                              unsigned int flags) {
  return active_blocks("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", numBlocks, func,
                       blockSize, dynamicSMemSize, flags);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                          size_t dynamicSMemSize, int blockSizeLimit) {
  return potential("cuOccupancyMaxPotentialBlockSize", minGridSize, blockSize, func,
                   blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize,
                                                   CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit,
                                                   unsigned int flags) {
  return potential("cuOccupancyMaxPotentialBlockSizeWithFlags", minGridSize, blockSize, func,
                   blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, flags);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func,
                                                 int numBlocks, int blockSize) {
  return entry("cuOccupancyAvailableDynamicSMemPerBlock", [&](Call& call) {
    call.context();
    const std::shared_ptr<Function> function = function_at(call, func);
    require(dynamicSmemSize && numBlocks > 0 && blockSize > 0);
    const emulator::Limits& limits = call.driver.limits;
    const auto threads = static_cast<unsigned>(blockSize);
    require(resident_blocks(limits, *function, threads, 0) >= static_cast<unsigned>(numBlocks));
    const uint64_t each = limits.shared_per_multiprocessor / static_cast<unsigned>(numBlocks) /
                          kSharedUnit * kSharedUnit;
    const uint64_t used = limits.shared_reserved + function->info->static_shared;
    *dynamicSmemSize =
        each <= used
            ? 0
            : std::min<uint64_t>(each - used, static_cast<uint64_t>(function->dynamic_shared));
  });
}
