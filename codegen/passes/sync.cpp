// sync: puts a barrier wherever threads of a block meet in memory.
//
// What: statements are walked in order with what was touched since the last barrier; one that
// writes what others touched, or reads what others wrote, has a barrier before it, unless every
// element is touched by one and the same thread. A loop whose end meets its beginning has one at
// the end of its body. Once buffers have places (spare, behind smem), barriers that part nothing
// go again, those inside of loops first. The verifier asks the same without inserting, from one
// turn of a loop to the next too.
// Why here: after place, which says who touches what; before smem, which lets buffers share memory
// only across barriers.
// Limits: whole buffers count, not their parts; barriers are of the whole block.
#include <algorithm>
#include <numeric>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/meeting.h"
#include "dsl/error.h"

namespace krait {
namespace {

using Body = std::vector<Statement>;
using Touches = std::vector<Touch>;

const Touch* met(const Touches& since, const Touch& touch) {
  for (const Touch& earlier : since)
    if (meet(earlier, touch)) return &earlier;
  return nullptr;
}

class Inserter {
 public:
  explicit Inserter(TileProgram& program) : program_(program) {}
  void run() {
    Touches since;
    walk(program_.body, since);
  }

 private:
  /// What a body touches before its first barrier and behind its last.
  struct Touched {
    Touches head, trail;
    bool any = false;     // at all
    bool parted = false;  // by a barrier of its own

    void add(const Touches& now) {
      any = any || !now.empty();
      trail.insert(trail.end(), now.begin(), now.end());
      if (!parted) head.insert(head.end(), now.begin(), now.end());
    }
    /// A loop may have no round: its barriers part nothing of what lies around it.
    void add(const Touched& loop) {
      any = any || loop.any;
      trail.insert(trail.end(), loop.trail.begin(), loop.trail.end());
      if (!parted) head.insert(head.end(), loop.head.begin(), loop.head.end());
    }
    void barrier() {
      parted = true;
      trail.clear();
    }
  };

  /// `since`: what was touched since the last barrier, before and after.
  Touched walk(Body& body, Touches& since) {
    Touched touched;
    Body made;
    made.reserve(2 * body.size());
    const auto part = [&] {
      made.push_back(Barrier{});
      since.clear();
      touched.barrier();
    };
    for (Statement& statement : body) {
      if (For* loop = std::get_if<For>(&statement)) {
        Touches before = since;
        Touched inside = walk(loop->body, before);
        if (meets_itself(inside, loop->var)) {
          loop->body.push_back(Barrier{});
          inside.barrier();
        }
        no_turn(inside.head, loop->var);
        no_turn(inside.trail, loop->var);
        touched.add(inside);
        made.push_back(std::move(statement));
        // What lies before the loop must not meet what lies behind. Where it touches shared memory
        // at all, a barrier parts them.
        if (inside.any) part();
        continue;
      }
      if (std::holds_alternative<Barrier>(statement)) {
        since.clear();
        touched.barrier();
      }
      const Touches now = touches_of(program_, statement);
      if (std::any_of(now.begin(), now.end(),
                      [&](const Touch& touch) { return met(since, touch) != nullptr; }))
        part();
      since.insert(since.end(), now.begin(), now.end());
      touched.add(now);
      made.push_back(std::move(statement));
    }
    body = std::move(made);
    return touched;
  }

  /// Whether a round may disturb the one before. Shared buffers that are apart now may share bytes
  /// later on, so that any two of them count.
  static bool meets_itself(const Touched& round, int var) {
    Touches end = round.trail;
    next_turn(end, var);
    return std::any_of(round.head.begin(), round.head.end(), [&](const Touch& touch) {
      return std::any_of(end.begin(), end.end(), [&](const Touch& earlier) {
        // A buffer with slots lives as long as the loop does.
        const bool on_chip =
            touch.memory >= 0 && earlier.memory >= 0 && touch.stages == 1 && earlier.stages == 1;
        return meet(earlier, touch) ||
               (on_chip && touch.memory != earlier.memory && (touch.write || earlier.write));
      });
    });
  }

  TileProgram& program_;
};

/// Barriers by number, in the order in which statements are visited.
void erase_barriers(Body& body, const std::vector<char>& dropped, std::size_t& number) {
  Body kept;
  for (Statement& statement : body) {
    if (For* loop = std::get_if<For>(&statement)) erase_barriers(loop->body, dropped, number);
    if (std::holds_alternative<Barrier>(statement) && dropped[number++] != 0) continue;
    kept.push_back(std::move(statement));
  }
  body = std::move(kept);
}

}  // namespace

void sync(TileProgram& program) { Inserter(program).run(); }

void spare_barriers(TileProgram& program) {
  Meetings meetings(program);
  const int count = meetings.barriers();
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return meetings.depth(a) > meetings.depth(b); });
  std::vector<char> dropped(static_cast<std::size_t>(count), 0);
  for (const int barrier : order) {
    if (meetings.ends_wait(barrier)) continue;
    meetings.drop(barrier, true);
    const bool needed = meetings.first().has_value();
    meetings.drop(barrier, !needed);
    dropped[static_cast<std::size_t>(barrier)] = needed ? 0 : 1;
  }
  std::size_t number = 0;
  erase_barriers(program.body, dropped, number);
}

void verify_sync(const TileProgram& program) {
  const auto found = Meetings(program).first();
  KRAIT_ASSERT(!found, "tile program ", program.name, ": no barrier between\n",
               to_text(program, *found->first.statement), "and\n",
               to_text(program, *found->second.statement));
}

}  // namespace krait
