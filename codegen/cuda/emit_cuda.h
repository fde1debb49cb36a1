// CUDA C++ of a tile program that has been through the passes for GPUs.
#pragma once

#include "codegen/cuda/cuda_target.h"
#include "codegen/kernel_source.h"
#include "codegen/tile/tile.h"

namespace krait {

/// A kernel `extern "C"` named krait_ and the program's name, which takes the pointers in their
/// order and then the 64-bit arguments; one block of 32 * warps threads a grid point, counted along
/// x; scratch is dynamic shared memory. Needs no header. The same program gives the same text.
KernelSource emit_cuda(const TileProgram& program, const CudaTarget& target);

}  // namespace krait
