// A tile program as LLVM IR.
#pragma once

#include "codegen/kernel_source.h"
#include "codegen/llvm/vector_target.h"
#include "codegen/tile/tile.h"

namespace krait {

/// The function `program.name`:
///   void entry(ptr buffers, ptr arguments, ptr scratch, i64 begin, i64 end)
/// runs the grid points begin .. end - 1, numbered over TileProgram::grid, slowest first. buffers:
/// an array of pointers, by Buffer::pointer; arguments: an array of 64-bit numbers, as in
/// TileProgram::arguments; scratch: 64-byte aligned, TileProgram::scratch_bytes bytes. Global
/// pointers need the alignment of their element only.
///
/// The program must have passed the host passes (guards listed, scratch offsets set) and every
/// symbol that an extent names must be among the arguments; InternalError otherwise. No operation
/// is contracted or reordered: sums run in the order of their variables, or in an order that the
/// program and the target alone fix.
KernelSource emit_llvm(const TileProgram& program, const VectorTarget& target);

}  // namespace krait
