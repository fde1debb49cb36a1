// Copy and Fill. A copy whose source and destination run along different variables goes through
// square blocks of registers.
#include <algorithm>

#include "codegen/llvm/kernel_emitter.h"

namespace krait {

void KernelEmitter::emit(const Copy& s) {
  Operand destination = operand(s.destination, s.domain), source = operand(s.source, s.domain);
  Nest points = nest(s.domain);
  merge(points, {&destination, &source}, checked_vars({&destination, &source}, nullptr));
  if (!s.keep && emit_transpose(s, destination, source, points)) return;
  const int bytes = std::max({4, size_in_bytes(source.dtype), size_in_bytes(destination.dtype)});
  const int width = target_.lanes(bytes);
  const int along = vector_variable(points, {&source}, {&destination}, width, 0);
  loops(points, outer_order(points, along, destination), [&] {
    vectors(points, along, width, 1, [&](const std::vector<Lanes>& lanes) {
      std::optional<Val> only;
      if (s.keep) only = mask(source, lanes[0], false);
      store(destination, lanes[0], load(source, lanes[0], s.fill), only);
    });
  });
}

void KernelEmitter::emit(const Fill& s) {
  Operand destination = operand(s.destination, s.domain);
  Nest points = nest(s.domain);
  merge(points, {&destination}, checked_vars({&destination}, nullptr));
  const std::string element = register_element(destination.dtype);
  const int width = target_.lanes(std::max(4, size_in_bytes(destination.dtype)));
  const int along = vector_variable(points, {}, {&destination}, width, 0);
  const Val value =
      element == "i32" ? ir::i32(static_cast<std::int64_t>(s.value)) : ir::real(element, s.value);
  loops(points, outer_order(points, along, destination), [&] {
    vectors(points, along, width, 1, [&](const std::vector<Lanes>& lanes) {
      store(destination, lanes[0], ir::splat_constant(value, lanes[0].count));
    });
  });
}

bool KernelEmitter::emit_transpose(const Copy& s, const Operand& destination, const Operand& source,
                                   const Nest& points) {
  const int bytes = std::max({4, size_in_bytes(source.dtype), size_in_bytes(destination.dtype)});
  const int width = target_.lanes(bytes);
  int across = -1, along = -1;  // where the source, where the destination is contiguous
  for (int var : points.vars) {
    if (points.extent(var) * 2 < width) continue;
    if (source.unit(var) && !destination.unit(var)) across = var;
    if (destination.unit(var) && !source.unit(var)) along = var;
  }
  if (across < 0 || along < 0 || source.stride(along).is(0)) return false;

  auto block = [&](const Lanes& columns, const Lanes& rows) {
    const std::string element = register_element(destination.dtype);
    std::vector<Val> block;
    const Val first = values_.at(along);
    for (int i = 0; i < width; ++i) {
      if (rows.valid > 0 && i >= rows.valid) {
        block.push_back(ir::zero(ir::vector_type(element, width)));
        continue;
      }
      values_[along] = b_.add(first, ir::i64(i));
      block.push_back(convert(load(source, columns, s.fill), element, width));
    }
    values_[along] = first;
    block = transpose(block);
    const Val left = values_.at(across);
    for (int i = 0; i < (columns.valid > 0 ? columns.valid : width); ++i) {
      values_[across] = b_.add(left, ir::i64(i));
      store(destination, rows, block[i]);
    }
    values_[across] = left;
  };
  std::vector<int> outer = outer_order(points, along, destination);
  std::erase(outer, across);
  loops(points, outer, [&] {
    vectors(points, along, width, 1, [&](const std::vector<Lanes>& rows) {
      vectors(points, across, width, 1,
              [&](const std::vector<Lanes>& columns) { block(columns[0], rows[0]); });
    });
  });
  return true;
}

std::vector<Val> KernelEmitter::transpose(std::vector<Val> rows) {
  // Interleaving row i with row i + n/2, over and over: after log2 n rounds lane j of row i has
  // become lane i of row j.
  const int n = static_cast<int>(rows.size());
  std::vector<int> low, high;
  for (int i = 0; i < n / 2; ++i) {
    low.insert(low.end(), {i, n + i});
    high.insert(high.end(), {n / 2 + i, n + n / 2 + i});
  }
  for (int round = 1; round < n; round *= 2) {
    std::vector<Val> next;
    for (int i = 0; i < n / 2; ++i) {
      next.push_back(b_.shuffle(rows[i], rows[i + n / 2], low));
      next.push_back(b_.shuffle(rows[i], rows[i + n / 2], high));
    }
    rows = std::move(next);
  }
  return rows;
}

}  // namespace krait
