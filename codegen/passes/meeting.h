// Whether two accesses of threads to one memory need a barrier between them.
#pragma once

#include <optional>
#include <vector>

#include "codegen/tile/access.h"
#include "codegen/tile/tile.h"

namespace krait {

/// One access of a statement as threads make it.
struct Touch {
  const Statement* statement = nullptr;
  int memory = -1;  // the buffer whose memory it is; of global ones in place: one of the two
  std::int64_t begin = -1, end = -1;  // bytes of shared memory, once they are placed
  bool write = false;
  /// Which thread touches which element, in a form that is equal only where the same threads touch
  /// the same elements; none where it cannot be told, or several threads touch one.
  std::optional<std::vector<std::int64_t>> owners;
};

/// Accesses of the statement to memory that threads share: shared buffers, and global ones that the
/// kernel writes. Bodies of loops are not entered.
std::vector<Touch> touches_of(const TileProgram& program, const Statement& statement);

/// Whether `later` must not come after `earlier` without a barrier.
bool meet(const Touch& earlier, const Touch& later);

}  // namespace krait
