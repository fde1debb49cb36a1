// What a statement reads and writes: one visitor, so that no pass lists the fields of statements.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "codegen/tile/tile.h"

namespace krait {

enum class Use : std::uint8_t {
  read,
  write,
  update,  // reads the old value and writes
};

/// Calls f(access, use) for every access of one statement that is wanted (buffer >= 0), reads
/// first. Bodies of loops are not entered. `Any` is Statement or const Statement.
template <typename Any, typename Function>
void for_each_access(Any& statement, const Function& f) {
  auto optional = [&](auto& access, Use use) {
    if (access.buffer >= 0) f(access, use);
  };
  std::visit(
      [&](auto& s) {
        using S = std::remove_cvref_t<decltype(s)>;
        if constexpr (std::is_same_v<S, Copy>) {
          f(s.source, Use::read);
          f(s.destination, s.keep ? Use::update : Use::write);
        } else if constexpr (std::is_same_v<S, Fill>) {
          f(s.destination, Use::write);
        } else if constexpr (std::is_same_v<S, Mma>) {
          f(s.left, Use::read);
          f(s.right, Use::read);
          f(s.destination, s.accumulate ? Use::update : Use::write);
        } else if constexpr (std::is_same_v<S, MapTile>) {
          for (auto& access : s.operands) f(access, Use::read);
          for (auto& access : s.destinations) f(access, Use::write);
        } else if constexpr (std::is_same_v<S, ReduceTile>) {
          for (auto& access : s.operands) f(access, Use::read);
          for (auto& access : s.destinations) f(access, s.accumulate ? Use::update : Use::write);
        } else if constexpr (std::is_same_v<S, ScanTile>) {
          f(s.source, Use::read);
          optional(s.initial, Use::read);
          optional(s.reset, Use::read);
          optional(s.destination, Use::write);
          optional(s.low, Use::write);
          optional(s.last, Use::write);
        } else {
          static_assert(std::is_same_v<S, For> || std::is_same_v<S, Prefetch> ||
                        std::is_same_v<S, Commit> || std::is_same_v<S, Wait> ||
                        std::is_same_v<S, Barrier>);
        }
      },
      statement);
}

/// Calls f(index) for every index of one statement: accesses and positions.
template <typename Any, typename Function>
void for_each_index(Any& statement, const Function& f) {
  for_each_access(statement, [&](auto& access, Use) {
    for (auto& index : access.index) f(index);
  });
  std::visit(
      [&](auto& s) {
        if constexpr (requires { s.positions; })
          for (auto& position : s.positions) f(position.second);
      },
      statement);
}

/// Which thread does what of a statement; null for one that has no points.
template <typename Any>
auto* layout_of(Any& statement) {
  using Found =
      std::conditional_t<std::is_const_v<Any>, const std::optional<Layout>, std::optional<Layout>>;
  return std::visit(
      [](auto& s) -> Found* {
        if constexpr (requires { s.layout; })
          return &s.layout;
        else
          return nullptr;
      },
      statement);
}

/// Variables that the statement itself brings: domain, reduced, along, the four lists of an Mma.
std::vector<int> own_variables(const Statement& statement);

/// The variables that the dimensions of its layout are of: without those that a thread walks along.
std::vector<int> layout_variables(const Statement& statement);

bool one_of(int var, const std::vector<int>& variables);

/// The same in two parts: those of the statement's layout, and those along which each of its points
/// is a sum.
struct Points {
  std::vector<int> vars, summed;
  std::vector<int> all() const;
};
Points points_of(const Statement& statement);

/// The buffer whose memory `buffer` lives in: itself where it is no alias.
int memory_of(const TileProgram& program, int buffer);
/// Elements from the start of the memory to the buffer's first.
std::int64_t memory_offset(const TileProgram& program, int buffer);
/// Bytes from one slot of a staged buffer to the next: a multiple of 16.
std::int64_t slot_bytes(const Buffer& buffer);
/// Bytes that a buffer on chip spans by its extents and strides, all its slots.
std::int64_t bytes_of(const Buffer& buffer);

}  // namespace krait
