#pragma once

// What accesses cost, for the counts. counters.h says how the numbers are defined.

#include "tests/cuda_emulator/machine/access.h"

namespace emulator {

enum class Direction : uint8_t { load, store, async };

// An access to shared memory, into the block's counters.
void count_shared(Block& block, const Access& access, Direction direction);

// Sectors of 32 bytes that one warp instruction touches.
class SectorSet {
 public:
  void add(uint64_t sector) {
    if (count_ && sector == sectors_[count_ - 1]) return;
    if (count_ == 0 || sector > highest_) {
      highest_ = sector;
    } else {
      for (unsigned i = 0; i < count_; ++i)
        if (sectors_[i] == sector) return;
    }
    sectors_[count_++] = sector;
  }
  unsigned count() const { return count_; }

 private:
  uint64_t sectors_[2 * kLanes], highest_ = 0;
  unsigned count_ = 0;
};

}  // namespace emulator
