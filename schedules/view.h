// Views: how values that are only rearrangements of one another lie in one piece of memory.
#pragma once

#include <optional>

#include "dsl/graph.h"
#include "schedules/plan.h"

namespace krait {

/// Whether the node only rearranges positions: Split, Merge, Slice, Rename, Concat, Shift.
bool is_view(const Op& op);

/// The view of a value whose axes are the dims of object number `object`, one for one.
View whole(const MemoryObject& memory, int object);

/// How the result of a view node lies in memory, given how each operand does (several views
/// complete each other). An operand that is zero everywhere may be given as no view at all. Nothing
/// where the result is no affine view (a Merge of dims that are not adjacent; a padded Split of a
/// part).
std::optional<std::vector<View>> forward_view(const Graph& graph, int node,
                                              const std::vector<std::vector<View>>& operands);

/// Given how the result of the view node lies in memory, how its operand number `operand` lies
/// there for writing. Nothing for Shift and Slice, and where dims would have to be torn.
std::optional<View> backward_view(const Graph& graph, int node, int operand, const View& result);

}  // namespace krait
