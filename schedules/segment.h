// Segments: the chunk axis in parts that run in parallel.
#pragma once

#include <cstdint>

#include "dsl/graph.h"

namespace krait {

/// What "one chunk a segment" comes to: the number of parts is compiled in, that of chunks is not.
/// With fewer chunks than parts some parts are empty, with more a part holds several chunks.
inline constexpr std::int64_t most_segments = 64;

/// The same function with every Scan and Cumsum along an axis of dynamic size run in `segments`
/// parts (0: most_segments; 1: the graph as it is):
///
///   a first pass gives what each part leaves when it starts from zero, the sum of its log decays
///   and whether it has a reset;
///   a join, a Scan or Cumsum over the parts, gives what enters each part, and what is left last;
///   a second pass gives the values, each part from what enters it.
Graph in_segments(const Graph& graph, std::int64_t segments);

}  // namespace krait
