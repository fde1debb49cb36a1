#include "codegen/passes/cuda_passes.h"

#include <algorithm>

#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// What every pass behind place must keep.
void verify_placed(const TileProgram& program) {
  verify(program);
  verify_place(program);
}

void verify_synced(const TileProgram& program) {
  verify_placed(program);
  verify_sync(program);
  verify_stage(program);
}

void verify_shared(const TileProgram& program) {
  verify_synced(program);
  for (const Buffer& buffer : program.buffers) {
    if (buffer.space != Space::shared || buffer.alias_of >= 0) continue;
    KRAIT_ASSERT(buffer.scratch_offset >= 0 && buffer.scratch_offset % 64 == 0 &&
                     buffer.scratch_offset + bytes_of(buffer) <= program.scratch_bytes,
                 buffer.name, " stands at byte ", buffer.scratch_offset, " of ",
                 program.scratch_bytes);
  }
}

void require_room(const TileProgram& program, const CudaTarget& target) {
  if (program.scratch_bytes > target.shared_limit)
    throw UsageError("shared memory of kernel " + program.name,
                     std::to_string(program.scratch_bytes) + " bytes",
                     text("at most ", target.shared_limit, " on ", target.architecture,
                          "; a smaller chunk, tile or width takes less"));
}

/// What a kernel is given, which no pass may change: as each tensor stands in the program.
struct Given {
  int pointer;
  DType dtype;
  bool written;
  std::vector<Dim> dims;
};

std::vector<Given> given_of(const TileProgram& program) {
  std::vector<Given> given;
  for (const Buffer& buffer : program.buffers)
    if (buffer.space == Space::global)
      given.push_back({buffer.pointer, buffer.dtype, buffer.written, buffer.dims});
  return given;
}

void verify_given(const TileProgram& program, const std::vector<Given>& given) {
  for (const Given& now : given_of(program)) {
    const bool known = std::any_of(given.begin(), given.end(), [&](const Given& then) {
      return then.pointer == now.pointer && then.dtype == now.dtype &&
             then.written == now.written &&
             std::equal(then.dims.begin(), then.dims.end(), now.dims.begin(), now.dims.end(),
                        [](const Dim& a, const Dim& b) {
                          return a.extent == b.extent && a.stride == b.stride;
                        });
    });
    KRAIT_ASSERT(known, "tile program ", program.name, ": the tensor of pointer ", now.pointer,
                 " has become another");
  }
}

}  // namespace

std::vector<CudaPass> cuda_passes() {
  auto unguarded = [](const TileProgram& p, const CudaTarget&) { verify(p, false); };
  auto guarded = [](const TileProgram& p, const CudaTarget&) { verify(p); };
  auto placed = [](const TileProgram& p, const CudaTarget&) { verify_placed(p); };
  auto staged = [](const TileProgram& p, const CudaTarget&) {
    verify_placed(p);
    verify_stage(p);
  };
  auto synced = [](const TileProgram& p, const CudaTarget&) { verify_synced(p); };
  auto shared = [](const TileProgram& p, const CudaTarget&) { verify_shared(p); };
  auto spared = [](const TileProgram& p, const CudaTarget&) {
    verify_sync(p);
    verify_stage(p);
  };
  auto vectorized = [](const TileProgram& p, const CudaTarget&) { verify_vectorize(p); };
  return {
      {"simplify", [](TileProgram& p, const CudaTarget&) { simplify(p); }, unguarded},
      {"guard", [](TileProgram& p, const CudaTarget&) { list_guards(p); }, guarded},
      {"place", [](TileProgram& p, const CudaTarget& target) { place(p, target); }, placed},
      {"stage", [](TileProgram& p, const CudaTarget& target) { stage(p, target); }, staged},
      {"sync", [](TileProgram& p, const CudaTarget&) { sync(p); }, synced},
      {"smem",
       [](TileProgram& p, const CudaTarget& target) {
         place_shared(p, target.shared_limit);
         require_room(p, target);
       },
       shared},
      {"spare", [](TileProgram& p, const CudaTarget&) { spare_barriers(p); }, spared},
      {"vectorize", [](TileProgram& p, const CudaTarget&) { vectorize(p); }, vectorized},
  };
}

void run_passes(TileProgram& program, const CudaTarget& target, const std::vector<CudaPass>& passes,
                const std::function<void(const std::string&, const TileProgram&)>& after) {
  const std::vector<Given> given = given_of(program);
  for (const CudaPass& pass : passes) {
    pass.run(program, target);
    if (after) after(pass.name, program);
    verify_given(program, given);
    pass.verify(program, target);
  }
}

}  // namespace krait
