#pragma once

// Marks of global memory, all with the lock of the chunk held.

#include "tests/cuda_emulator/machine/allocations.h"
#include "tests/cuda_emulator/machine/marks.h"
#include "tests/cuda_emulator/machine/releases.h"

namespace emulator {

// Forgets what earlier launches did.
void begin_chunk(Chunk& chunk, uint32_t launch);

inline bool settled_global(const Mark& mark, const Actor& actor, int lane) {
  return mark.clock == 0 || (mark.who == actor.block && settled(mark, actor, lane));
}

inline bool read_settled_global(const Mark& read, const Actor& actor, int lane) {
  return read.clock == 0 || (read.who == actor.block && read_settled(read, actor, lane));
}

// Of a word of the chunk, before the access: reports it where it is not ordered after an earlier
// one that conflicts. `same`: the write leaves the word as it is.
void check_global_read(const Chunk& chunk, const Actor& actor, int lane, unsigned bytes,
                       uint64_t address);
void check_global_write(const Chunk& chunk, const Actor& actor, int lane, unsigned bytes,
                        uint64_t address, bool same);

// After it.
void mark_global_read(Allocation& allocation, Chunk& chunk, const Actor& actor, int lane,
                      unsigned bytes, uint64_t address);
void mark_global_write(Allocation& allocation, Chunk& chunk, const Actor& actor, int lane,
                       unsigned bytes, uint64_t address);

// Checks and marks where little is to be looked at, as in shared memory. False: nothing was done.
inline bool settled_quickly(const Mark& mark, const Mark& fresh, const uint32_t* least) {
  return mark.clock == 0 ||
         (mark.who == fresh.who && (mark.clock <= least[mark.warp()] || by_same_lane(mark, fresh)));
}

inline bool read_quickly(const Mark* write, Mark& read, const uint32_t* least, const Mark& fresh) {
  if (write && !settled_quickly(*write, fresh, least)) return false;
  if (read.clock == fresh.clock && read.who == fresh.who && alike(read, fresh)) {
    const uint32_t more = read.info & Mark::kMore;
    unite(read, fresh);
    read.info |= more;
    return true;
  }
  if ((read.info & Mark::kMore) || !settled_quickly(read, fresh, least)) return false;
  read = fresh;
  return true;
}

inline bool write_quickly(Mark& write, Mark* read, const uint32_t* least, const Mark& fresh) {
  if (read && ((read->info & Mark::kMore) || !settled_quickly(*read, fresh, least))) return false;
  if (write.clock == fresh.clock && write.who == fresh.who) {
    if (!alike(write, fresh) || (write.lanes != fresh.lanes && (write.bytes() & fresh.bytes())))
      return false;
    unite(write, fresh);
  } else if (settled_quickly(write, fresh, least)) {
    write = fresh;
  } else {
    return false;
  }
  if (read && !(read->bytes() & ~fresh.bytes())) *read = Mark{};
  return true;
}

inline size_t word_of(uint64_t address) { return (address & (kChunk - 1)) / 4; }

}  // namespace emulator
