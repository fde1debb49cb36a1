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
    program_.body = walk(std::move(program_.body), since);
  }

 private:
  /// `since`: what was touched since the last barrier, before and after.
  Body walk(Body body, Touches& since) {
    Body made;
    for (Statement& statement : body) {
      if (For* loop = std::get_if<For>(&statement)) {
        Touches inside = since;
        loop->body = walk(std::move(loop->body), inside);
        if (meets_itself(*loop)) loop->body.push_back(Barrier{});
        // A loop may have no round: what lies before it must not meet what lies behind. Where it
        // touches shared memory at all, a barrier parts them.
        Touches all;
        touched(loop->body, all);
        no_turn(all, loop->var);
        made.push_back(std::move(statement));
        since.insert(since.end(), all.begin(), all.end());
        if (!all.empty()) {
          made.push_back(Barrier{});
          since.clear();
        }
        continue;
      }
      if (std::holds_alternative<Barrier>(statement)) since.clear();
      const Touches now = touches_of(program_, statement);
      if (std::any_of(now.begin(), now.end(),
                      [&](const Touch& touch) { return met(since, touch) != nullptr; })) {
        made.push_back(Barrier{});
        since.clear();
      }
      since.insert(since.end(), now.begin(), now.end());
      made.push_back(std::move(statement));
    }
    return made;
  }

  void touched(const Body& body, Touches& all) const {
    visit_statements(body, [&](const Statement& statement) {
      const Touches now = touches_of(program_, statement);
      all.insert(all.end(), now.begin(), now.end());
    });
  }

  /// Touches after the last barrier of the body; whether it has one that is always met.
  bool trail(const Body& body, Touches& end) const {
    for (auto statement = body.rbegin(); statement != body.rend(); ++statement) {
      if (std::holds_alternative<Barrier>(*statement)) return true;
      if (const For* loop = std::get_if<For>(&*statement)) {
        trail(loop->body, end);
        no_turn(end, loop->var);
        continue;
      }
      const Touches now = touches_of(program_, *statement);
      end.insert(end.end(), now.begin(), now.end());
    }
    return false;
  }

  /// Touches before the first barrier of the body.
  bool head(const Body& body, Touches& start) const {
    for (const Statement& statement : body) {
      if (std::holds_alternative<Barrier>(statement)) return true;
      if (const For* loop = std::get_if<For>(&statement)) {
        head(loop->body, start);
        no_turn(start, loop->var);
        continue;
      }
      const Touches now = touches_of(program_, statement);
      start.insert(start.end(), now.begin(), now.end());
    }
    return false;
  }

  /// Whether a round may disturb the one before. Shared buffers that are apart now may share bytes
  /// later on, so that any two of them count.
  bool meets_itself(const For& loop) const {
    Touches end, start;
    trail(loop.body, end);
    head(loop.body, start);
    next_turn(end, loop.var);
    return std::any_of(start.begin(), start.end(), [&](const Touch& touch) {
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
