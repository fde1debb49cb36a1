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

inline size_t word_of(uint64_t address) { return (address & (kChunk - 1)) / 4; }

}  // namespace emulator
