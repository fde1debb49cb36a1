#pragma once

// What the machine keeps of warps and blocks that run, and how its parts call each other.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/grid.h"
#include "tests/cuda_emulator/machine/program.h"

namespace emulator {

// One activation of a function by lanes of a warp. Lanes that make the same call later, from the
// same activation, join it as long as others are in it, so that they can meet again.
struct Frame {
  const Code* code = nullptr;
  Frame* caller = nullptr;
  uint32_t site = 0;  // position of the call in the caller
  uint32_t depth = 0;
  Mask lanes = 0;  // in it or in what it calls
  Registers registers;
  uint64_t local_base = 0;

  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<std::byte, Free> storage;
};

enum class Wait : uint8_t {
  none,
  aligned,     // for the other lanes of the warp, at an instruction that all execute together
  collective,  // for the lanes of its member mask
  gather,      // at a barrier, for the other lanes of the warp
  barrier,     // at a barrier, for other warps
  doze         // for anything to change in the block
};

// Lanes of a warp that are at the same place.
struct Group {
  Frame* frame = nullptr;
  uint32_t at = 0;
  Mask lanes = 0;
  Wait wait = Wait::none;
  bool tired = false;     // went round a loop often enough: others first
  uint32_t turns = 0;     // branches back while others could run
  uint64_t progress = 0;  // of the block, when the turns began or it fell asleep
  uint8_t barrier = 0;    // the one it waits at
};

struct Warp::State {
  std::vector<Group> groups;
  std::vector<std::unique_ptr<Frame>> frames;  // alive
  uint64_t local_base = 0;                     // of the frame that runs
  // Local memory, lane by lane.
  std::vector<std::byte> local;
  std::vector<uint8_t> local_defined;
  uint64_t local_bytes = 0;  // a lane
  uint32_t thread[3][kLanes] = {};
};

struct Barrier {
  bool active = false;
  bool reduces = false;
  unsigned expected = 0;  // threads, whole warps; 0: all of the block
  unsigned arrived = 0;
  const Op* first = nullptr;
  std::vector<Mask> gathered;       // by warp: lanes that wait for others of the warp
  std::vector<Mask> waiting;        // by warp: lanes that will go on
  std::vector<char> warps;          // 1: has arrived
  Known released;                   // of those who arrived without waiting
  unsigned count = 0, threads = 0;  // of the reduction: threads whose predicate is true, all
  bool defined = true;
};

// xoshiro256**, public domain by Blackman and Vigna, written anew.
class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  uint32_t below(uint32_t count) { return static_cast<uint32_t>((next() >> 32) * count >> 32); }

 private:
  uint64_t state_[4];
};

struct Block::State {
  explicit State(uint64_t seed) : random(seed) {}
  std::array<Barrier, 16> barriers;
  std::vector<uint32_t> runnable;  // warps
  std::vector<char> listed;        // by warp: among them
  Random random;
  uint64_t executed = 0;  // instructions of warps
  uint64_t clock = 0;     // reads of clocks, so that each reads another time
  unsigned unfinished = 0;
  bool sleepers = false;   // groups may be dozing
  uint64_t looked_at = 0;  // progress when they were looked at last
  uint64_t woken_at = 0;   // instructions when they were woken last, whatever changed
  unsigned naps = 0;       // times in a row that all who could go on were dozing
  uint64_t napped_at = 0;  // progress then
};

// warp.cpp
enum class Slice : uint8_t { over, blocked, done };
// Runs a warp for about that many instructions.
Slice advance(Warp& warp, unsigned budget);
void count(Warp& warp, const Op& op, Mask lanes);
// Splits off the lanes that are not of the mask; they go on at `at`. Returns the index of the
// group that keeps the lanes of the mask.
void split(Warp& warp, size_t group, Mask keep, uint32_t others_at);
// Groups that wait for lanes of their warp look again.
void look_again(Warp& warp);
inline Mask alive(const Warp& warp) { return warp.existing & ~warp.exited; }
// "lanes 0-15 at line 12 (bar.sync 0)".
std::string where(const Group& group);
std::string lanes_in_words(Mask lanes);

// calls.cpp
void start(Warp& warp, const Code& code);  // of a kernel
void call(Warp& warp, size_t group, const Op& op, Mask lanes);
void call_indirect(Warp& warp, size_t group, const Op& op, Mask lanes);
void ret(Warp& warp, size_t group, const Op& op, Mask lanes);
void leave(Warp& warp, size_t group, const Op& op, Mask lanes);  // exit

// collective.cpp
void collective(Warp& warp, size_t group, const Op& op, Mask lanes);

// barrier.cpp
void block_barrier(Warp& warp, size_t group, const Op& op, Mask lanes);
// After lanes of the warp exited.
void barriers_after_exit(Warp& warp);

// block.cpp
// Runs a block for about that many instructions; false at its end.
bool advance(Block& block, uint64_t budget);
void wake(Block& block, unsigned warp);
[[noreturn]] void deadlock(Block& block, const std::string& why);

}  // namespace emulator
