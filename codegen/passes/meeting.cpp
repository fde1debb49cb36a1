#include "codegen/passes/meeting.h"

#include <algorithm>
#include <limits>
#include <map>

namespace krait {
namespace {

/// Whether the positions of one turn of a loop can be those of another: `own` variables run farther
/// than a loop's variable moves them.
bool overlaps_other_turns(const TileProgram& program, const Index& index,
                          const std::vector<int>& own) {
  std::int64_t span = 1, step = 0;
  for (const auto& [var, factor] : index.terms) {
    const Var& variable = program.vars[static_cast<std::size_t>(var)];
    if (std::find(own.begin(), own.end(), var) != own.end())
      span += std::abs(factor) * (variable.extent.offset - 1);
    else if (variable.kind == VarKind::loop)
      step = step == 0 ? std::abs(factor) : std::min(step, std::abs(factor));
  }
  return step != 0 && step < span;
}

bool stores_to_memory(const TileProgram& program, const Statement& statement) {
  bool stores = false;
  for_each_access(statement, [&](const Access& access, Use use) {
    const Space space = program.buffers[static_cast<std::size_t>(access.buffer)].space;
    stores = stores || (use != Use::read && (space == Space::shared || space == Space::global));
  });
  return stores;
}

/// Bits of lanes, then of warps, whose threads stand aside: with one of them set they touch nothing
/// here. None where several threads touch what one of them could.
std::optional<std::vector<bool>> bits_aside(const TileProgram& program, const Statement& statement,
                                            const Layout& layout, bool write) {
  const ReduceTile* sum = std::get_if<ReduceTile>(&statement);
  const int kept = sum == nullptr ? static_cast<int>(layout.extents.size())
                                  : static_cast<int>(sum->domain.size());
  // All lanes of a sum read; one of those that share it stores. Operands of a product are read by
  // whoever needs them.
  const bool lanes_read = sum != nullptr && !write;
  if ((std::holds_alternative<Mma>(statement) && !write) ||
      (lanes_read && layout.replica_lanes() != 0) ||
      (layout.has_replicas() && !stores_to_memory(program, statement)))
    return std::nullopt;
  std::vector<bool> aside;
  for (const Layout::Bit& bit : layout.lanes)
    aside.push_back(bit.dim < 0 || (bit.dim >= kept && !lanes_read));
  for (const Layout::Bit& bit : layout.warps) aside.push_back(bit.dim < 0);
  return aside;
}

/// Each bit of the layout as an offset in the memory, and the offset that is common.
std::optional<std::vector<std::int64_t>> owners_of(const TileProgram& program,
                                                   const Statement& statement, const Access& access,
                                                   bool write) {
  const std::optional<Layout>* layout_if_any = layout_of(statement);
  if (layout_if_any == nullptr || !*layout_if_any) return std::nullopt;
  const Layout& layout = **layout_if_any;
  const auto aside = bits_aside(program, statement, layout, write);
  if (!aside) return std::nullopt;
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  const std::vector<int> vars = layout_variables(statement);
  std::map<int, std::int64_t> strides;  // of the layout's variables
  std::vector<std::int64_t> key{memory_offset(program, access.buffer)};
  const std::vector<int> own_vars = own_variables(statement);
  for (std::size_t d = 0; d < access.index.size(); ++d) {
    if (overlaps_other_turns(program, access.index[d], own_vars)) return std::nullopt;
    const Stride& stride = buffer.dims[d].stride;
    key.push_back(access.index[d].constant);
    for (const auto& [var, factor] : access.index[d].terms) {
      const bool own = std::find(vars.begin(), vars.end(), var) != vars.end();
      if (own && stride.is_constant()) {
        strides[var] += factor * stride.constant;
      } else if (own) {
        // A stride that is known only when it runs: told apart by the dimension it is of.
        strides[var] += factor * (std::int64_t{1} << 40) * (stride.argument + 1);
      } else {
        key.push_back(var);
        key.push_back(factor);
      }
    }
    key.push_back(stride.is_constant() ? stride.constant : -1 - stride.argument);
  }
  std::size_t number = 0;
  for (const auto* bits : {&layout.lanes, &layout.warps})
    for (const Layout::Bit& bit : *bits) {
      if ((*aside)[number++]) {
        key.push_back(std::numeric_limits<std::int64_t>::min());
        continue;
      }
      const std::int64_t moved = strides[vars[static_cast<std::size_t>(bit.dim)]] * bit.stride;
      if (moved == 0) return std::nullopt;  // several threads on one element
      key.push_back(moved);
    }
  return key;
}

}  // namespace

namespace {

Touch touch_of(const TileProgram& program, int memory) {
  Touch touch;
  touch.memory = memory;
  const Buffer& root = program.buffers[static_cast<std::size_t>(memory)];
  if (root.scratch_offset >= 0) {
    touch.begin = root.scratch_offset;
    touch.end = touch.begin + bytes_of(root);
  }
  touch.stages = root.stages;
  touch.stage_var = root.stage_var;
  if (root.stages > 1) touch.turn = 0;
  return touch;
}

std::vector<Touch> touches_ahead(const TileProgram& program, const Prefetch& prefetch) {
  std::vector<Touch> all;
  for (const Statement& copy : prefetch.body)
    for (Touch& touch : touches_of(program, copy)) {
      touch.owners.reset();
      touch.asynchronous = touch.write;
      if (touch.turn >= 0) touch.turn = prefetch.first ? -1 : 1;
      all.push_back(std::move(touch));
    }
  return all;
}

std::vector<Touch> touches_landed(const TileProgram& program) {
  std::vector<Touch> all;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    if (program.buffers[static_cast<std::size_t>(i)].stages == 1) continue;
    all.push_back(touch_of(program, i));
    all.back().write = all.back().asynchronous = true;
  }
  return all;
}

}  // namespace

