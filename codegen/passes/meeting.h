// Whether two accesses of threads to one memory need a barrier between them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "codegen/tile/access.h"
#include "codegen/tile/tile.h"

namespace krait {

/// One access of a statement as threads make it.
struct Touch {
  const Statement* statement = nullptr;
  const Access* access = nullptr;
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

/// Whether `later` must not come after `earlier`, whose turn is counted from the current one by
/// now, without a barrier.
bool meet(const Touch& earlier, int turn, const Touch& later);
inline bool meet(const Touch& earlier, const Touch& later) {
  return meet(earlier, earlier.turn, later);
}

/// A program as what its threads touch between barriers, worked out once and asked several times.
class Meetings {
 public:
  explicit Meetings(const TileProgram& program);

  /// Barriers in the order in which statements are visited.
  int barriers() const { return static_cast<int>(dropped_.size()); }
  /// As if one were not there, and as if it were again.
  void drop(int barrier, bool dropped) { dropped_[static_cast<std::size_t>(barrier)] = dropped; }
  /// How deep in loops it stands.
  int depth(int barrier) const { return depths_[static_cast<std::size_t>(barrier)]; }
  /// Whether it follows a wait, whose copies it hands to all threads.
  bool ends_wait(int barrier) const { return ends_wait_[static_cast<std::size_t>(barrier)] != 0; }

  /// Two touches without a barrier between, in one turn of a loop, from one to the next, or within
  /// one statement, whose points come in no order; none where threads never meet.
  using Pair = std::pair<Touch, Touch>;
  std::optional<Pair> first() const;

 private:
  struct Event {
    int barrier = -1, loop_var = -1;
    std::vector<Touch> touches;
    std::vector<Event> body;  // of a loop
  };
  struct Seen {
    const Touch* touch;
    int turn;  // as it is counted now
    bool operator==(const Seen&) const = default;
  };
  static void add(std::vector<Seen>& since, const Seen& seen);
  std::vector<Event> events_of(const std::vector<Statement>& body, int depth);
  std::optional<Pair> walk(const std::vector<Event>& events, std::vector<Seen>& since) const;

  const TileProgram& program_;
  std::vector<char> dropped_, ends_wait_;
  std::vector<int> depths_;
  std::vector<Event> events_;
};

}  // namespace krait
