// Barriers: where threads meet in memory, and nowhere else; a missing one is found.
#include "codegen/passes/cuda_passes.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// x[i] to a tile in shared memory, and from there to y, read in the same order or from its end.
TileProgram through_shared(bool reversed) {
  TileProgram program;
  program.name = "through";
  const int i = program.add_var({"i", VarKind::tile, Extent::constant(64)});
  const auto tensor = [&](const std::string& name, int pointer, bool written) {
    Buffer buffer;
    buffer.name = name;
    buffer.space = Space::global;
    buffer.dims = {{"i", Extent::constant(64), {1, -1}}};
    buffer.pointer = pointer;
    buffer.written = written;
    return program.add_buffer(buffer);
  };
  const int x = tensor("x", 0, false), y = tensor("y", 1, true);
  const int tile = program.add_buffer(on_chip("tile", DType::f32, {Axis("i", 64)}));
  const auto at = [&](int buffer, bool backwards) {
    return Access{buffer, {backwards ? Index{63, {{i, -1}}} : Index::variable(i)}, {}};
  };
  Copy in, out;
  in.domain = out.domain = {i};
  in.source = at(x, false);
  in.destination = at(tile, false);
  out.source = at(tile, reversed);
  out.destination = at(y, false);
  program.body = {in, out};
  CudaTarget target;
  target.fragment_registers = 0;
  place(program, target);
  return program;
}

std::ptrdiff_t barriers(const TileProgram& program) {
  return std::count_if(program.body.begin(), program.body.end(), [](const Statement& statement) {
    return std::holds_alternative<Barrier>(statement);
  });
}

TEST_CASE("a barrier stands where other threads read what was written") {
  TileProgram program = through_shared(true);
  CHECK_THROWS_AS(verify_sync(program), InternalError);
  sync(program);
  CHECK(barriers(program) == 1);
  CHECK_NOTHROW(verify_sync(program));
  std::erase_if(program.body, [](const Statement& statement) {
    return std::holds_alternative<Barrier>(statement);
  });
  CHECK_THROWS_WITH(verify_sync(program), Catch::Contains("no barrier between"));
}

TEST_CASE("threads that read what they wrote themselves need none") {
  TileProgram program = through_shared(false);
  sync(program);
  CHECK(barriers(program) == 0);
  CHECK_NOTHROW(verify_sync(program));
}

TEST_CASE("buffers share bytes only across a barrier") {
  TileProgram program = through_shared(true);
  // A second tile, written by all threads before the barrier: its bytes are its own.
  const int other = program.add_buffer(on_chip("other", DType::f32, {Axis("i", 64)}));
  Copy copy = std::get<Copy>(program.body[0]);
  copy.destination.buffer = other;
  program.body.insert(program.body.begin(), copy);
  Copy back = std::get<Copy>(program.body[2]);
  back.source.buffer = other;
  program.body.push_back(back);
  sync(program);
  place_shared(program);
  CHECK_NOTHROW(verify_sync(program));
  CHECK(program.scratch_bytes == 2 * 64 * 4);
  for (Buffer& buffer : program.buffers)
    if (buffer.space == Space::shared) buffer.scratch_offset = 0;
  CHECK_THROWS_AS(verify_sync(program), InternalError);
}

TEST_CASE("points of one statement come in no order") {
  TileProgram program = through_shared(false);
  // In place it may be, but for what another point writes.
  Copy within = std::get<Copy>(program.body[0]);
  within.source = within.destination;
  program.body.insert(program.body.begin() + 1, within);
  CHECK_NOTHROW(verify_sync(program));
  std::get<Copy>(program.body[1]).source.index[0] = Index{63, {{0, -1}}};
  CHECK_THROWS_WITH(verify_sync(program), Catch::Contains("no barrier between"));
}

TEST_CASE("barriers that part nothing go") {
  TileProgram program = through_shared(true);
  sync(program);
  program.body.insert(program.body.begin(), Barrier{});
  program.body.push_back(Barrier{});
  For loop;
  loop.var = program.add_var({"turn", VarKind::loop, Extent::constant(3)});
  loop.body = std::move(program.body);
  program.body = {loop};
  CHECK_NOTHROW(verify_sync(program));
  spare_barriers(program);
  // One before the tile is read, one before it is written again.
  program.body = std::get<For>(program.body[0]).body;
  CHECK(barriers(program) == 2);
}

TEST_CASE("fragments are dealt out as they lie") {
  TileProgram program = through_shared(false);
  CHECK_NOTHROW(verify_place(program));
  Buffer& tile = program.buffers[2];
  tile.space = Space::fragment;
  tile.layout = *layout_of(program.body[0]);
  CHECK_NOTHROW(verify_place(program));
  const auto fails = [&](const std::string& message, const std::function<void(Layout&)>& change) {
    TileProgram wrong = program;
    change(**layout_of(wrong.body[1]));
    INFO(message);
    CHECK_THROWS_WITH(verify_place(wrong), Catch::Contains(message));
  };
  fails("dealt out otherwise", [](Layout& layout) { std::swap(layout.lanes[0], layout.lanes[1]); });
  fails("without a thread, or with two", [](Layout& layout) { layout.lanes[0] = {}; });
  fails("other threads than the block has", [](Layout& layout) { layout.warps.push_back({}); });
  fails("other extents", [](Layout& layout) { layout.extents[0] = 32; });
  std::get<Copy>(program.body[1]).source.index[0] = Index{63, {{0, -1}}};
  CHECK_THROWS_WITH(verify_place(program), Catch::Contains("not walked from end to end"));
}

TEST_CASE("passes leave what a kernel is given as it is") {
  TileProgram program = through_shared(false);
  const std::vector<CudaPass> shifts{
      {"shift", [](TileProgram& p, const CudaTarget&) { ++p.buffers[0].dims[0].extent.offset; },
       [](const TileProgram&, const CudaTarget&) {}}};
  CHECK_THROWS_WITH(run_passes(program, CudaTarget{}, shifts),
                    Catch::Contains("has become another"));
}

}  // namespace
}  // namespace krait
