// Loads that run a turn ahead: what the pass makes, that it means the same, and that a program that
// waits, meets or counts wrongly is found.
#include <catch2/catch.hpp>
#include <functional>
#include <stdexcept>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "codegen/tile/access.h"
#include "dsl/error.h"
#include "tests/codegen/harness.h"

namespace krait::test {
namespace {

/// Windows of eight rows of x, turned around on chip, to y: each turn of a loop takes one.
struct Windows {
  Build build{"windows"};
  int x = 0, y = 0, tile = 0, other = 0;

  explicit Windows(std::int64_t rows, bool reverse = false, std::int64_t blocks = 1) {
    const int t = static_cast<int>((rows + 7) / 8);
    const int part = build.var("part", blocks, VarKind::grid);
    const int c = build.var("c", t, VarKind::loop);
    const int q = build.var("q", 8), n = build.var("n", 32);
    build.program.grid = {part};
    x = build.global("x", DType::f32, {rows, 32}, false);
    y = build.global("y", DType::f32, {rows, 32}, true);
    tile = build.chip("tile", DType::f32, {8, 32});
    other = build.chip("other", DType::f32, {8, 32});
    const Index row = Index::variable(c, 8) + Index::variable(q);
    const Index back = Index{7, {{q, -1}}};
    Copy in, through, out;
    in.domain = through.domain = out.domain = {q, n};
    in.source = build.indexed(x, {row, Index::variable(n)});
    in.destination = build.at(tile, {q, n});
    through.source = build.indexed(tile, {back, Index::variable(n)});
    through.destination = build.at(other, {q, n});
    out.source = build.indexed(other, {back, Index::variable(n)});
    out.destination = build.indexed(y, {row, Index::variable(n)});
    For loop;
    loop.var = c;
    loop.reverse = reverse;
    if (blocks > 1) loop.block_var = part, loop.blocks = blocks;
    loop.body = {in, through, out};
    build.program.body = {loop};
    list_guards(build.program);
  }

