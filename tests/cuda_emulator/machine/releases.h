#pragma once

// What strong writes released at addresses, for the strong reads that see their values.

#include <map>
#include <utility>
#include <vector>

#include "tests/cuda_emulator/machine/marks.h"

namespace emulator {

class Releases {
 public:
  bool empty() const { return all_.empty(); }
  // A strong read by that lane takes what was released: at once where it acquires, else when a
  // fence follows.
  void read(const Actor& actor, int lane);
  // A strong write releases all that the lane knows, or what it fenced. An update continues what
  // was released before; a mere write replaces it.
  void write(const Actor& actor, int lane, bool update);
  // A weak write.
  void erase(uint64_t address, unsigned bytes);

 private:
  struct Entry {
    unsigned bytes = 0;
    Known wide;                                      // at the scope of the device
    uint64_t wide_block = 0;                         // who added to it last
    std::vector<std::pair<uint64_t, Known>> narrow;  // within each block
  };
  using Map = std::map<uint64_t, Entry>;
  // The entries that overlap.
  std::pair<Map::iterator, Map::iterator> range(uint64_t address, unsigned bytes);

  Map all_;  // by address
};

}  // namespace emulator
