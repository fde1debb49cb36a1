// States that stand in memory at intervals only, and are made again between.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/groups.h"

namespace krait {

/// States that a loop over chunks keeps for kernels whose grid has the chunks (what crosses
/// directions: a gradient kernel reads states of both) are the largest tensors of a pass. Of those
/// that every reader can make again from one `positions` or fewer before, only that many apart are
/// kept: each reader runs the scan on from there, with the same operands in the same order, so that
/// every bit is the same. What a reader repeats for it are the products behind the state's input.
///
/// A state is kept for every chunk where a reader has its chunks in a loop, where the input depends
/// on another running value that is not in memory, or where it is not alone in its object.
void thin_states(const Analysis& analysis, Placement& placement, const std::vector<Chain>& chains,
                 std::int64_t positions, std::vector<Group>& groups);

}  // namespace krait
