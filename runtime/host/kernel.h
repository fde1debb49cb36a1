// The calling convention of host kernels.
#pragma once

#include <cstdint>

namespace krait {

/// Runs grid points begin .. end-1; every grid point is independent of the others. What `buffers`
/// and `arguments` (sizes, strides) hold, in which order, and how many bytes of `scratch` (aligned
/// to 64 bytes, private to the call) are needed, the plan of the kernel says.
using HostKernel = void (*)(void* const* buffers, const std::int64_t* arguments, void* scratch,
                            std::int64_t begin, std::int64_t end);

}  // namespace krait
