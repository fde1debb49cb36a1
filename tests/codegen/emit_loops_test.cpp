#include <catch2/catch.hpp>

#include "codegen/passes/passes.h"
#include "dsl/error.h"
#include "tests/codegen/harness.h"

using namespace krait;
using namespace krait::test;

namespace {

/// One tensor (b, t, c) read in tiles of `tile` positions, scanned along t tile by tile in a loop,
/// with sizes and the outer stride known only when it runs. `reverse` runs from the end.
Build tiled_scan(std::int64_t tile, std::int64_t channels, bool reverse) {
  Build build("tiled");
  auto& p = build.program;
  const Extent t = Extent::symbolic("t"), batch = Extent::symbolic("b");
  const int t_argument = p.argument({TileProgram::Argument::Kind::size, "t", -1, -1});
  p.argument({TileProgram::Argument::Kind::size, "b", -1, -1});
  (void)t_argument;
  const int b = build.var("b", batch, VarKind::grid);
  p.grid = {b};
  auto tensor = [&](const char* name, int pointer, bool written) {
    Buffer buffer;
    buffer.name = name;
    buffer.space = Space::global;
    buffer.pointer = pointer;
    buffer.written = written;
    const int stride = p.argument({TileProgram::Argument::Kind::stride, "", pointer, 0});
    buffer.dims = {{"b", batch, {0, stride}},
                   {"t", t, {channels, -1}},
                   {"c", Extent::constant(channels), {1, -1}}};
    return p.add_buffer(buffer);
  };
  const int x = tensor("x", 0, false), y = tensor("y", 1, true);
  const int state = build.chip("state", DType::f32, {channels});
  const int in = build.chip("in", DType::f32, {tile, channels}),
            out = build.chip("out", DType::f32, {tile, channels});
  Fill fill;
  fill.domain = {build.var("c", channels)};
  fill.destination = build.at(state, fill.domain);
  p.body.push_back(fill);

  For loop;
  loop.var = build.var("chunk", t.ceil_div(tile), VarKind::loop);
  loop.reverse = reverse;
  const int q = build.var("q", tile), c = build.var("c", channels);
  const Index position = Index::variable(loop.var, tile) + Index::variable(q);
  Copy load;
  load.domain = {q, c};
  load.source = build.indexed(x, {Index::variable(b), position, Index::variable(c)});
  load.destination = build.at(in, {q, c});
  loop.body.push_back(load);
  ScanTile scan;
  scan.domain = {build.var("c", channels)};
  scan.along = build.var("q", tile);
  scan.reverse = reverse;
  scan.source = build.at(in, {scan.along, scan.domain[0]});
  scan.destination = build.at(out, {scan.along, scan.domain[0]});
  scan.initial = scan.last = build.at(state, scan.domain);
  loop.body.push_back(scan);
  Copy save;
  const int q2 = build.var("q", tile), c2 = build.var("c", channels);
  save.domain = {q2, c2};
  save.source = build.at(out, {q2, c2});
  save.destination =
      build.indexed(y, {Index::variable(b), Index::variable(loop.var, tile) + Index::variable(q2),
                        Index::variable(c2)});
  loop.body.push_back(save);
  p.body.push_back(loop);
  return build;
}

World world_of(std::int64_t b, std::int64_t t, std::int64_t channels) {
  World world;
  world.sizes = {{"b", b}, {"t", t}};
  std::mt19937 random(7);
  for (int pointer : {0, 1}) {
    const std::int64_t stride = t * channels + 5 * pointer;
    world.strides[{pointer, 0}] = stride;
    std::vector<double> values((b - 1) * stride + t * channels);
    for (double& value : values)
      value = rounded(std::uniform_real_distribution<double>(-1, 1)(random), DType::f32);
    world.pointers.push_back(values);
  }
  return world;
}

/// The interpreter sees the guards that the passes list.
Build guarded(Build build) {
  list_guards(build.program);
  return build;
}

}  // namespace

TEST_CASE("loops over tiles carry states and guard the last tile", "[codegen][loop]") {
  for (bool reverse : {false, true})
    for (std::int64_t channels : {1, 5, 20, 64}) {
      const Build build = guarded(tiled_scan(16, channels, reverse));
      for (std::int64_t t : {1, 15, 16, 17, 53}) compare(build, world_of(3, t, channels), 1e-5);
    }
}

