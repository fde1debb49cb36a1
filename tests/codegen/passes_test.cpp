#include "codegen/passes/passes.h"

#include <catch2/catch.hpp>

#include "codegen/passes/block.h"
#include "codegen/tile/access.h"
#include "tests/codegen/harness.h"

using namespace krait;
using namespace krait::test;

namespace {

int count_statements(const TileProgram& program) {
  int count = 0;
  visit_statements(program.body, [&](const Statement&) { ++count; });
  return count;
}

const Buffer& named(const TileProgram& program, const std::string& name) {
  for (const Buffer& buffer : program.buffers)
    if (buffer.name == name) return buffer;
  FAIL("no buffer " << name);
  return program.buffers[0];
}

Copy copy_of(Build& build, int to, int from) {
  Copy copy;
  for (const Dim& dim : build.program.buffers[from].dims)
    copy.domain.push_back(build.var("i", dim.extent.offset));
  copy.source = build.at(from, copy.domain), copy.destination = build.at(to, copy.domain);
  return copy;
}

const VectorTarget wide{512, 32};

}  // namespace

TEST_CASE("simplify drops what nobody reads and reads through copies", "[codegen][passes]") {
  Build build("dead");
  auto& p = build.program;
  const int x = build.global("x", DType::f32, {20}, false),
            y = build.global("y", DType::f32, {20}, true);
  const int a = build.chip("a", DType::f32, {20}), same = build.chip("same", DType::f32, {20}),
            dead = build.chip("dead", DType::f32, {20}),
            deader = build.chip("deader", DType::f32, {20});
  p.body = {copy_of(build, a, x), copy_of(build, same, a), copy_of(build, dead, a),
            copy_of(build, deader, dead)};
  For unit;
  unit.var = build.var("once", 1, VarKind::loop);
  Copy back = copy_of(build, y, same);
  back.source.index[0] = back.source.index[0] + Index::variable(unit.var, 5);
  unit.body = {back};
  p.body.push_back(unit);
  TileProgram program = p;
  simplify(program);
  verify(program, false);
  CHECK(count_statements(program) == 2);
  CHECK(program.buffers.size() == 3);
  named(program, "a");
  compare(build, random_world(build), 0);
}

TEST_CASE("a copy whose source changes later stays", "[codegen][passes]") {
  Build build("kept");
  auto& p = build.program;
  const int x = build.global("x", DType::f32, {20}, false),
            y = build.global("y", DType::f32, {20}, true);
  const int a = build.chip("a", DType::f32, {20}), old = build.chip("old", DType::f32, {20});
  Fill fill;
  fill.domain = {build.var("i", 20)};
  fill.destination = build.at(a, fill.domain), fill.value = 3;
  p.body = {copy_of(build, a, x), copy_of(build, old, a), fill, copy_of(build, y, old)};
  // `a` is read once more, so that the fill lives.
  const int z = build.global("z", DType::f32, {20}, true);
  p.body.push_back(copy_of(build, z, a));
  TileProgram program = p;
  simplify(program);
  CHECK(count_statements(program) == 5);
  compare(build, random_world(build), 0);
}

TEST_CASE("scratch is shared by buffers that never live at once", "[codegen][passes]") {
  Build build("scratch");
  auto& p = build.program;
  const int x = build.global("x", DType::f32, {100}, false),
            y = build.global("y", DType::f32, {100}, true);
  std::vector<int> chain;
  int from = x;
  for (int i = 0; i < 5; ++i) {
    const int to = build.chip("b" + std::to_string(i), i % 2 == 0 ? DType::f64 : DType::f32, {100});
    p.body.push_back(copy_of(build, to, from));
    chain.push_back(to), from = to;
  }
  p.body.push_back(copy_of(build, y, from));
  TileProgram program = p;
  run_passes(program, wide, host_passes());
  // Two neighbours at a time: 832 bytes of doubles and 448 of floats.
  CHECK(program.scratch_bytes == 832 + 448);
  compare(build, random_world(build), 0);
}

TEST_CASE("a buffer that carries around a loop keeps its place", "[codegen][passes]") {
  // state = state + x[i]; the temporaries of the body may not overwrite it.
  Build build("carried");
  auto& p = build.program;
  const int x = build.global("x", DType::f32, {6, 16}, false),
            y = build.global("y", DType::f32, {6, 16}, true);
  const int state = build.chip("state", DType::f32, {16}), in = build.chip("in", DType::f32, {16}),
            out = build.chip("out", DType::f32, {16});
  Fill zero;
  zero.domain = {build.var("i", 16)};
  zero.destination = build.at(state, zero.domain);
  For loop;
  loop.var = build.var("l", 6, VarKind::loop);
  Copy load = copy_of(build, in, state);
  load.source = build.at(x, {loop.var, load.domain[0]});
  auto sum_of = [&](int to, int a, int b) {
    MapTile map;
    map.domain = {build.var("i", 16)};
    map.operands = {build.at(a, map.domain), build.at(b, map.domain)};
    map.destinations = {build.at(to, map.domain)};
    Scalar sum;
    sum.finish(sum.apply(ScalarOp::add, sum.operand(0), sum.operand(1)));
    map.results = {sum};
    return map;
  };
  Copy store = copy_of(build, in, out);
  store.destination = build.at(y, {loop.var, store.domain[0]});
  // The state is last used in the middle of a round: what follows must not take its place.
  const int late = build.chip("late", DType::f32, {16});
  store.source.buffer = late;
  loop.body = {load, sum_of(out, state, in), sum_of(state, out, in), sum_of(late, out, out), store};
  p.body = {zero, loop};
  TileProgram program = p;
  run_passes(program, wide, host_passes());
  CHECK(program.scratch_bytes == 3 * 64);
  compare(build, random_world(build), 1e-6);
}

