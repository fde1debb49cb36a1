// What accesses to shared memory cost in wavefronts, by the strides and layouts of a tile program.
#pragma once

#include <cstdint>
#include <set>

#include "codegen/tile/tile.h"

namespace krait {

/// Wavefronts of all warps of a block, and those that the same accesses would take without bank
/// conflicts.
struct SharedTraffic {
  std::int64_t wavefronts = 0, ideal = 0;
  SharedTraffic& operator+=(const SharedTraffic& other) {
    wavefronts += other.wavefronts;
    ideal += other.ideal;
    return *this;
  }
};

/// Of one run of the statement, accesses to `memories` alone (buffers that are no aliases) or,
/// where that is empty, to all. After place; widths count where vectorize has set them. An
/// estimate: guards count as if they held, and compilers may keep what is read twice.
SharedTraffic shared_traffic(const TileProgram& program, const Statement& statement,
                             const std::set<int>& memories = {});

/// Of the kernel's statements, each once a turn of its loops: those whose number of turns is known
/// only when it runs count as one turn.
SharedTraffic shared_traffic(const TileProgram& program);

}  // namespace krait
