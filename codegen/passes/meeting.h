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
  /// Of a buffer with a slot a turn: whose turn's it is, counted from the current one of the loop
  /// over stage_var; -1: any.
  int turn = -1, stages = 1, stage_var = -1;
  /// Of an asynchronous copy: when it is issued, and the wait that it lands by.
  bool asynchronous = false;
  /// Which thread touches which element, in a form that is equal only where the same threads touch
  /// the same elements; none where it cannot be told, or several threads touch one.
  std::optional<std::vector<std::int64_t>> owners;
};

/// Accesses of the statement to memory that threads share: shared buffers, and global ones that the
/// kernel writes. Bodies of loops are not entered. A prefetch writes the slots of the turn that it
/// is for; a wait those of the current turn, of all buffers that have slots, as other threads see
/// it.
std::vector<Touch> touches_of(const TileProgram& program, const Statement& statement);

/// The touches as they are counted from the next turn of the loop over `var`; after the loop's end
/// nothing is known of turns.
void next_turn(std::vector<Touch>& touches, int var);
void no_turn(std::vector<Touch>& touches, int var);

/// Whether `later` must not come after `earlier` without a barrier.
bool meet(const Touch& earlier, const Touch& later);

}  // namespace krait