TEST_CASE("pack transposes once, outside the loop, for all who read it", "[codegen][passes]") {
  Build build("packed");
  auto& p = build.program;
  const int x = build.global("x", DType::f32, {48, 32}, false),
            y = build.global("y", DType::f32, {32, 48}, true);
  const int a = build.chip("a", DType::f32, {32, 32}), b = build.chip("b", DType::f32, {48, 32}),
            c = build.chip("c", DType::f32, {32, 48});
  Fill fill;
  fill.domain = {build.var("i", 32), build.var("j", 32)};
  fill.destination = build.at(a, fill.domain), fill.value = 0.5;
  Fill zero;
  zero.domain = {build.var("i", 32), build.var("j", 48)};
  zero.destination = build.at(c, zero.domain);
  p.body = {copy_of(build, b, x), fill, zero};
  For loop;
  loop.var = build.var("l", 3, VarKind::loop);
  for (int twice = 0; twice < 2; ++twice) {
    Mma mma;
    const int r = build.var("r", 32), q = build.var("c", 48), k = build.var("k", 32);
    mma.rows = {r}, mma.columns = {q}, mma.sum = {k};
    mma.left = build.at(a, {r, k}), mma.right = build.at(b, {q, k});
    mma.destination = build.at(c, {r, q}), mma.accumulate = true;
    loop.body.push_back(mma);
  }
  p.body.push_back(loop);
  p.body.push_back(copy_of(build, y, c));
  TileProgram program = p;
  run_passes(program, wide, host_passes());
  INFO(to_text(program));
  CHECK(count_statements(program) == count_statements(p) + 1);
  const auto& found = std::get<For>(program.body[program.body.size() - 2]);
  CHECK(found.body.size() == 2);
  compare(build, random_world(build), 1e-5);
}

TEST_CASE("a packed copy is made anew where its source has changed", "[codegen][passes]") {
  for (bool in_loop : {false, true}) {
    Build build("changed");
    auto& p = build.program;
    const int x = build.global("x", DType::f32, {3, 20, 32}, false),
              y = build.global("y", DType::f32, {32, 20}, true);
    const int a = build.chip("a", DType::f32, {32, 32}), b = build.chip("b", DType::f32, {20, 32}),
              c = build.chip("c", DType::f32, {32, 20});
    Fill fill;
    fill.domain = {build.var("i", 32), build.var("j", 32)};
    fill.destination = build.at(a, fill.domain), fill.value = 0.5;
    Fill zero;
    zero.domain = {build.var("i", 32), build.var("j", 20)};
    zero.destination = build.at(c, zero.domain);
    p.body = {fill, zero};
    For loop;
    loop.var = build.var("l", 3, VarKind::loop);
    auto round = [&](std::vector<Statement>& body, const Index& number) {
      Copy load;
      const int i = build.var("i", 20), j = build.var("j", 32);
      load.domain = {i, j};
      load.source = build.indexed(x, {number, Index::variable(i), Index::variable(j)});
      load.destination = build.at(b, {i, j});
      body.push_back(load);
      Mma mma;
      const int r = build.var("r", 32), q = build.var("c", 20), k = build.var("k", 32);
      mma.rows = {r}, mma.columns = {q}, mma.sum = {k};
      mma.left = build.at(a, {r, k}), mma.right = build.at(b, {q, k});
      mma.destination = build.at(c, {r, q}), mma.accumulate = true;
      body.push_back(mma);
    };
    if (in_loop) {
      round(loop.body, Index::variable(loop.var));
      p.body.push_back(loop);
    } else {
      round(p.body, Index::of(1));
      round(p.body, Index::of(2));
    }
    p.body.push_back(copy_of(build, y, c));
    compare(build, random_world(build), 1e-5);
  }
}

TEST_CASE("blocks fit the registers and waste little", "[codegen][passes]") {
  for (const VectorTarget& target : targets())
    for (std::int64_t rows : {1, 3, 16, 64})
      for (std::int64_t columns : {1, 5, 16, 64, 128}) {
        const MmaBlocking blocking = choose_blocking(rows, columns, 64, target.lanes(4), target);
        CHECK(blocking.rows <= rows);
        CHECK(blocking.vectors * target.lanes(4) < columns + target.lanes(4));
        CHECK(blocking.rows * blocking.vectors + blocking.vectors + 1 <= target.vector_registers);
      }
  const MmaBlocking full = choose_blocking(64, 128, 64, 16, wide);
  CHECK(full.rows * full.vectors >= 8);  // enough chains to hide the latency of an addition
}

TEST_CASE("a pass that breaks a program is caught by its verifier", "[codegen][passes]") {
  Build build("mutant");
  const int x = build.global("x", DType::f32, {20}, false),
            y = build.global("y", DType::f32, {20}, true);
  Copy shifted = copy_of(build, y, x);
  shifted.source.index[0] = shifted.source.index[0] + Index::of(4);
  build.program.body = {shifted};
  std::vector<TilePass> passes = host_passes();
  std::vector<std::string> seen;
  TileProgram sound = build.program;
  run_passes(sound, wide, passes,
             [&](const std::string& name, const TileProgram&) { seen.push_back(name); });
  CHECK(seen == std::vector<std::string>{"simplify", "guard", "pack", "scratch"});
  passes.push_back({"drop a guard",
                    [](TileProgram& program, const VectorTarget&) {
                      std::get<Copy>(program.body[0]).source.guarded.clear();
                    },
                    [](const TileProgram& program) { verify(program); }});
  TileProgram mutant = build.program;
  CHECK_THROWS_WITH(run_passes(mutant, wide, passes), Catch::Matchers::Contains("without a guard"));
}
