// Wide accesses: where they are chosen, and that a wrong one is found on the tile program.
#include <catch2/catch.hpp>
#include <functional>

#include "codegen/passes/cuda_passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"

namespace krait {
namespace {

/// Rows of x, `apart` elements apart (0: as an argument says), to a tile and on to y.
struct Rows {
  TileProgram program;
  int i = 0, r = 0, tile = 0;

  explicit Rows(std::int64_t columns, std::int64_t apart = 0) {
    program.name = "rows";
    r = program.add_var({"r", VarKind::tile, Extent::constant(64)});
    i = program.add_var({"i", VarKind::tile, Extent::constant(columns)});
    const auto tensor = [&](const std::string& name, int pointer) {
      Buffer buffer;
      buffer.name = name;
      buffer.space = Space::global;
      buffer.pointer = pointer;
      buffer.written = pointer == 1;
      Stride rows{apart, -1};
      if (apart == 0)
        rows.argument = program.argument({TileProgram::Argument::Kind::stride, "", pointer, 0});
      buffer.dims = {{"r", Extent::constant(64), rows}, {"i", Extent::constant(columns), {1, -1}}};
      return program.add_buffer(buffer);
    };
    const int x = tensor("x", 0), y = tensor("y", 1);
    tile = program.add_buffer(on_chip("tile", DType::f32, {Axis("r", 64), Axis("i", columns)}));
    const auto at = [&](int buffer) {
      return Access{buffer, {Index::variable(r), Index::variable(i)}, {}};
    };
    Copy in, out;
    in.domain = out.domain = {r, i};
    in.source = at(x);
    in.destination = out.source = at(tile);
    out.destination = at(y);
    program.body = {in, out};
  }

  void run() {
    CudaTarget target;
    target.fragment_registers = 0;  // else the tile stands in registers
    place(program, target);
    sync(program);
    place_shared(program);
    vectorize(program);
    verify_vectorize(program);
  }
  Copy& in() { return std::get<Copy>(program.body.front()); }
};

TEST_CASE("four neighbours move at once where they are aligned") {
  Rows rows(64);
  rows.run();
  CHECK(rows.in().source.wide.elements == 4);
  CHECK(rows.in().source.wide.var == rows.i);
  CHECK(rows.in().source.wide.address_tested);
  CHECK(rows.in().source.wide.strides_tested == std::vector<int>{0});
  CHECK(rows.in().destination.wide.elements == 4);
  CHECK_FALSE(rows.in().destination.wide.address_tested);
  CHECK(to_text(rows.program).find("by 4 i if aligned and argument 0") != std::string::npos);
}

TEST_CASE("elements move one by one where a row may start anywhere") {
  Rows odd(63);
  odd.run();
  CHECK(odd.in().source.wide.elements == 1);
  CHECK(odd.in().destination.wide.elements == 1);
  // Rows of 64 elements that lie 65 apart in memory, but not on chip.
  Rows apart(64, 65);
  apart.run();
  CHECK(apart.in().source.wide.elements == 1);
  CHECK(apart.in().destination.wide.elements == 4);
  Rows two(66, 66);
  two.run();
  CHECK(two.in().source.wide.elements == 2);
}

TEST_CASE("a wide access that nothing proves is found") {
  Rows rows(64);
  rows.run();
  const auto broken = [&](const std::function<void(Rows&)>& change, const char* why) {
    Rows copy = rows;
    change(copy);
    CHECK_THROWS_WITH(verify_vectorize(copy.program), Catch::Contains(why));
  };
  broken([](Rows& p) { p.in().source.wide.address_tested = false; }, "first element is aligned");
  broken([](Rows& p) { p.in().source.wide.strides_tested.clear(); }, "a stride that is not tested");
  broken([](Rows& p) { p.program.buffers[p.tile].scratch_offset = 8; }, "first element is aligned");
  broken([](Rows& p) { p.program.buffers[p.tile].dims[0].stride.constant = 66; },
         "a point is not aligned");
  broken([](Rows& p) { p.program.buffers[p.tile].dims[1].stride.constant = 4; },
         "neighbours lie apart");
  broken([](Rows& p) { p.in().destination.wide.var = p.r; }, "a thread holds no such neighbours");
  broken([](Rows& p) { p.in().destination.wide.elements = 8; }, "no such width");
  broken(
      [](Rows& p) {
        p.in().source.guarded = {1};
        p.program.buffers[p.in().source.buffer].dims[1].extent = Extent::constant(62);
      },
      "a guard may part its neighbours");
  broken([](Rows& p) { p.in().destination.index[1].constant = 1; }, "first element is aligned");
  broken([](Rows& p) { p.program.buffers[p.tile].dtype = DType::i32; }, "not of f32");
}

}  // namespace
}  // namespace krait
