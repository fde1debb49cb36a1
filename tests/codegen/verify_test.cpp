#include <catch2/catch.hpp>

#include "codegen/passes/passes.h"
#include "codegen/tile/range.h"
#include "dsl/error.h"
#include "tests/codegen/harness.h"

using namespace krait;
using namespace krait::test;
using Catch::Matchers::Contains;

namespace {

/// y = x + 1 through a buffer on chip, in a loop over tiles of 16: sound until it is broken.
struct Sound {
  Build build{"sound"};
  int x, y, tile, chunk, i;
  For loop;
  Copy in;
  MapTile add;
  Copy out;

  Sound() {
    auto& p = build.program;
    p.argument({TileProgram::Argument::Kind::size, "t", -1, -1});
    Buffer buffer;
    buffer.space = Space::global;
    buffer.dims = {{"t", Extent::symbolic("t"), {1, -1}}};
    buffer.name = "x", buffer.pointer = 0;
    x = p.add_buffer(buffer);
    buffer.name = "y", buffer.pointer = 1, buffer.written = true;
    y = p.add_buffer(buffer);
    tile = build.chip("tile", DType::f32, {16});
    chunk = build.var("chunk", Extent::symbolic("t").ceil_div(16), VarKind::loop);
    loop.var = chunk;
    i = build.var("i", 16);
    const Index at = Index::variable(chunk, 16) + Index::variable(i);
    in.domain = out.domain = add.domain = {i};
    in.source = {x, {at}, {0}};
    in.destination = out.source = build.at(tile, {i});
    out.destination = {y, {at}, {0}};
    add.operands = add.destinations = {build.at(tile, {i})};
    Scalar one;
    one.finish(one.apply(ScalarOp::add, one.operand(0), one.constant(1)));
    add.results = {one};
  }

  const TileProgram& program() {
    loop.body = {in, add, out};
    build.program.body = {loop};
    return build.program;
  }
};

void broken(const std::string& message, const std::function<void(Sound&)>& change) {
  Sound sound;
  verify(sound.program());
  change(sound);
  INFO(message);
  CHECK_THROWS_WITH(verify(sound.program()), Contains(message));
}

}  // namespace

TEST_CASE("the verifier names what is wrong", "[codegen][verify]") {
  broken("tile can be left along d0",
         [](Sound& s) { s.in.destination.index[0] = Index::variable(s.i) + Index::of(1); });
  broken("x can be left along t", [](Sound& s) { s.in.source.guarded.clear(); });
  broken("tile is read before it is written", [](Sound& s) {
    std::swap(s.in.destination, s.out.destination);
    s.in.destination.buffer = s.y;
    s.out.destination = s.in.destination;
    s.in = s.out;
  });
  broken("has 1 dimensions and 2 indices",
         [](Sound& s) { s.out.source.index.push_back(Index::of(0)); });
  broken("is not set here", [](Sound& s) { s.add.domain.clear(); });
  broken("stands twice in a domain", [](Sound& s) { s.add.domain = {s.i, s.i}; });
  broken("write one element", [](Sound& s) { s.add.destinations[0].index[0] = Index::of(3); });
  broken("x is written and not marked so", [](Sound& s) { s.out.destination.buffer = s.x; });
  broken("an expression reads operand 0", [](Sound& s) { s.add.operands.clear(); });
  broken("the position along q is not given", [](Sound& s) {
    Scalar index;
    index.finish(index.index("q"));
    s.add.results = {index};
  });
  broken("results for", [](Sound& s) { s.add.destinations.clear(); });
  broken("of another kind", [](Sound& s) { s.loop.var = s.i; });
  broken("out of order",
         [](Sound& s) { std::swap(s.in.source.index[0].terms[0], s.in.source.index[0].terms[1]); });
  broken("no dimension 3 to guard", [](Sound& s) { s.in.source.guarded = {3}; });
  broken("leaves the memory of tile", [](Sound& s) {
    const int part = s.build.chip("part", DType::f32, {8});
    s.build.program.buffers[part].alias_of = s.tile;
    s.build.program.buffers[part].alias_offset = 9;
  });
}

