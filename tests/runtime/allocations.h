// Counts what this program allocates by way of C++.
#pragma once

#include <cstdint>
#include <functional>

namespace krait {

/// Calls of operator new, in any thread, while `body` runs.
std::int64_t allocations_of(const std::function<void()>& body);
/// Calls so far that asked for an alignment: what scratch and tensors are made of.
std::int64_t aligned_allocations();

}  // namespace krait