TEST_CASE("a blocked loop covers its block and no more", "[codegen][loop]") {
  for (bool reverse : {false, true}) {
    for (std::int64_t blocks : {1, 3, 4}) {
      Build build("blocked");
      auto& p = build.program;
      p.argument({TileProgram::Argument::Kind::size, "c", -1, -1});
      const Extent c = Extent::symbolic("c");
      const int block = build.var("segment", blocks, VarKind::grid);
      p.grid = {block};
      For loop;
      loop.var = build.var("chunk", c, VarKind::loop);
      loop.block_var = block, loop.blocks = blocks, loop.reverse = reverse;
      const int seen = build.chip("seen", DType::f32, {1});
      Fill zero;
      zero.destination = build.indexed(seen, {Index::of(0)});
      p.body.push_back(zero);
      MapTile count;
      count.operands = {zero.destination};
      count.destinations = {zero.destination};
      count.positions = {{"c", Index::variable(loop.var)}};
      Scalar twice;
      twice.finish(twice.apply(ScalarOp::add,
                               twice.apply(ScalarOp::mul, twice.constant(2), twice.operand(0)),
                               twice.index("c")));
      count.results = {twice};
      loop.body.push_back(count);
      Buffer out;
      out.name = "out", out.space = Space::global, out.pointer = 0, out.written = true;
      out.dims = {{"c", c, {1, -1}}};
      Copy save;
      save.source = zero.destination;
      save.destination = build.indexed(p.add_buffer(out), {Index::variable(loop.var)});
      loop.body.push_back(save);
      p.body.push_back(loop);
      for (std::int64_t size : {1, 2, 5, 7, 8}) {
        World world;
        world.sizes = {{"c", size}};
        world.pointers = {std::vector<double>(size, -1)};
        compare(guarded(build), world, 0);
      }
    }
  }
}

TEST_CASE("a loop up to a position goes through the part of its run before it", "[codegen][loop]") {
  // out[c] is a number whose digits in base 16 are 1 + the positions that the loop went through, in
  // order; run and rest of c are added as fractions.
  for (bool reverse : {false, true})
    for (std::int64_t run : {1, 3, 4}) {
      Build build("runs");
      auto& p = build.program;
      p.argument({TileProgram::Argument::Kind::size, "c", -1, -1});
      const Extent size = Extent::symbolic("c");
      const int c = build.var("c", size, VarKind::grid);
      p.grid = {c};
      const int number =
          p.add_var({"number", VarKind::digit, size.ceil_div(run), c, run, false, reverse});
      const int rest =
          p.add_var({"rest", VarKind::digit, Extent::constant(run), c, run, true, reverse});
      For loop;
      loop.var = build.var("before", size, VarKind::loop);
      loop.until = c, loop.run = run, loop.reverse = reverse;
      const int seen = build.chip("seen", DType::f64, {1});
      MapTile start;
      start.compute = DType::f64;
      start.destinations = {build.indexed(seen, {Index::of(0)})};
      start.positions = {{"number", Index::variable(number)}, {"rest", Index::variable(rest)}};
      Scalar digits;
      digits.finish(digits.apply(
          ScalarOp::add, digits.apply(ScalarOp::mul, digits.constant(0.125), digits.index("rest")),
          digits.apply(ScalarOp::mul, digits.constant(1.0 / 128), digits.index("number"))));
      start.results = {digits};
      p.body.push_back(start);
      MapTile count;
      count.compute = DType::f64;
      count.operands = count.destinations = start.destinations;
      count.positions = {{"c", Index::variable(loop.var)}};
      Scalar longer;
      longer.finish(longer.apply(
          ScalarOp::add, longer.apply(ScalarOp::mul, longer.constant(16), longer.operand(0)),
          longer.apply(ScalarOp::add, longer.constant(1), longer.index("c"))));
      count.results = {longer};
      loop.body.push_back(count);
      p.body.push_back(loop);
      Buffer out;
      out.name = "out", out.dtype = DType::f64, out.space = Space::global, out.pointer = 0;
      out.written = true;
      out.dims = {{"c", size, {1, -1}}};
      Copy save;
      save.source = build.indexed(seen, {Index::of(0)});
      save.destination = build.indexed(p.add_buffer(out), {Index::variable(c)});
      p.body.push_back(save);
      for (std::int64_t positions : {1, 3, 4, 7, 9}) {
        World world;
        world.sizes = {{"c", positions}};
        world.pointers = {std::vector<double>(positions, -1)};
        compare(guarded(build), world, 0);
        World ran = world;
        interpret(guarded(build).program, ran);
        for (std::int64_t at = 0; at < positions; ++at) {
          const std::int64_t turn = reverse ? positions - 1 - at : at;
          double expected =
              static_cast<double>(turn % run) / 8 + static_cast<double>(turn / run) / 128;
          for (std::int64_t i = turn / run * run; i < turn; ++i)
            expected = 16 * expected + 1 + static_cast<double>(reverse ? positions - 1 - i : i);
          INFO("position " << at << " of " << positions << " in runs of " << run);
          CHECK(ran.pointers[0][at] == expected);
        }
      }
    }
}