TEST_CASE("the verifier follows what stands in memory on chip", "[codegen][verify]") {
  // Half of the tile is written, all of it is read.
  broken("tile is read where it was not written", [](Sound& s) {
    s.in.domain = {s.build.var("half", 8)};
    s.in.destination.index[0] = Index::variable(s.in.domain[0]);
    s.in.source.index[0] = Index::variable(s.chunk, 16) + Index::variable(s.in.domain[0]);
  });
  broken("part has two elements in one place", [](Sound& s) {
    const int part = s.build.chip("part", DType::f32, {4, 4});
    s.build.program.buffers[part].dims[0].stride.constant = 3;
  });
  const auto beside = [](Sound& s, std::int64_t offset, bool before) {
    const int other = s.build.chip("other", DType::f32, {16});
    s.build.program.buffers[s.tile].scratch_offset = 0;
    s.build.program.buffers[other].scratch_offset = offset;
    Fill fill;
    fill.domain = {s.i};
    fill.destination = s.build.at(other, {s.i});
    s.loop.body = before ? std::vector<Statement>{fill, s.in, s.add, s.out}
                         : std::vector<Statement>{s.in, s.add, fill, s.out};
    s.build.program.body = {s.loop};
  };
  Sound taken;
  beside(taken, 32, false);
  CHECK_THROWS_WITH(verify(taken.build.program),
                    Contains("tile is read, but its bytes are taken by other"));
  Sound apart;
  beside(apart, 64, false);
  CHECK_NOTHROW(verify(apart.build.program));
  Sound earlier;
  beside(earlier, 0, true);
  CHECK_NOTHROW(verify(earlier.build.program));
  // Read before it is written again, a turn later.
  Sound later;
  beside(later, 0, false);
  Fill first;
  first.domain = {later.i};
  first.destination =
      later.build.at(static_cast<int>(later.build.program.buffers.size()) - 1, {later.i});
  MapTile last = later.add;
  last.operands = {first.destination};
  last.destinations = {later.out.destination};
  later.loop.body = {last, later.in, later.add, later.out};
  later.build.program.body = {first, later.loop};
  CHECK_THROWS_WITH(verify(later.build.program),
                    Contains("other is read, but its bytes are taken by tile"));
}

TEST_CASE("the verifier checks products and scans", "[codegen][verify]") {
  Build build("product");
  const int a = build.chip("a", DType::f32, {4, 4}), b = build.chip("b", DType::f64, {4, 4}),
            c = build.chip("c", DType::f32, {4, 4});
  for (int buffer : {a, b, c}) {
    Fill fill;
    fill.domain = {build.var("i", 4), build.var("j", 4)};
    fill.destination = build.at(buffer, fill.domain);
    build.program.body.push_back(fill);
  }
  const auto sound = build.program.body;
  const int i = build.var("i", 4), j = build.var("j", 4), k = build.var("k", 4);
  Mma mma;
  mma.rows = {i}, mma.columns = {j}, mma.sum = {k};
  mma.left = build.at(a, {i, k}), mma.right = build.at(a, {k, j}),
  mma.destination = build.at(c, {i, j});
  auto fails = [&](const Statement& statement, const std::string& message) {
    build.program.body = sound;
    build.program.body.push_back(statement);
    CHECK_THROWS_WITH(verify(build.program), Contains(message));
  };
  build.program.body.push_back(mma);
  verify(build.program);
  Mma wrong = mma;
  wrong.right.buffer = b;
  fails(wrong, "b is f64 in a product of f32");
  wrong = mma;
  wrong.right = build.at(a, {i, j});
  fails(wrong, "a row variable in the right operand");
  wrong = mma;
  wrong.destination = build.at(c, {i, k});
  fails(wrong, "a summed variable is kept");
  wrong = mma;
  wrong.sum.clear(), wrong.left = build.at(a, {i, i}), wrong.right = build.at(a, {j, j});
  fails(wrong, "a product without a sum");
  ScanTile scan;
  scan.domain = {i}, scan.along = j;
  scan.source = scan.destination = build.at(a, {i, j});
  build.program.body = sound;
  build.program.body.push_back(scan);
  verify(build.program);
  ScanTile bad = scan;
  bad.reset = build.at(a, {i, j});
  fails(bad, "a reset that is not i32");
  bad = scan;
  bad.pair = true;
  fails(bad, "is a pair");
  bad = scan;
  bad.last = build.at(c, {i, j});
  fails(bad, "a scan's end varies along it");
}

