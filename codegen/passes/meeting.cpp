#include "codegen/passes/meeting.h"

#include <algorithm>
#include <map>

namespace krait {
namespace {

/// The variables that the dimensions of a statement's layout are of.
std::vector<int> layout_variables(const Statement& statement) {
  std::vector<int> vars = own_variables(statement);
  const auto drop = [&](const std::vector<int>& some) {
    for (int var : some) std::erase(vars, var);
  };
  if (const Mma* mma = std::get_if<Mma>(&statement)) drop(mma->sum);
  if (const ScanTile* scan = std::get_if<ScanTile>(&statement)) drop({scan->along});
  return vars;
}

/// Each bit and loop of the layout as an offset in the memory, and the offset that is common.
std::optional<std::vector<std::int64_t>> owners_of(const TileProgram& program,
                                                   const Statement& statement,
                                                   const Access& access) {
  const std::optional<Layout>* layout_if_any = layout_of(statement);
  if (layout_if_any == nullptr || !*layout_if_any) return std::nullopt;
  const Layout* const layout = &**layout_if_any;
  if (layout->has_replicas()) return std::nullopt;
  const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
  const std::vector<int> vars = layout_variables(statement);
  std::map<int, std::int64_t> strides;  // of the layout's variables
  std::vector<std::int64_t> key{memory_offset(program, access.buffer)};
  for (std::size_t d = 0; d < access.index.size(); ++d) {
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
  const auto moved = [&](int dim, std::int64_t by) {
    return dim < 0 ? 0 : strides[vars[static_cast<std::size_t>(dim)]] * by;
  };
  for (std::size_t d = 0; d < vars.size(); ++d)
    // Several threads on one element: no owner.
    if (layout->extents[d] > 1 && strides[vars[d]] == 0) return std::nullopt;
  for (const auto* bits : {&layout->lanes, &layout->warps})
    for (const Layout::Bit& bit : *bits) key.push_back(moved(bit.dim, bit.stride));
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
  const bool sums = std::holds_alternative<ReduceTile>(statement);
  const Mma* mma = std::get_if<Mma>(&statement);
  for_each_access(statement, [&](const Access& access, Use use) {
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(access.buffer)];
    if (buffer.space == Space::fragment || buffer.space == Space::scalar) return;
    Touch touch;
    touch.statement = &statement;
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
      touch.write = use != Use::read;
    }
    const bool operand = mma != nullptr && use == Use::read;
    if (!operand && !sums) touch.owners = owners_of(program, statement, access);
    all.push_back(std::move(touch));
  });
  return all;
}

void next_turn(std::vector<Touch>& touches, int var) {
  for (Touch& touch : touches)
    if (touch.stage_var == var && touch.turn >= 0)
      touch.turn = (touch.turn + touch.stages - 1) % touch.stages;
}

void no_turn(std::vector<Touch>& touches, int var) {
  for (Touch& touch : touches)
    if (touch.stage_var == var) touch.turn = -1;
}

bool meet(const Touch& earlier, const Touch& later) {
  if (!earlier.write && !later.write) return false;
  // A copy and its landing; verify_stage looks after what comes between.
  if (earlier.asynchronous && later.asynchronous) return false;
  if (earlier.memory == later.memory && earlier.turn >= 0 && later.turn >= 0 &&
      earlier.turn != later.turn)
    return false;
  if (earlier.memory != later.memory)
    return earlier.begin >= 0 && later.begin >= 0 && earlier.begin < later.end &&
           later.begin < earlier.end;
  return !(earlier.owners && later.owners && *earlier.owners == *later.owners);
}

}  // namespace krait