TEST_CASE("guards cut lanes, rows and both, on either side", "[codegen][guard]") {
  // y[i, j] = x[i - 2, 2 + shift - j or j + shift] where inside, else `fill`, or kept.
  for (bool keep : {false, true}) {
    for (int direction : {1, -1, 2}) {
      for (std::int64_t shift : {-3, 0, 30}) {
        for (std::int64_t extent : {5, 20, 67}) {
          Build build("guards");
          auto& p = build.program;
          const int x = build.global("x", DType::f32, {7, 40}, false);
          const int y = build.global("y", DType::f32, {12, extent}, true, {}, 2);
          Copy copy;
          const int i = build.var("i", 12), j = build.var("j", extent);
          copy.domain = {i, j};
          copy.source = build.indexed(x, {Index::variable(i) + Index::of(-2),
                                          Index::variable(j, direction) + Index::of(shift)});
          copy.destination = build.at(y, {i, j});
          copy.fill = -2.5;
          copy.keep = keep;
          p.body.push_back(copy);
          compare(guarded(build), random_world(build), 0);
        }
      }
    }
  }
}

TEST_CASE("guarded stores leave their neighbours alone", "[codegen][guard]") {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    Build build("stores");
    const int y = build.global("y", dtype, {9, 20}, true);
    Fill fill;
    const int i = build.var("i", 16), j = build.var("j", 24);
    fill.domain = {i, j};
    fill.destination =
        build.indexed(y, {Index::variable(i) + Index::of(-3), Index::variable(j) + Index::of(-1)});
    fill.value = 7;
    build.program.body.push_back(fill);
    compare(guarded(build), random_world(build), 0);
  }
}

TEST_CASE("the grid is numbered slowest first, with symbolic extents", "[codegen][loop]") {
  Build build("grid");
  auto& p = build.program;
  p.argument({TileProgram::Argument::Kind::size, "h", -1, -1});
  const int a = build.var("a", 3, VarKind::grid),
            h = build.var("h", Extent::symbolic("h"), VarKind::grid),
            s = build.var("s", Extent{"h", 1, 2}, VarKind::size);
  p.grid = {a, h};
  Buffer out;
  out.name = "out", out.space = Space::global, out.pointer = 0, out.written = true;
  out.dims = {{"a", Extent::constant(3), {5, -1}}, {"h", Extent::symbolic("h"), {1, -1}}};
  MapTile map;
  map.positions = {{"a", Index::variable(a)}, {"h", Index::variable(h) + Index::variable(s, 100)}};
  Scalar value;
  value.finish(value.apply(ScalarOp::add,
                           value.apply(ScalarOp::mul, value.constant(10), value.index("a")),
                           value.index("h")));
  map.results = {value};
  map.destinations = {build.at(p.add_buffer(out), {a, h})};
  p.body.push_back(map);
  World world;
  world.sizes = {{"h", 5}};
  world.pointers = {std::vector<double>(15, -1)};
  compare(guarded(build), world, 0);
}

TEST_CASE("aliases share their memory", "[codegen][alias]") {
  Build build("aliases");
  auto& p = build.program;
  const int x = build.global("x", DType::f32, {30}, false),
            y = build.global("y", DType::f32, {30}, true);
  const int all = build.chip("all", DType::f32, {30});
  const int part = build.chip("part", DType::f32, {12});
  p.buffers[part].alias_of = all, p.buffers[part].alias_offset = 9;
  Copy in;
  in.domain = {build.var("i", 30)};
  in.source = build.at(x, in.domain), in.destination = build.at(all, in.domain);
  p.body.push_back(in);
  MapTile twice;
  twice.domain = {build.var("i", 12)};
  twice.operands = twice.destinations = {build.at(part, twice.domain)};
  Scalar two;
  two.finish(two.apply(ScalarOp::mul, two.constant(2), two.operand(0)));
  twice.results = {two};
  p.body.push_back(twice);
  Copy out;
  out.domain = {build.var("i", 30)};
  out.source = build.at(all, out.domain), out.destination = build.at(y, out.domain);
  p.body.push_back(out);
  compare(build, random_world(build), 0);
}
