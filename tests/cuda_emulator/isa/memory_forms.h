#pragma once

// Modifiers that loads, stores, atomics and fences share.

#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/memory.h"

namespace emulator {

// .cta, .cluster, .gpu or .sys; -1 where there is none.
inline int take_scope(Modifiers& modifiers) {
  return modifiers.take_one({"cta", "cluster", "gpu", "sys"});
}

inline Scope scope_that_follows(const Decoding& decoding, Modifiers& modifiers) {
  const int scope = take_scope(modifiers);
  if (scope < 0) decoding.fail("a scope must follow: .cta, .cluster, .gpu or .sys");
  return static_cast<Scope>(scope);
}

// .weak, .volatile, .relaxed.scope or that of `ordered` (.acquire, .release); weak where nothing is
// written. Volatile is at least relaxed.sys.
inline Order take_order(const Decoding& decoding, Modifiers& modifiers, std::string_view ordered,
                        Semantics semantics, bool* written = nullptr) {
  if (written) *written = true;
  if (modifiers.take("weak")) return {};
  if (modifiers.take("volatile")) return {Semantics::relaxed, Scope::sys};
  if (modifiers.take("relaxed"))
    return {Semantics::relaxed, scope_that_follows(decoding, modifiers)};
  if (modifiers.take(ordered)) return {semantics, scope_that_follows(decoding, modifiers)};
  if (modifiers.take("mmio")) {
    if (!modifiers.take("relaxed") || !modifiers.take("sys"))
      decoding.fail(".relaxed.sys must follow .mmio");
    return {Semantics::relaxed, Scope::sys};
  }
  if (written) *written = false;
  return {};
}

// A state space; generic where none is written. Those of other threads' blocks are their own: there
// are no clusters of more than one block.
ptx::Space take_space(Modifiers& modifiers);

// Eviction priorities, cache hint and prefetch size. True where a cache policy is an operand.
bool take_hints(Modifiers& modifiers, bool prefetch);

// Values in memory of an instruction with a vector: .v2, .v4, .v8, or 1.
inline unsigned take_vector(Modifiers& modifiers) {
  const int vector = modifiers.take_one({"v2", "v4", "v8"});
  return vector < 0 ? 1 : 2u << vector;
}

}  // namespace emulator