std::vector<Touch> touches_of(const TileProgram& program, const Statement& statement) {
  std::vector<Touch> all;
  if (const Prefetch* prefetch = std::get_if<Prefetch>(&statement))
    all = touches_ahead(program, *prefetch);
  if (std::holds_alternative<Wait>(statement)) all = touches_landed(program);
  for (Touch& touch : all) touch.statement = &statement;
  const auto position_in_place = [&](int pointer) {
    int first = pointer;
    for (const auto& [read, written] : program.in_place)
      if (read == pointer || written == pointer) first = std::min({first, read, written});
    return first;
  };
  for_each_access(statement, [&](const Access& access, Use use) {
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
    if (buffer.space == Space::fragment || buffer.space == Space::scalar) return;
    Touch touch;
    touch.statement = &statement;
    touch.access = &access;
    touch.write = use != Use::read;
    if (buffer.space == Space::global) {
      const int one = position_in_place(buffer.pointer);
      const bool shared =
          std::any_of(program.buffers.begin(), program.buffers.end(), [&](const Buffer& other) {
            return other.space == Space::global && other.written &&
                   position_in_place(other.pointer) == one;
          });
      if (!shared) return;
      touch.memory = -1 - one;
    } else {
      touch = touch_of(program, memory_of(program, access.buffer));
      touch.statement = &statement;
      touch.access = &access;
      touch.write = use != Use::read;
    }
    touch.owners = owners_of(program, statement, access, touch.write);
    all.push_back(std::move(touch));
  });
  return all;
}

namespace {

/// What a turn is counted as from the next one.
int turn_before(const Touch& touch, int turn) {
  return turn < 0 ? turn : (turn + touch.stages - 1) % touch.stages;
}

}  // namespace

void next_turn(std::vector<Touch>& touches, int var) {
  for (Touch& touch : touches)
    if (touch.stage_var == var) touch.turn = turn_before(touch, touch.turn);
}

void no_turn(std::vector<Touch>& touches, int var) {
  for (Touch& touch : touches)
    if (touch.stage_var == var) touch.turn = -1;
}

bool meet(const Touch& earlier, int turn, const Touch& later) {
  if (!earlier.write && !later.write) return false;
  // A copy and its landing; verify_stage looks after what comes between.
  if (earlier.asynchronous && later.asynchronous) return false;
  if (earlier.memory == later.memory && turn >= 0 && later.turn >= 0 && turn != later.turn)
    return false;
  if (earlier.memory != later.memory)
    return earlier.begin >= 0 && later.begin >= 0 && earlier.begin < later.end &&
           later.begin < earlier.end;
  return !(earlier.owners && later.owners && *earlier.owners == *later.owners);
}

namespace {

/// Within a statement points come in no order: one may not read what another writes. A tensor that
/// is written in place was proven to be read at the same points.
bool meet_within(const Touch& one, const Touch& other) {
  if (one.write == other.write || one.memory < 0 || other.memory < 0 || one.access == nullptr ||
      other.access == nullptr)
    return false;
  if (one.access->buffer == other.access->buffer && one.access->index == other.access->index)
    return false;
  return meet(one, other);
}

}  // namespace

void Meetings::add(std::vector<Seen>& since, const Seen& seen) {
  if (std::find(since.begin(), since.end(), seen) == since.end()) since.push_back(seen);
}

Meetings::Meetings(const TileProgram& program)
    : program_(program), events_(events_of(program.body, 0)) {}

std::vector<Meetings::Event> Meetings::events_of(const std::vector<Statement>& body, int depth) {
  std::vector<Event> events;
  bool waited = false;
  for (const Statement& statement : body) {
    Event event;
    if (std::holds_alternative<Barrier>(statement)) {
      event.barrier = barriers();
      dropped_.push_back(0);
      ends_wait_.push_back(waited ? 1 : 0);
      depths_.push_back(depth);
    } else if (const For* loop = std::get_if<For>(&statement)) {
      event.loop_var = loop->var;
      event.body = events_of(loop->body, depth + 1);
    } else {
      event.touches = touches_of(program_, statement);
    }
    waited = std::holds_alternative<Wait>(statement);
    events.push_back(std::move(event));
  }
  return events;
}

std::optional<Meetings::Pair> Meetings::walk(const std::vector<Event>& events,
                                             std::vector<Seen>& since) const {
  for (const Event& event : events) {
    if (event.barrier >= 0) {
      if (dropped_[static_cast<std::size_t>(event.barrier)] == 0) since.clear();
      continue;
    }
    if (!event.body.empty()) {
      // A loop may have no turn: what lies before it comes before what lies behind, too. The second
      // turn follows the first.
      const std::vector<Seen> before = since;
      if (auto found = walk(event.body, since)) return found;
      for (Seen& seen : since)
        if (seen.touch->stage_var == event.loop_var)
          seen.turn = turn_before(*seen.touch, seen.turn);
      if (auto found = walk(event.body, since)) return found;
      for (Seen& seen : since)
        if (seen.touch->stage_var == event.loop_var) seen.turn = -1;
      for (const Seen& seen : before) add(since, seen);
      continue;
    }
    for (const Touch& touch : event.touches) {
      for (const Seen& seen : since)
        if (meet(*seen.touch, seen.turn, touch)) return Pair{*seen.touch, touch};
      for (const Touch& other : event.touches)
        if (meet_within(other, touch)) return Pair{other, touch};
    }
    for (const Touch& touch : event.touches) add(since, {&touch, touch.turn});
  }
  return std::nullopt;
}

std::optional<Meetings::Pair> Meetings::first() const {
  std::vector<Seen> since;
  return walk(events_, since);
}

}  // namespace krait
