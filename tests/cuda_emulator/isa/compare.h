#pragma once

// Comparisons of lanes, as set and setp make them.

#include <string_view>

#include "tests/cuda_emulator/isa/lanewise.h"

namespace emulator {

// Ordered ones first; equ to geu are true as well where an operand is NaN.
enum class Relation : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

// Takes a comparison, whose names depend on the type that comes later: `unsigned_only` is set for
// lo, ls, hi and hs.
Relation take_relation(const Decoding& decoding, Modifiers& modifiers, bool* unsigned_only);

// Error where values of that type have no such comparison.
void check_relation(const Decoding& decoding, Relation relation, bool unsigned_only,
                    ptx::Type type);

// A bit for every lane in which value(a) RELATION value(b); value makes a number of a cell.
template <class Value, class C>
Mask compare_lanes(Relation relation, Mask lanes, const C* a, const C* b, Value value) {
  const auto each = [&](auto holds) {
    return mask_of(lanes, [&](int lane) { return holds(value(a[lane]), value(b[lane])); });
  };
  switch (relation) {
    case Relation::eq: return each([](auto x, auto y) { return x == y; });
    case Relation::ne: return each([](auto x, auto y) { return x < y || x > y; });
    case Relation::lt: return each([](auto x, auto y) { return x < y; });
    case Relation::le: return each([](auto x, auto y) { return x <= y; });
    case Relation::gt: return each([](auto x, auto y) { return x > y; });
    case Relation::ge: return each([](auto x, auto y) { return x >= y; });
    case Relation::equ: return each([](auto x, auto y) { return !(x < y || x > y); });
    case Relation::neu: return each([](auto x, auto y) { return !(x == y); });
    case Relation::ltu: return each([](auto x, auto y) { return !(x >= y); });
    case Relation::leu: return each([](auto x, auto y) { return !(x > y); });
    case Relation::gtu: return each([](auto x, auto y) { return !(x <= y); });
    case Relation::geu: return each([](auto x, auto y) { return !(x < y); });
    case Relation::num: return each([](auto x, auto y) { return x == x && y == y; });
    case Relation::nan: return each([](auto x, auto y) { return !(x == x && y == y); });
  }
  return 0;
}

// The same for lanes of a type, which f16x2 and bf16x2 are not.
Mask compare_lanes(Relation relation, ptx::Type type, bool flush, Mask lanes,
                   const Registers& registers, Arg a, Arg b);
// Of half 0 or 1 of f16x2 or bf16x2.
Mask compare_halves(Relation relation, ptx::Type type, int half, bool flush, Mask lanes,
                    const Registers& registers, Arg a, Arg b);

}  // namespace emulator
