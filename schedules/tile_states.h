// Tiles of a state: one of its axes in parts, so that a kernel has one part on chip at a time.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/graph.h"

namespace krait {

/// The axis along which states can be cut without more to add up: the longest one of constant size
/// that some scan's state has beside its log decay, and over which nothing sums that reads a state.
/// Empty where there is none.
std::string tiled_axis(const Graph& graph);

/// The largest divisor of `extent` that is at most `most`; both 1 and up.
std::int64_t tile_size(std::int64_t extent, std::int64_t most);

struct Tiles {
  Graph graph;
  std::string outer;  // counts the tiles; empty where there is one
};

/// The graph with `axis` as (tile, position in it), in tiles of tile_size(extent, most), wherever
/// values are computed elementwise along it or summed over it; inputs, outputs and what rearranges
/// the axis keep it whole. The graph itself where that is one tile, or it has no such axis.
Tiles in_tiles(const Graph& graph, const std::string& axis, std::int64_t most);

}  // namespace krait
