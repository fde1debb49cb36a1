#pragma once

// Predicates with what of them is defined, combined as .and, .or and .xor do.

#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/lanes.h"

namespace emulator {

enum class Combination : uint8_t { none, conjunction, disjunction, exclusive };

// Defined where both are, or where one of them decides.
inline Predicate combine(Combination how, Predicate a, Predicate b) {
  switch (how) {
    case Combination::conjunction:
      return {a.value & b.value,
              (a.defined & b.defined) | (a.defined & ~a.value) | (b.defined & ~b.value)};
    case Combination::disjunction:
      return {a.value | b.value,
              (a.defined & b.defined) | (a.defined & a.value) | (b.defined & b.value)};
    case Combination::exclusive: return {a.value ^ b.value, a.defined & b.defined};
    case Combination::none: break;
  }
  return a;
}

inline Predicate read_predicate(const Registers& registers, Arg arg) {
  return {registers.predicate(arg), registers.predicate_defined(arg)};
}

inline Combination take_combination(Modifiers& modifiers) {
  return static_cast<Combination>(modifiers.take_one({"and", "or", "xor"}) + 1);
}

}  // namespace emulator
