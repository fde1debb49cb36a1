// Scans become matrix products over chunks.
#pragma once

#include <optional>
#include <string>

#include "dsl/graph.h"

namespace krait {

/// Why a graph cannot be chunked, or nothing where it can.
std::optional<std::string> why_not_chunkable(const Graph& graph);

/// The same function with every Scan, Cumsum and Shift along a scanned axis rewritten over chunks
/// of `chunk` positions (1 and up): the axis becomes (chunks, position), remainders are padded
/// algebraically (log decay 0, input 0), trajectories are contracted away and never stand in the
/// result. Chunk states remain as a Scan over chunks. Inputs, outputs and their names are
/// unchanged. Throws UsageError where why_not_chunkable gives a reason.
Graph chunk(const Graph& graph, std::int64_t chunk);

}  // namespace krait
