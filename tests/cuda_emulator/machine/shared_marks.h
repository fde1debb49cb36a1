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

// Who issued a copy that is under way.
inline uint32_t under_way(const Actor& actor, int lane) {
  return 1 | actor.warp.thread(lane) << 1 | (actor.info >> Mark::kLineShift) << 11;
}

}  // namespace emulator
