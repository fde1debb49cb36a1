#pragma once

// What threads know of one another's pasts, and how a block keeps it for its lanes.
//
// Time is counted by warp: an access is stamped with the clock of its warp, which advances whenever
// lanes of the warp release something. "Lane l of warp w is known up to c" means that its accesses
// stamped c or less happened before. What a thread did itself is not written down.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/cuda_emulator/machine/clocks.h"
#include "tests/cuda_emulator/machine/memory.h"

namespace emulator {

inline constexpr unsigned kMostWarps = 32;

// How far the threads of one block are known.
struct Times {
  // By lane, of warps whose lanes are known to different points; in order of warps.
  struct Detail {
    unsigned warp = 0;
    std::array<uint32_t, kLanes> lane{};
  };
  std::array<uint32_t, kMostWarps> least{};  // of all lanes of a warp
  std::vector<Detail> details;

  const Detail* detail(unsigned warp) const;
  // Lanes of the mask that are not known up to that clock.
  Mask unknown(unsigned warp, uint32_t clock, Mask lanes) const;
  // Those lanes become known up to at least that clock.
  void raise(unsigned warp, Mask lanes, uint32_t clock);
  void merge(const Times& other);
  bool covers(const Times& other) const;

 private:
  void settle(size_t detail);  // drops it where all lanes are alike
};

// A set of what happened before.
struct Knowledge {
  using Others = std::vector<std::pair<uint64_t, std::shared_ptr<const Times>>>;

  uint64_t block = 0;  // `own` is of that one
  Times own;
  std::shared_ptr<const Others> others;  // of other blocks, in their order; null: none
  // The part that fences made visible: a strong write without a release of its own releases it, and
  // no more. [0] by fences of any scope, [1] by those of the whole device. Null: nothing.
  Known fenced[2];

  const Times* of(uint64_t block) const;
  Mask unknown(uint64_t block, unsigned warp, uint32_t clock, Mask lanes) const;
  bool covers(const Knowledge& other) const;
};

// Everything of both, as seen by that block.
Known merged(uint64_t block, const Known& a, const Known& b);

struct Clocks::Impl {
  struct Group {  // lanes of a warp that know the same
    Mask lanes = 0;
    Known known;
  };
  // What strong reads saw released, for a fence or barrier that makes it known.
  struct Seen {
    Mask lanes = 0;
    bool wide = false;  // a fence of the block's scope is not enough
    Known known;
  };
  struct OfWarp {
    uint32_t clock = 1, met = 0;  // met: when its lanes last executed something together
    Mask existing = 0;
    std::vector<Group> groups;
    std::vector<Seen> seen;
    // When the lane's last fence was; 0: never. What others did is in Knowledge::fenced.
    std::array<std::array<uint32_t, kLanes>, 2> fence{};
  };

  Impl(uint64_t block, unsigned threads);

  const Known& known(unsigned warp, int lane) const;
  // What each of these lanes knows, for the checks of an access.
  void knowledge(unsigned warp, Mask lanes, const Knowledge* (&to)[kLanes]) const;
  void replace(unsigned warp, Mask lanes, const Known& known);
  void acquire(unsigned warp, Mask lanes, const Known& known);
  // Makes known what was seen: all of it, or what fences of the block's scope suffice for.
  void make_known(unsigned warp, Mask lanes, bool wide);
  void see(unsigned warp, Mask lanes, bool wide, const Known& known);
  // What these lanes know and did, with what they fenced.
  std::shared_ptr<Knowledge> gather(const std::vector<std::pair<unsigned, Mask>>& lanes) const;
  void fence(unsigned warp, Mask lanes, bool acquires, bool releases, bool wide);
  // What a strong write of that lane releases where it is no release itself: by fences of any scope
  // or of the device's.
  Known fenced(unsigned warp, int lane, bool wide) const;
  void advance(unsigned warp) { ++warps[warp].clock; }

  uint64_t block;
  std::vector<OfWarp> warps;
  bool any_fence = false;
};

}  // namespace emulator
