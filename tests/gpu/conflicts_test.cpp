// Wavefronts of shared memory that are told from a tile program, against those that the emulated
// GPU counts when it runs.
#include "codegen/passes/conflicts.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "codegen/cuda/emit_cuda.h"
#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "runtime/krait.h"
#include "tests/gpu/emulated.h"

namespace krait {
namespace {

/// A square of `size` to shared memory and out again, transposed.
TileProgram transposition(std::int64_t size) {
  TileProgram program;
  program.name = "turn_" + std::to_string(size);
  const int r = program.add_var({"r", VarKind::tile, Extent::constant(size)});
  const int c = program.add_var({"c", VarKind::tile, Extent::constant(size)});
  const auto tensor = [&](const std::string& name, int pointer) {
    Buffer buffer;
    buffer.name = name;
    buffer.space = Space::global;
    buffer.pointer = pointer;
    buffer.written = pointer == 1;
    buffer.dims = {{"r", Extent::constant(size), {size, -1}},
                   {"c", Extent::constant(size), {1, -1}}};
    return program.add_buffer(buffer);
  };
  const int x = tensor("x", 0), y = tensor("y", 1);
  const int tile =
      program.add_buffer(on_chip("tile", DType::f32, {Axis("r", size), Axis("c", size)}));
  const auto at = [&](int buffer, int row, int column) {
    return Access{buffer, {Index::variable(row), Index::variable(column)}, {}};
  };
  Copy in, out;
  in.domain = out.domain = {r, c};
  in.source = at(x, r, c);
  in.destination = at(tile, r, c);
  out.source = at(tile, c, r);
  out.destination = at(y, r, c);
  program.body = {in, out};
  return program;
}

TEST_CASE("rows of shared memory lie close where the part has no room for more") {
  const auto placed = [](std::int64_t most) {
    TileProgram program = transposition(32);
    place(program, cuda_target(90));
    sync(program);
    place_shared(program, most);
    return program.scratch_bytes;
  };
  const std::int64_t close = 32 * 32 * 4, apart = placed(1 << 20);
  CHECK(apart > close);
  CHECK(placed(apart) == apart);
  CHECK(placed(apart - 1) == close);
}

TEST_CASE("wavefronts of shared memory are those that an emulated GPU counts") {
  const std::shared_ptr<Device> gpu = testing::emulated_device();
  const CudaTarget target = cuda_target(90);
  for (const std::int64_t size : {8, 32, 40, 64}) {
    std::int64_t least = 0;
    for (const bool apart : {true, false}) {
      TileProgram program = transposition(size);
      for (const CudaPass& pass : cuda_passes()) {
        pass.run(program, target);
        if (pass.name != "smem" || apart) continue;
        // As it would be without moving rows apart.
        for (Buffer& buffer : program.buffers)
          if (buffer.space == Space::shared) buffer.dims[0].stride.constant = size;
      }
      program.name += apart ? "_apart" : "";
      INFO(to_text(program));
      GeneratedKernel kernel;
      kernel.source = emit_cuda(program, target);
      kernel.scratch_bytes = program.scratch_bytes;
      kernel.threads = 32 * program.warps;
      const std::shared_ptr<Executable> made = gpu->compiler().compile(kernel.source);
      const Tensor x(DType::f32, {size, size}, *gpu), y(DType::f32, {size, size}, *gpu);
      void* const buffers[] = {const_cast<void*>(x.data()), const_cast<void*>(y.data())};
      gpu->reserve_scratch(kernel.scratch_bytes);
      const testing::Launched launched;
      gpu->launch({made.get(), &kernel, 1, buffers, {}, {}});
      gpu->finish();
      const nlohmann::json shared = launched.by_kernel().at(kernel.source.entry)["shared"];
      std::int64_t wavefronts = 0, ideal = 0;
      for (const char* kind : {"load", "store", "async"}) {
        if (!shared.contains(kind)) continue;
        wavefronts += shared[kind]["wavefronts"].get<std::int64_t>();
        ideal += shared[kind]["ideal"].get<std::int64_t>();
      }
      const SharedTraffic told = shared_traffic(program);
      CHECK(told.wavefronts == wavefronts);
      CHECK(told.ideal == ideal);
      if (apart)
        least = told.wavefronts;
      else
        CHECK(told.wavefronts - least >= (size >= 32 ? told.ideal : 0));
    }
  }
}

}  // namespace
}  // namespace krait