  TileProgram& program() { return build.program; }
  /// The program after place and stage.
  Windows& staged(const CudaTarget& target = {}) {
    place(program(), target);
    stage(program(), target);
    return *this;
  }
  For& loop() {
    for (Statement& statement : program().body)
      if (For* found = std::get_if<For>(&statement)) return *found;
    throw std::logic_error("no loop");
  }
};

TEST_CASE("loads of a loop run a turn ahead of it") {
  Windows w(24);
  w.staged();
  TileProgram& p = w.program();
  REQUIRE(p.body.size() == 3);
  CHECK(std::get<Prefetch>(p.body[0]).first);
  CHECK(std::holds_alternative<Commit>(p.body[1]));
  const std::vector<Statement>& body = w.loop().body;
  REQUIRE(body.size() == 6);
  CHECK(std::get<Wait>(body[0]).pending == 0);
  CHECK(std::holds_alternative<Barrier>(body[1]));
  CHECK_FALSE(std::get<Prefetch>(body[2]).first);
  CHECK(std::holds_alternative<Commit>(body[3]));
  CHECK(p.buffers[static_cast<std::size_t>(w.tile)].stages == 2);
  CHECK(bytes_of(p.buffers[static_cast<std::size_t>(w.tile)]) == 2 * 8 * 32 * 4);
  sync(p);
  // Between the two copies on chip, and before the next turn overwrites what they read.
  CHECK_NOTHROW(verify_sync(p));
  CHECK_NOTHROW(verify_stage(p));
  place_shared(p);
  vectorize(p);
  CHECK_NOTHROW(verify_vectorize(p));
  const Prefetch& ahead = std::get<Prefetch>(w.loop().body[2]);
  CHECK(std::get<Copy>(ahead.body[0]).destination.wide.elements == 4);
}

TEST_CASE("a program whose loads run ahead means the same") {
  for (const std::int64_t rows : {1, 8, 9, 24, 45})
    for (const bool reverse : {false, true})
      for (const std::int64_t blocks : {1, 2, 3}) {
        INFO(rows << " rows, " << blocks << " blocks" << (reverse ? ", reverse" : ""));
        Windows w(rows, reverse, blocks);
        const World start = random_world(w.build);
        World expected = start, got = start;
        interpret(w.program(), expected);
        w.staged();
        REQUIRE(w.program().buffers[static_cast<std::size_t>(w.tile)].stages ==
                (rows <= 8 ? 1 : 2));
        sync(w.program());
        place_shared(w.program());
        verify_stage(w.program());
        interpret(w.program(), got);
        CHECK(got.pointers == expected.pointers);
      }
}

TEST_CASE("loads stay where they are where they may not run ahead") {
  const auto stages = [](const std::function<void(Windows&)>& change,
                         const CudaTarget& target = {}) {
    Windows w(20);
    change(w);
    w.staged(target);
    return w.program().buffers[static_cast<std::size_t>(w.tile)].stages;
  };
  const auto in = [](Windows& w) -> Copy& { return std::get<Copy>(w.loop().body[0]); };
  const auto pointer = [](Windows& w, int buffer) -> Buffer& {
    return w.program().buffers[static_cast<std::size_t>(buffer)];
  };
  CHECK(stages([](Windows&) {}) == 2);
  CHECK(stages([&](Windows& w) { in(w).fill = 1; }) == 1);
  CHECK(stages([&](Windows& w) { in(w).keep = true; }) == 1);
  CHECK(stages([&](Windows& w) { pointer(w, w.x).dtype = DType::f16; }) == 1);
  CHECK(stages([&](Windows& w) { pointer(w, w.y).pointer = pointer(w, w.x).pointer; }) == 1);
  CHECK(stages([&](Windows& w) {
          w.program().in_place = {{pointer(w, w.x).pointer, pointer(w, w.y).pointer}};
        }) == 1);
  // What reads a buffer before it is loaded reads the turn before.
  CHECK(stages([&](Windows& w) { std::swap(w.loop().body[0], w.loop().body[1]); }) == 1);
  CHECK(stages([&](Windows& w) { w.loop().unroll = true; }) == 1);
  CHECK(stages([&](Windows& w) {
          Fill fill;
          fill.domain = in(w).domain;
          fill.destination = in(w).destination;
          w.program().body.insert(w.program().body.begin(), fill);
        }) == 1);
  CHECK(stages([](Windows&) {}, cuda_target(75)) == 1);
  CudaTarget small;
  small.shared_limit = 2560;  // two tiles take 2048, three 3072
  CHECK(stages([](Windows&) {}, small) == 1);
  small.stages_asked = true;
  CHECK_THROWS_WITH(stages([](Windows&) {}, small),
                    Catch::Contains("schedule: stages is 2") && Catch::Contains("3072 bytes"));
}

TEST_CASE("loads that are waited for, met or counted wrongly are found") {
  using Verifier = std::function<void(const TileProgram&)>;
  const auto broken = [](const std::function<void(Windows&, std::vector<Statement>&)>& change,
                         const Verifier& verifier, const char* why) {
    Windows w(45);
    w.staged();
    sync(w.program());
    verify_sync(w.program());
    verify_stage(w.program());
    change(w, w.loop().body);
    INFO(to_text(w.program()));
    CHECK_THROWS_WITH(verifier(w.program()), Catch::Contains(why));
  };
  const auto erase = [](std::size_t at) {
    return [at](Windows&, std::vector<Statement>& body) {
      body.erase(body.begin() + static_cast<std::ptrdiff_t>(at));
    };
  };
  // The body: wait, barrier, prefetch, commit, ...
  broken(erase(0), verify_stage, "its copy may be under way");
  broken(erase(1), verify_stage, "before other threads' copies are sure to be there");
  broken(erase(1), verify_sync, "no barrier between");
  broken(erase(2), verify_stage, "a commit of no copies");
  broken(erase(3), verify_stage, "its copy may be under way");
  broken([](Windows&, auto& body) { std::get<Wait>(body[0]).pending = 1; }, verify_stage,
         "its copy may be under way");
  broken([](Windows&, auto& body) { std::swap(body[0], body[1]); }, verify_stage,
         "before other threads' copies are sure to be there");
  broken([](Windows&, auto& body) { std::swap(body[0], body[1]); }, verify_sync,
         "no barrier between");
  // Issued at the start of a turn, without a barrier since the turn before.
  broken(
      [](Windows&, auto& body) {
        std::rotate(body.begin(), body.begin() + 2, body.begin() + 4);
        body.erase(body.begin() + 5);
      },
      verify_stage, "overwritten while other threads may still read it");
  broken([](Windows&,
            auto& body) { body.insert(body.begin() + 3, Commit{}), body.push_back({Commit{}}); },
         verify_stage, "a commit of no copies");
  broken(
      [](Windows& w, auto&) {
        w.program().body.erase(w.program().body.begin(), w.program().body.begin() + 2);
      },
      verify_stage, "nothing was copied there");
  broken(
      [](Windows& w, auto&) { w.program().buffers[static_cast<std::size_t>(w.tile)].stages = 1; },
      verify_stage, "has no slot for the turn to come");
  broken([](Windows&, auto& body) { std::get<Prefetch>(body[2]).reverse = true; },
         [](const TileProgram& p) { verify(p); }, "next turn of a loop that it does not stand in");
  broken([](Windows& w, auto&) { std::get<Prefetch>(w.program().body[0]).blocks = 2; },
         verify_stage, "no such loop follows");
}

}  // namespace
}  // namespace krait::test
