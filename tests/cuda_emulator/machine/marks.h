#pragma once

// Marks: who touched a 4-byte word last. races.h says what they find and what they miss.

#include <vector>

#include "tests/cuda_emulator/machine/access.h"
#include "tests/cuda_emulator/machine/knowledge.h"

namespace emulator {

// One access to a word, or several alike by lanes of one warp. All zero: none.
struct Mark {
  uint32_t clock = 0;
  uint32_t who = 0;  // global memory: the block. Shared memory: see shared_marks.h
  Mask lanes = 0;
  uint32_t info = 0;

  enum : uint32_t {
    kBytes = 0xf,          // those of the word
    kWarpShift = 4,        // five bits
    kMixed = 1u << 9,      // not every lane touched all of these bytes
    kStrong = 1u << 10,    // volatile, relaxed, atomic ...
    kWide = 1u << 11,      // at the scope of the device
    kCompares = 1u << 12,  // a compare-and-swap
    kMore = 1u << 13,      // there are further marks
    kLineShift = 14,       // of the PTX; 0 where it does not fit
    kKind = kStrong | kWide | kCompares | 0x1fu << kWarpShift
  };
  unsigned bytes() const { return info & kBytes; }
  unsigned warp() const { return info >> kWarpShift & 0x1f; }
  int line() const { return static_cast<int>(info >> kLineShift); }
};

// The lanes of an access, as the marks see them.
class Actor {
 public:
  Actor(Warp& warp, const Op& op, const Access& access);

  Warp& warp;
  const Op& op;
  const Access& access;
  uint32_t block, clock, met;
  uint32_t info;  // of a mark but for the bytes
  bool strong, wide;
  const Knowledge* known[kLanes];

  Mark mark(int lane, unsigned bytes) const {
    return {clock, block, Mask{1} << lane, info | bytes};
  }

 private:
  std::vector<Known> kept_;  // where the access itself may change what lanes know
};

// Bytes of the word at that address that an access of so many bytes from there on touches.
inline unsigned bytes_of_word(uint64_t address, unsigned bytes) {
  return bytes >= 4 ? Mark::kBytes : ((1u << bytes) - 1) << (address & 3);
}

// Whether a mark of the actor's own block may be forgotten by that lane: it happened before, or is
// the lane's own.
inline bool settled(const Mark& mark, const Actor& actor, int lane) {
  return mark.clock <= actor.known[lane]->own.least[mark.warp()] ||
         (mark.warp() == actor.warp.index && mark.lanes == Mask{1} << lane);
}

// The same for a read, before a write.
inline bool read_settled(const Mark& read, const Actor& actor, int lane) {
  return (read.warp() == actor.warp.index && read.clock <= actor.met) || settled(read, actor, lane);
}

// Lanes of the mark, which one of `block` made, whose access conflicts with that of the actor's
// lane and did not happen before it.
Mask conflicting(const Mark& mark, uint32_t block, bool mark_writes, const Actor& actor, int lane,
                 unsigned bytes, bool writes);

// Whether two marks can be one: by the same warp, of the same strength.
inline bool alike(const Mark& a, const Mark& b) {
  return a.lanes && !((a.info ^ b.info) & Mark::kKind);
}

inline bool by_same_lane(const Mark& a, const Mark& b) {
  return a.lanes == b.lanes && a.warp() == b.warp();
}

// Replaces a mark, or adds to one that is alike; `who` stays. Of two clocks the earlier one is
// taken, which finds less.
inline void replace(Mark& mark, const Mark& fresh) {
  mark.clock = fresh.clock;
  mark.lanes = fresh.lanes;
  mark.info = fresh.info;
}
inline void unite(Mark& mark, const Mark& fresh) {
  const bool mixed = mark.lanes != fresh.lanes && mark.bytes() != fresh.bytes();
  const uint32_t kept = mark.info & (Mark::kMixed | Mark::kBytes);
  mark.clock = mark.clock < fresh.clock ? mark.clock : fresh.clock;
  mark.lanes |= fresh.lanes;
  mark.info = fresh.info | kept | (mixed ? Mark::kMixed : 0u);
}

// The last write: what came before it has happened before, or is forgotten. A weak write that the
// same lane has just made stays, for it conflicts with more than a strong one.
inline void put_write(Mark& mark, const Mark& fresh) {
  const bool same_lane = mark.clock == fresh.clock && mark.lanes == fresh.lanes &&
                         mark.warp() == fresh.warp() && mark.bytes() == fresh.bytes();
  if (same_lane && !(mark.info & Mark::kStrong)) return;
  if (mark.clock == fresh.clock && alike(mark, fresh))
    unite(mark, fresh);
  else
    replace(mark, fresh);
}

// Reports that an access of the lane and that of the mark are not ordered.
[[noreturn]] void fail_race(const Actor& actor, int lane, bool writes, uint64_t word,
                            const Mark& mark, uint32_t block, bool mark_writes, Mask lanes);

// A read beside the one that is marked. `settled`: whether nothing is lost without the old one,
// since it happened before whatever may still conflict with it.
template <typename Settled>
void add_read(Mark& mark, const Mark& fresh, const Settled& settled) {
  if (mark.clock == fresh.clock && alike(mark, fresh))
    unite(mark, fresh);
  else if (settled(mark))
    replace(mark, fresh);
  else if (alike(mark, fresh))
    unite(mark, fresh);
  else if (mark.info & Mark::kStrong)
    replace(mark, fresh);  // the weak one conflicts with more
}

}  // namespace emulator
