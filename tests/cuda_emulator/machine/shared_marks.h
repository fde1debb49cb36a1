#pragma once

// Marks of a block's shared memory.

#include "tests/cuda_emulator/machine/marks.h"
#include "tests/cuda_emulator/machine/races.h"
#include "tests/cuda_emulator/machine/releases.h"

namespace emulator {

// A word. write.who: not 0 while an asynchronous copy to the word is under way; who issued it.
// read.who: from 1, where further readers are, a mark for each warp; they count where read has
// kMore, and then read itself does not.
struct SharedWord {
  Mark write, read;
};

struct SharedShadow::Impl {
  explicit Impl(size_t bytes);
  ~Impl();

  std::vector<SharedWord> words;  // all zero beyond those that the block touched
  std::vector<Mark> further;
  std::vector<uint8_t> touched;  // for each 1024 bytes
  Releases releases;
};

// Marks of the block's shared memory, made when they are first needed.
SharedShadow::Impl& shared_marks(Block& block);

// Checks of one word before a write is done. A write of what the word already holds (`same`) does
// not race with other writes.
void check_write(const SharedShadow::Impl& marks, const SharedWord& word, const Actor& actor,
                 int lane, unsigned bytes, uint64_t address, bool same);

// Marks it after.
void mark_read(SharedShadow::Impl& marks, SharedWord& word, const Actor& actor, int lane,
               unsigned bytes);
void mark_write(SharedWord& word, const Actor& actor, int lane, unsigned bytes);

// The part of both that looks at the last write, where the quick test did not settle it.
void check_write_mark(const SharedWord& word, const Actor& actor, int lane, unsigned bytes,
                      uint64_t address, bool writes, bool same);

// The same before a read.
inline void check_read(const SharedWord& word, const Actor& actor, int lane, unsigned bytes,
                       uint64_t address) {
  if (word.write.who || !settled(word.write, actor, lane)) [[unlikely]]
    check_write_mark(word, actor, lane, bytes, address, false, false);
}

// Checks and marks where little is to be looked at: what was done to the word had happened before,
// or was done by the lane itself, or now by others of its warp to other bytes. False: nothing was
// done. `least` is how far the lane knows the warps.
inline bool read_quickly(SharedWord& word, const uint32_t* least, const Mark& fresh) {
  const Mark& write = word.write;
  if (write.who || (write.clock > least[write.warp()] && !by_same_lane(write, fresh))) return false;
  Mark& read = word.read;
  if (read.clock == fresh.clock && alike(read, fresh)) {
    unite(read, fresh);
    return true;
  }
  if ((read.info & Mark::kMore) || (read.clock > least[read.warp()] && !by_same_lane(read, fresh)))
    return false;
  replace(read, fresh);
  return true;
}

inline bool write_quickly(SharedWord& word, const uint32_t* least, const Mark& fresh) {
  Mark &write = word.write, &read = word.read;
  if (write.who || (read.info & Mark::kMore) ||
      (read.clock > least[read.warp()] && !by_same_lane(read, fresh)))
    return false;
  if (write.clock <= least[write.warp()]) {
    replace(write, fresh);
  } else if (write.clock == fresh.clock && alike(write, fresh) &&
             (write.lanes == fresh.lanes || !(write.bytes() & fresh.bytes()))) {
    unite(write, fresh);
  } else {
    return false;
  }
  if (!(read.bytes() & ~fresh.bytes())) replace(read, Mark{});
  return true;
}

// Who issued a copy that is under way.
inline uint32_t under_way(const Actor& actor, int lane) {
  return 1 | actor.warp.thread(lane) << 1 | (actor.info >> Mark::kLineShift) << 11;
}

}  // namespace emulator
