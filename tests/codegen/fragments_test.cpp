// What stands in registers: values that one thread makes and reads, within so many registers; and
// what simplify and views do for them.
#include <catch2/catch.hpp>
#include <set>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"
#include "tests/codegen/harness.h"

namespace krait::test {
namespace {

Scalar sum_of(int count) {
  Scalar sum;
  int all = sum.operand(0);
  for (int i = 1; i < count; ++i) all = sum.apply(ScalarOp::add, all, sum.operand(i));
  sum.finish(all);
  return sum;
}

/// Statements over rows q and columns n of 8 by 64 tiles, and what simplify takes for granted.
struct Tiles {
  Build build;
  TileProgram& program = build.program;
  int q, n, x, y;

  explicit Tiles(const std::string& name) : build(name) {
    q = build.var("q", 8), n = build.var("n", 64);
    x = build.global("x", DType::f32, {8, 64}, false);
    y = build.global("y", DType::f32, {8, 64}, true);
  }
  int tile(const std::string& name) { return build.chip(name, DType::f32, {8, 64}); }
  Access at(int buffer) { return build.at(buffer, {q, n}); }
  Access backwards(int buffer) {
    return build.indexed(buffer, {Index::variable(q), Index{63, {{n, -1}}}});
  }
  Copy copy(Access to, Access from) {
    Copy made;
    made.domain = {q, n};
    made.destination = std::move(to), made.source = std::move(from);
    return made;
  }
  MapTile map(Access to, std::vector<Access> from) {
    MapTile made;
    made.domain = {q, n};
    made.results = {sum_of(static_cast<int>(from.size()))};
    made.destinations = {std::move(to)}, made.operands = std::move(from);
    return made;
  }
  ReduceTile sum(std::vector<int> domain, std::vector<int> reduced, Access to, Access from) {
    ReduceTile made;
    made.domain = std::move(domain), made.reduced = std::move(reduced);
    made.results = {sum_of(1)};
    made.destinations = {std::move(to)}, made.operands = {std::move(from)};
    return made;
  }