TEST_CASE("ranges compare sizes as sums of symbols", "[codegen][verify]") {
  Build build("ranges");
  auto& p = build.program;
  const Extent t = Extent::symbolic("t");
  Buffer buffer;
  buffer.space = Space::global, buffer.pointer = 0;
  buffer.dims = {{"t", t, {1, -1}}, {"t3", t.plus(3), {1, -1}}, {"c", t.ceil_div(64), {1, -1}}};
  const int x = p.add_buffer(buffer);
  const int v = build.var("v", t, VarKind::loop), c = build.var("c", t.ceil_div(64), VarKind::loop),
            w = build.var("w", 64), size = build.var("size", t, VarKind::size);
  auto leaves_at = [&](int dim, const Index& index) {
    Access access{x, {Index::of(0), Index::of(0), Index::of(0)}, {}};
    access.index[dim] = index;
    return leaves(p, access, dim);
  };
  CHECK_FALSE(leaves_at(0, Index::variable(v)).any());
  CHECK(leaves_at(0, Index::variable(v) + Index::of(1)).above);
  CHECK_FALSE(leaves_at(0, Index::variable(v) + Index::of(1)).below);
  CHECK(leaves_at(0, Index::variable(v) + Index::of(-1)).below);
  CHECK_FALSE(leaves_at(0, Index::variable(v) + Index::of(-1)).above);
  CHECK_FALSE(leaves_at(1, Index::variable(v) + Index::of(3)).any());
  CHECK(leaves_at(1, Index::variable(v) + Index::of(4)).above);
  CHECK_FALSE(leaves_at(2, Index::variable(c)).any());
  CHECK(leaves_at(0, Index::variable(c, 64) + Index::variable(w)).above);
  // From the end: size - 1 - v.
  CHECK_FALSE(leaves_at(0, Index::variable(size) + Index::variable(v, -1) + Index::of(-1)).any());
  CHECK(leaves_at(0, Index::variable(size) + Index::variable(v, -1) + Index::of(-2)).below);
}

TEST_CASE("the text of a program is stable and tells everything", "[codegen][print]") {
  Sound sound;
  CHECK(to_text(sound.program()) ==
        "kernel sound\n"
        "schedule a test\n"
        "argument 0 = t\n"
        "global f32 x[t t by 1] pointer 0\n"
        "global f32 y[t t by 1] pointer 1 written\n"
        "shared f32 tile[d0 16 by 1]\n"
        "for (chunk:ceil(t/16))\n"
        "  copy (i:16) tile[i] = x[16*chunk+i?] else 0\n"
        "  map (i:16) f32\n"
        "    tile[i] = " +
            sound.add.results[0].text({"tile[i]"}) +
            "\n"
            "  copy (i:16) y[16*chunk+i?] = tile[i]\n");
}

TEST_CASE("indices add and scale", "[codegen][index]") {
  const Index a = Index::variable(3, 2) + Index::variable(1) + Index::of(5);
  CHECK(a.constant == 5);
  CHECK(a.factor_of(3) == 2);
  CHECK(a.factor_of(1) == 1);
  CHECK(a.factor_of(2) == 0);
  CHECK(a.terms.front().var == 1);
  CHECK((a + Index::variable(3, -2)).terms.size() == 1);
  CHECK((a * 3).factor_of(3) == 6);
  CHECK((a * 0) == Index::of(0));
}
