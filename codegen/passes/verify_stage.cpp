// What asynchronous copies and their readers do at any turn of any loop, followed turn by turn.
//
// A slot is named by its buffer and by whose turn's it is, counted from the current turn. It is
// empty, or its copy was issued, or is part of a group, or has landed for the thread that waited,
// or is ready, a barrier after that. Loops are walked once more than a buffer has slots, so that
// every slot is seen written, read and written again.
#include <deque>
#include <set>

#include "codegen/passes/cuda_passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

struct Slot {
  int memory = -1, turn = 0;
  auto operator<=>(const Slot&) const = default;
};
using Slots = std::set<Slot>;

class Follower {
 public:
  explicit Follower(const TileProgram& program) : program_(program) {}

  void run() {
    walk(program_.body);
    bool under_way = !issued_.empty();
    for (const Slots& group : groups_) under_way = under_way || !group.empty();
    KRAIT_ASSERT(!under_way, "tile program ", program_.name,
                 ": a copy is under way when the kernel ends");
  }

 private:
  const Buffer& buffer(int memory) const {
    return program_.buffers[static_cast<std::size_t>(memory)];
  }

  void require(bool holds, const Statement& statement, const std::string& what) const {
    KRAIT_ASSERT(holds, "tile program ", program_.name, ": ", what, "\n",
                 to_text(program_, statement));
  }

  void walk(const std::vector<Statement>& body) {
    for (auto statement = body.begin(); statement != body.end(); ++statement) {
      if (const Prefetch* prefetch = std::get_if<Prefetch>(&*statement)) {
        if (prefetch->first)
          require(precedes(*prefetch, statement + 1, body.end()), *statement,
                  "no such loop follows");
        issue(*prefetch, *statement);
      } else if (std::holds_alternative<Commit>(*statement)) {
        require(!issued_.empty(), *statement, "a commit of no copies");
        groups_.push_back(std::move(issued_));
        issued_.clear();
      } else if (const Wait* wait = std::get_if<Wait>(&*statement)) {
        for (; groups_.size() > static_cast<std::size_t>(wait->pending); groups_.pop_front())
          landed_.insert(groups_.front().begin(), groups_.front().end());
      } else if (std::holds_alternative<Barrier>(*statement)) {
        ready_.merge(landed_);
        landed_.clear();
        read_.clear();
      } else if (const For* loop = std::get_if<For>(&*statement)) {
        turns(*loop);
      } else {
        touch(*statement);
      }
    }
  }

  /// Whether a loop over the turns that the prefetch is for comes next among loops.
  static bool precedes(const Prefetch& prefetch, std::vector<Statement>::const_iterator from,
                       std::vector<Statement>::const_iterator end) {
    for (; from != end; ++from)
      if (const For* loop = std::get_if<For>(&*from))
        return loop->var == prefetch.var && loop->reverse == prefetch.reverse &&
               loop->block_var == prefetch.block_var && loop->blocks == prefetch.blocks;
    return false;
  }

  void turns(const For& loop) {
    int most = 1;
    for (const Buffer& one : program_.buffers)
      if (one.stage_var == loop.var) most = std::max(most, one.stages);
    walk(loop.body);
    for (int turn = 0; most > 1 && turn < most; ++turn) {
      for_all([&](Slots& slots) { slots = moved(slots, loop.var); });
      walk(loop.body);
    }
    // The last turn issues nothing: there is none to come.
    for_all([&](Slots& slots) {
      std::erase_if(slots,
                    [&](const Slot& slot) { return buffer(slot.memory).stage_var == loop.var; });
    });
    while (!groups_.empty() && groups_.front().empty()) groups_.pop_front();
  }

  template <typename Function>
  void for_all(const Function& f) {
    for (Slots* slots : {&issued_, &landed_, &ready_, &read_}) f(*slots);
    for (Slots& group : groups_) f(group);
  }

  /// The slots as they are counted from the next turn.
  Slots moved(const Slots& slots, int var) const {
    Slots made;
    for (Slot slot : slots) {
      const Buffer& of = buffer(slot.memory);
      if (of.stage_var == var) slot.turn = (slot.turn + of.stages - 1) % of.stages;
      made.insert(slot);
    }
    return made;
  }

  bool under_way(const Slot& slot) const {
    if (issued_.count(slot) != 0) return true;
    for (const Slots& group : groups_)
      if (group.count(slot) != 0) return true;
    return false;
  }

  void issue(const Prefetch& prefetch, const Statement& whole) {
    for (const Statement& statement : prefetch.body) {
      const Copy* copy = std::get_if<Copy>(&statement);
      require(copy != nullptr && copy->asynchronous, whole, "a prefetch of something else");
      const int memory = memory_of(program_, copy->destination.buffer);
      const Buffer& to = buffer(memory);
      require(to.stages > 1 && to.stage_var == prefetch.var, whole,
              to.name + " has no slot for the turn to come");
      const Slot slot{memory, prefetch.first ? 0 : 1};
      require(!under_way(slot) && landed_.count(slot) == 0, whole,
              to.name + " is loaded while an earlier copy may be under way");
      require(read_.count(slot) == 0, whole,
              to.name + " is overwritten while other threads may still read it: no barrier");
      ready_.erase(slot);
      issued_.insert(slot);
    }
  }

  void touch(const Statement& statement) {
    for_each_access(statement, [&](const Access& access, Use use) {
      const int memory = memory_of(program_, access.buffer);
      const Buffer& of = buffer(memory);
      if (of.stages == 1) return;
      require(use == Use::read, statement, of.name + " is written beside its copies");
      const Slot slot{memory, 0};
      require(!under_way(slot), statement,
              of.name + " is read while its copy may be under way: no wait, or an early one");
      require(landed_.count(slot) == 0, statement,
              of.name + " is read before other threads' copies are sure to be there: no barrier");
      require(ready_.count(slot) != 0, statement,
              of.name + " is read, and nothing was copied there");
      read_.insert(slot);
    });
  }

  const TileProgram& program_;
  Slots issued_, landed_, ready_, read_;
  std::deque<Slots> groups_;
};

}  // namespace

void verify_stage(const TileProgram& program) { Follower(program).run(); }

}  // namespace krait
