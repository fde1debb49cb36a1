#pragma once

// How DeviceMemory keeps its allocations, for the files that execute global accesses.
//
// Device addresses are not host pointers. Every allocation begins at a multiple of kRegion and the
// address space up to the next one is at least as large as the allocation and never used again, so
// that a wild address hits nothing, and one into freed memory says so. The allocation of an address
// is found by its region, without a lock.

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_emulator/machine/device.h"

namespace emulator {

inline constexpr unsigned kRegionShift = 26, kChunkShift = 10;
inline constexpr uint64_t kRegion = uint64_t{1} << kRegionShift, kFirstAddress = 0x0d00'0000'0000,
                          kRegions = 0xc0000, kChunk = uint64_t{1} << kChunkShift;

// Held for a few accesses at a time.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(1, std::memory_order_acquire)) {
      for (int i = 0; held_.load(std::memory_order_relaxed); ++i)
        if (i > 100) std::this_thread::yield();
    }
  }
  void unlock() { held_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint8_t> held_{0};
};

struct Mark;
class Releases;

// What a launch did to 1024 bytes at an address divisible by that. All zero is a fresh one.
struct Chunk {
  SpinLock lock;                   // of the rest, the data and its definedness
  uint32_t launch = 0;             // to which everything below belongs
  uint32_t read = 0, written = 0;  // sectors
  // A mark for each word: of the last write, the last read, and a read of another warp beside that;
  // null until needed. Owned by the allocation.
  Mark *writes = nullptr, *reads = nullptr, *second_reads = nullptr;
  Releases* releases = nullptr;
};

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Zeros = std::unique_ptr<T[], FreeDeleter>;  // by calloc: pages come with their first use

struct Allocation {
  uint64_t base = 0, bytes = 0;
  std::string name;  // of a module's variable
  bool adopted = false;
  std::atomic<bool> live{true};
  std::byte* data = nullptr;
  Zeros<std::byte> own_data;
  Zeros<uint8_t> defined;  // 0xff for a defined byte; null for adopted memory: all is defined
  Zeros<Chunk> chunks;
  std::mutex marks_mutex;
  std::vector<Zeros<std::byte>> marks;  // of the chunks
  std::vector<std::shared_ptr<Releases>> releases;

  uint64_t end() const { return base + bytes; }
  bool holds(uint64_t address, uint64_t count) const {
    return address >= base && count <= bytes && address - base <= bytes - count;
  }
  Chunk& chunk(uint64_t address) const {
    return chunks[(address >> kChunkShift) - (base >> kChunkShift)];
  }
  // Storage for the chunks.
  Mark* make_marks();
  Releases* make_releases();
  void forget();  // its storage
};

struct DeviceMemory::Impl {
  explicit Impl(uint64_t capacity);

  // The allocation that begins in the region of that address or reaches into it, dead or alive; the
  // address may lie beyond its end. Null where there is none.
  Allocation* find(uint64_t address) const {
    const uint64_t region = (address - kFirstAddress) >> kRegionShift;
    if (region < kRegions) [[likely]]
      return regions[region].load(std::memory_order_acquire);
    return has_adopted.load(std::memory_order_relaxed) ? find_adopted(address) : nullptr;
  }
  Allocation* find_adopted(uint64_t address) const;
  // The live allocation that holds all these bytes, or null.
  Allocation* holding(uint64_t address, uint64_t bytes) const;
  // Where an address that is not valid lies, in words.
  std::string describe(uint64_t address, unsigned bytes, bool* freed) const;

  uint64_t capacity = 0;
  std::atomic<uint64_t> used{0};
  mutable std::shared_mutex mutex;               // of the two lists and the counts
  std::vector<std::unique_ptr<Allocation>> all;  // by rising address, adopted ones aside
  std::vector<std::unique_ptr<Allocation>> adopted;
  std::vector<Allocation*> unburied;  // freed while a launch ran
  std::atomic<bool> has_adopted{false};
  size_t count = 0;
  uint64_t next_region = 0;
  std::unique_ptr<std::atomic<Allocation*>[], FreeDeleter> regions;
};

// Blocks that exist in the process: storage of what is freed meanwhile is kept.
extern std::atomic<int> living_blocks;

template <class T>
Zeros<T> zeros(uint64_t count) {
  void* p = std::calloc(count ? count : 1, sizeof(T));
  if (!p) throw std::bad_alloc();
  return Zeros<T>(static_cast<T*>(p));
}

}  // namespace emulator