  /// The program after place, which means the same, with two warps.
  TileProgram placed(CudaTarget target = {}) {
    const World world = random_world(build);
    World before = world, after = world;
    interpret(program, before);
    TileProgram made = program;
    made.warps = 2;
    place(made, target);
    verify(made);
    verify_place(made);
    interpret(made, after);
    CHECK(before.pointers == after.pointers);
    return made;
  }
};

std::set<std::string> fragments(const TileProgram& program) {
  std::set<std::string> names;
  for (const Buffer& buffer : program.buffers)
    if (buffer.space == Space::fragment) names.insert(buffer.name);
  return names;
}

using Names = std::set<std::string>;

TEST_CASE("what one thread makes and reads stands in registers", "[codegen][fragments]") {
  Tiles t("rows");
  const int in = t.tile("in"), twice = t.tile("twice"), scaled = t.tile("scaled"),
            turned = t.tile("turned"), total = t.build.chip("total", DType::f32, {8}),
            columns = t.build.chip("columns", DType::f32, {64}), other = t.tile("other");
  // A sum along rows leaves its terms with their threads; what it gives, others read. A sum of
  // columns would be shared by warps, which hold other rows.
  t.program.body = {
      t.copy(t.at(in), t.at(t.x)),
      t.map(t.at(twice), {t.at(in), t.at(in)}),
      t.sum({t.q}, {t.n}, t.build.at(total, {t.q}), t.at(twice)),
      t.map(t.at(scaled), {t.at(twice), t.build.at(total, {t.q})}),
      t.map(t.at(turned), {t.at(in), t.at(scaled)}),
      t.copy(t.at(other), t.at(t.x)),
      t.sum({t.n}, {t.q}, t.build.at(columns, {t.n}), t.at(other)),
      t.map(t.at(t.y), {t.backwards(turned), t.build.at(columns, {t.n}), t.at(other)})};
  const TileProgram made = t.placed();
  CHECK(fragments(made) == Names{"in", "twice", "scaled", "other"});
  // The column sum's own layout keeps columns in a warp, and the last map can have it.
  for (const Statement& statement : made.body)
    if (const ReduceTile* sum = std::get_if<ReduceTile>(&statement))
      for (const Layout::Bit& bit : sum->layout->warps)
        CHECK(bit.dim < static_cast<int>(sum->domain.size()));
}

TEST_CASE("one position of a dimension and sums of few terms stay with a thread",
          "[codegen][fragments]") {
  Tiles t("pairs");
  const int pair = t.build.var("pair", 2);
  const int both = t.build.chip("both", DType::f32, {2, 8, 64}), sum = t.tile("sum"),
            difference = t.tile("difference"), joined = t.tile("joined");
  const int first = t.tile("first"), second = t.tile("second");
  t.program.buffers[static_cast<std::size_t>(first)].alias_of = both;
  t.program.buffers[static_cast<std::size_t>(second)].alias_of = both;
  t.program.buffers[static_cast<std::size_t>(second)].alias_offset = 512;
  MapTile spread = t.map(t.build.at(both, {pair, t.q, t.n}), {t.at(t.x)});
  spread.domain = {pair, t.q, t.n};
  spread.positions = {{"pair", Index::variable(pair)}};
  Scalar moved;
  moved.finish(moved.apply(ScalarOp::add, moved.operand(0), moved.index("pair")));
  spread.results = {moved};
  t.program.body = {spread, t.map(t.at(sum), {t.at(first), t.at(second)}),
                    t.map(t.at(difference), {t.at(second), t.at(sum)}),
                    t.sum({t.q, t.n}, {pair}, t.at(joined), t.build.at(both, {pair, t.q, t.n})),
                    t.map(t.at(t.y), {t.at(joined), t.at(difference)})};
  const TileProgram made = t.placed();
  CHECK(fragments(made) == Names{"both", "sum", "difference", "joined"});
  for (const Buffer& buffer : made.buffers) CHECK(buffer.alias_of < 0);
}

TEST_CASE("a single element is dealt out like any other buffer", "[codegen][fragments]") {
  Tiles t("single");
  const int pair = t.build.var("pair", 2);
  const int one = t.build.chip("one", DType::f32, {});
  Copy out;
  out.destination = t.build.indexed(t.y, {Index::of(0), Index::of(0)});
  out.source = t.build.at(one, {});
  t.program.body.push_back(t.sum({}, {pair}, t.build.at(one, {}),
                                 t.build.indexed(t.x, {Index::of(0), Index::variable(pair)})));
  t.program.body.push_back(out);
  t.placed();
}

TEST_CASE("memory is read side by side, in registers or not", "[codegen][fragments]") {
  // x is read along its rows, y is written along its columns: no layout does both well.
  Tiles t("turned");
  t.y = t.build.global("z", DType::f32, {8, 64}, true, {1, 0});
  const int in = t.tile("in"), out = t.tile("out");
  t.program.body = {t.copy(t.at(in), t.at(t.x)), t.map(t.at(out), {t.at(in), t.at(in)}),
                    t.copy(t.at(t.y), t.at(out))};
  CHECK(fragments(t.placed()).size() == 1);
}

TEST_CASE("fragments that live at once have so many registers", "[codegen][fragments]") {
  // Eight registers a tile. Each value of the chain is read once, but the first is read again at
  // the end.
  Tiles t("chain");
  std::vector<int> tiles;
  for (int i = 0; i < 6; ++i) tiles.push_back(t.tile("v" + std::to_string(i)));
  t.program.body = {t.copy(t.at(tiles[0]), t.at(t.x))};
  for (std::size_t i = 1; i < tiles.size(); ++i)
    t.program.body.push_back(t.map(t.at(tiles[i]), {t.at(tiles[i - 1]), t.at(tiles[i - 1])}));
  t.program.body.push_back(t.map(t.at(t.y), {t.at(tiles[5]), t.at(tiles[0])}));
  CudaTarget target;
  target.fragment_registers = 24;
  CHECK(fragments(t.placed(target)).size() == 6);
  target.fragment_registers = 16;
  CHECK(fragments(t.placed(target)) == Names{"v0", "v1", "v3", "v5"});
  target.fragment_registers = 7;
  CHECK(fragments(t.placed(target)).empty());
}

TEST_CASE("a fragment that a loop carries keeps its registers through it", "[codegen][fragments]") {
  Tiles t("carried");
  const int total = t.tile("total"), term = t.tile("term"), later = t.tile("later");
  Fill zero;
  zero.domain = {t.q, t.n};
  zero.destination = t.at(total);
  For loop;
  loop.var = t.build.var("turn", 3, VarKind::loop);
  loop.body = {t.map(t.at(term), {t.at(t.x), t.at(t.x)}),
               t.map(t.at(total), {t.at(total), t.at(term)}),
               t.map(t.at(later), {t.at(t.x), t.at(t.x)}), t.copy(t.at(t.y), t.at(later))};
  t.program.body = {zero, loop, t.map(t.at(t.y), {t.at(total), t.at(t.x)})};
  CudaTarget target;
  target.fragment_registers = 16;
  CHECK(fragments(t.placed(target)) == Names{"total", "term", "later"});
  target.fragment_registers = 8;
  CHECK(fragments(t.placed(target)) == Names{"total"});
}

TEST_CASE("all warps add up what is summed over all points", "[codegen][fragments]") {
  Tiles t("sum");
  const int in = t.tile("in"), total = t.build.chip("total", DType::f32, {});
  const World world = random_world(t.build);
  t.program.body = {t.copy(t.at(in), t.at(t.x)),
                    t.sum({}, {t.q, t.n}, t.build.at(total, {}), t.at(in)),
                    t.map(t.at(t.y), {t.at(in), t.build.at(total, {})})};
  TileProgram made = t.program;
  made.warps = 2;
  place(made, CudaTarget{});
  REQUIRE(made.body.size() == 4);
  // Rows are parted, along which memory does not run; each stays within a warp, in registers.
  const ReduceTile& parts = std::get<ReduceTile>(made.body[1]);
  CHECK(parts.domain == std::vector<int>{t.q});
  CHECK(parts.layout->warps[0].dim == 0);
  CHECK(std::get<ReduceTile>(made.body[2]).reduced == std::vector<int>{t.q});
  CHECK(fragments(made) == Names{"in"});
  sync(made);
  verify(made);
  verify_sync(made);
  World before = world, after = world;
  interpret(t.program, before);
  interpret(made, after);
  for (std::size_t i = 0; i < before.pointers[1].size(); ++i)
    CHECK(after.pointers[1][i] == Approx(before.pointers[1][i]).margin(1e-5));
}

TEST_CASE("what is loaded ahead beside other loads stays in shared memory",
          "[codegen][fragments]") {
  Tiles t("ahead");
  const int turn = t.build.var("turn", 5, VarKind::loop);
  t.x = t.build.global("rows", DType::f32, {40, 64}, false);
  const Access rows =
      t.build.indexed(t.x, {Index::variable(turn, 8) + Index::variable(t.q), Index::variable(t.n)});
  const int own = t.tile("own"), exchanged = t.tile("exchanged"), sum = t.tile("sum");
  For loop;
  loop.var = turn;
  loop.body = {t.copy(t.at(own), rows), t.copy(t.at(exchanged), rows),
               t.map(t.at(sum), {t.at(own), t.backwards(exchanged)}), t.copy(t.at(t.y), t.at(sum))};
  t.program.body = {loop};
  CHECK(fragments(t.placed(cuda_target(80))) == Names{"sum"});
  CHECK(fragments(t.placed(cuda_target(75))) == Names{"own", "sum"});
  // Alone it needs no wait, and no barrier.
  loop.body[2] = t.map(t.at(sum), {t.at(own), t.at(exchanged)});
  t.program.body = {loop};
  CHECK(fragments(t.placed(cuda_target(80))) == Names{"own", "exchanged", "sum"});
}

TEST_CASE("a state is loaded straight to its place", "[codegen][passes]") {
  Tiles t("state");
  const int loaded = t.tile("loaded"), state = t.tile("state");
  t.program.body = {t.copy(t.at(loaded), t.at(t.x)), t.map(t.at(state), {t.at(loaded)}),
                    t.map(t.at(state), {t.at(state), t.at(state)}), t.copy(t.at(t.y), t.at(state))};
  const auto simplified = [&] {
    TileProgram made = t.program;
    simplify(made);
    verify(made);
    compare(t.build, random_world(t.build), 0);
    return made;
  };
  const TileProgram made = simplified();
  REQUIRE(made.body.size() == 3);
  const Copy& load = std::get<Copy>(made.body[0]);
  CHECK(made.buffers[static_cast<std::size_t>(load.destination.buffer)].name == "state");
  // Not where the place holds something that is still read.
  t.program.body.insert(t.program.body.begin(), t.copy(t.at(state), t.at(t.x)));
  t.program.body.insert(t.program.body.begin() + 2, t.copy(t.at(t.y), t.at(state)));
  CHECK(simplified().body.size() == t.program.body.size());
}

TEST_CASE("parts of a tile are written where they go; a tile is whole once they are",
          "[codegen][passes]") {
  Tiles t("parts");
  const int half = t.build.var("half", 32);
  const int left = t.build.chip("left", DType::f32, {8, 32}), whole = t.tile("whole"),
            before = t.tile("before");
  For loop;
  loop.var = t.build.var("turn", 3, VarKind::loop);
  Fill fill;
  fill.domain = {t.q, half};
  fill.value = 2;
  fill.destination = t.build.at(left, {t.q, half});
  Copy put = t.copy(t.build.at(whole, {t.q, half}), t.build.at(left, {t.q, half}));
  put.domain = {t.q, half};
  Fill rest = fill;
  rest.destination =
      t.build.indexed(whole, {Index::variable(t.q), Index::of(32) + Index::variable(half)});
  loop.body = {t.map(t.at(before), {t.at(t.x), t.at(t.x)}),
               t.copy(t.at(t.y), t.at(before)),
               fill,
               put,
               rest,
               t.copy(t.at(t.y), t.at(whole))};
  t.program.body = {loop};
  compare(t.build, random_world(t.build), 0);
  TileProgram made = t.program;
  simplify(made);
  CHECK(std::get<For>(made.body[0]).body.size() == 5);
  place_scratch(made);
  CHECK(made.scratch_bytes == 8 * 64 * 4);  // `before` is gone when `whole` begins
}

TEST_CASE("a sum over nothing is a map", "[codegen][passes]") {
  Tiles t("nothing");
  const int total = t.tile("total");
  ReduceTile add = t.sum({t.q, t.n}, {}, t.at(total), t.at(t.x));
  ReduceTile again = add;
  again.accumulate = true;
  t.program.body = {add, again, t.copy(t.at(t.y), t.at(total))};
  compare(t.build, random_world(t.build), 0);
  TileProgram made = t.program;
  simplify(made);
  CHECK(std::holds_alternative<MapTile>(made.body[0]));
  CHECK(std::get<MapTile>(made.body[1]).operands.size() == 2);
}

}  // namespace
}  // namespace krait::test
