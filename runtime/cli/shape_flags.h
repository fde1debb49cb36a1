// The flags with which a command takes a block and its shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsl/blocks/blocks.h"
#include "runtime/cli/commands.h"

namespace krait {

struct ShapeFlags {
  std::string block, spec_file, dtype = "f32";
  BlockSizes sizes;
  std::vector<std::string> axis_sizes;  // "AXIS=N"
  std::int64_t batch = 1, seqlen = 2048;
  bool states = false, documents = false;
};

void add_shape_flags(CLI::App& command, ShapeFlags& flags);

/// What the flags describe.
struct Problem {
  std::string block;
  std::optional<BlockSpec> spec;  // none for a block of the user's own
  BlockFunction function;
  DType dtype = DType::f32;
  Sizes sizes;                  // b and t
  std::int64_t chunk_wish = 0;  // of the spec, 0 where it names none

  Graph graph() const { return build_graph(function, dtype); }
};

/// Throws UsageError for flags that do not fit each other or the block, EnvironmentError where the
/// spec cannot be read.
Problem problem_of(const ShapeFlags& flags, const std::vector<CliBlock>& blocks);

}  // namespace krait
