// The passes between a tile program and the CUDA emitter, as a value like those of the host.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/cuda_target.h"
#include "codegen/tile/tile.h"

namespace krait {

struct CudaPass {
  std::string name;
  std::function<void(TileProgram&, const CudaTarget&)> run;
  std::function<void(const TileProgram&, const CudaTarget&)> verify;  // throws InternalError
};

/// simplify, guard, place, stage, sync, smem, spare, vectorize: in this order.
std::vector<CudaPass> cuda_passes();

/// Runs them all, verifying after each; `after` (if any) sees the program after every pass.
void run_passes(TileProgram& program, const CudaTarget& target, const std::vector<CudaPass>& passes,
                const std::function<void(const std::string&, const TileProgram&)>& after = {});

// The passes themselves; their files say what each does and does not.
void place(TileProgram& program, const CudaTarget& target);
/// Accesses to views become accesses to what they show; place begins with it.
void see_through_views(TileProgram& program);
/// Sums that would leave warps idle become partial sums and their sum; place begins with it too.
void share_sums(TileProgram& program);
void stage(TileProgram& program, const CudaTarget& target);
/// Buffers in shared memory that stage can load a turn ahead, by the loops that load them.
std::vector<std::vector<int>> loads_of_loops(const TileProgram& program);
void sync(TileProgram& program);
/// Buffers that share memory and strides, and how many bytes further apart their rows are to lie.
using RowsApart = std::vector<std::pair<std::vector<int>, std::int64_t>>;
/// As counted conflicts ask; whether loads run ahead makes no difference to them.
RowsApart rows_apart(const TileProgram& program);
/// `most`: bytes that there are; rows are not moved apart where they would take more.
inline constexpr std::int64_t any_bytes = std::numeric_limits<std::int64_t>::max();
void place_shared(TileProgram& program, const RowsApart& apart, std::int64_t most = any_bytes);
void place_shared(TileProgram& program, std::int64_t most = any_bytes);
void spare_barriers(TileProgram& program);
void vectorize(TileProgram& program);

/// What the verifiers look for. Points without a thread or with two, layouts of another block than
/// the program's, fragments that a statement deals out otherwise than they lie. Throws
/// InternalError with the statement.
void verify_place(const TileProgram& program);
/// Threads that meet in shared memory, or in global memory that the kernel writes, without a
/// barrier between. Throws InternalError that names both statements.
void verify_sync(const TileProgram& program);
/// What asynchronous copies do at any turn of any loop: a slot that is read while its copy may be
/// under way (no wait, or one that is early), before other threads' copies are sure to be there (no
/// barrier), or that nothing was copied to; one that is overwritten while it may still be read;
/// copies that no group, no wait, or no loop is for; a commit of nothing.
void verify_stage(const TileProgram& program);
/// Accesses of several elements at once that some thread would begin where they are not aligned, or
/// whose elements lie apart, are parted by a guard, or rest on an address that is not tested.
void verify_vectorize(const TileProgram& program);

}  // namespace krait
