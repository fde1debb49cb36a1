#include "codegen/in_place.h"

#include <catch2/catch.hpp>

namespace krait {
namespace {

/// A kernel over b: reads the state, pointer 0, writes the next one, pointer 1.
struct StateKernel {
  TileProgram program;
  int b, loop, n;
  Access in, out, tile;

  StateKernel() {
    b = program.add_var({"b", VarKind::grid, Extent::symbolic("b")});
    loop = program.add_var({"c", VarKind::loop, Extent::symbolic("c")});
    n = program.add_var({"n", VarKind::tile, Extent::constant(8)});
    program.grid = {b};
    in = global("in", 0, false);
    out = global("out", 1, true);
    tile = {
        program.add_buffer(on_chip("tile", DType::f32, {Axis("n", 8)})), {Index::variable(n)}, {}};
    program.body = {load(), next(tile)};
  }
  Access global(const char* name, int pointer, bool written) {
    Buffer buffer;
    buffer.name = name;
    buffer.space = Space::global;
    buffer.pointer = pointer;
    buffer.written = written;
    buffer.dims = {{"b", Extent::symbolic("b"), Stride{0, 0}},
                   {"n", Extent::constant(8), Stride{1, -1}}};
    return {program.add_buffer(buffer), {Index::variable(b), Index::variable(n)}, {}};
  }
  Copy load() const { return {{n}, tile, in, 0, false}; }
  MapTile next(const Access& from) const {
    MapTile map;
    map.domain = {n};
    Scalar twice;
    twice.finish(twice.apply(ScalarOp::add, twice.operand(0), twice.operand(0)));
    map.results = {twice};
    map.operands = {from};
    map.destinations = {out};
    return map;
  }
  bool may() const { return may_share(program, 0, 1); }
};

TEST_CASE("a state may be updated in place where each element is read, then written") {
  StateKernel kernel;
  CHECK(kernel.may());
  kernel.program.body = {kernel.next(kernel.in)};
  CHECK(kernel.may());  // in one statement, each element of its own
}

TEST_CASE("a state may not be updated in place where it is read after it was written") {
  StateKernel kernel;
  kernel.program.body = {kernel.load(), kernel.next(kernel.tile), kernel.load()};
  CHECK(!kernel.may());
  kernel.program.body = {kernel.next(kernel.in), kernel.next(kernel.in)};
  CHECK(!kernel.may());
}

TEST_CASE("turns of a loop and grid points must not share elements") {
  StateKernel kernel;
  For loop;
  loop.var = kernel.loop;
  loop.body = {kernel.load(), kernel.next(kernel.tile)};
  kernel.program.body = {loop};
  CHECK(!kernel.may());
  StateKernel two;
  const int h = two.program.add_var({"h", VarKind::grid, Extent::constant(3)});
  two.program.grid.push_back(h);
  CHECK(!two.may());
}

TEST_CASE("an element may not become another one") {
  StateKernel kernel;
  kernel.in.index[1] = kernel.in.index[1] + Index::of(1);
  kernel.program.body = {kernel.load(), kernel.next(kernel.tile)};
  CHECK(!kernel.may());
}

}  // namespace
}  // namespace krait
