// An axis of the states in tiles: the same function, and kernels that hold one tile at a time.
#include "schedules/tile_states.h"

#include "dsl/blocks/blocks.h"
#include "schedules/lower.h"
#include "schedules/normalise.h"
#include "tests/schedules/chunk_testing.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), h("h", 2), n("n", 4), p("p", 6), e("e", 12);

/// Heads that are cut out of one row and put together again, a factor and a sum along the state's
/// axis, a state that comes and goes.
void block(Scope& s) {
  const Expr x = split(s.input("x", {b, t, e}), e, h, p);
  const Expr k = s.input("k", {b, t, n}), q = s.input("q", {b, t, n});
  const Expr h0 = s.state("h0", "h1", {b, h, p, n});
  const ScanResult state =
      scan(t, -softplus(s.input("f", {b, t, h})), k * (x * (1 + s.index(p))), {.initial = h0});
  const Expr y = sum(state * q, n) + x;
  s.output("y", merge(y / (1 + sum(square(y), p)), h, p, e), {b, t, e});
  s.leave("h1", state.last);
}

TEST_CASE("tiles: the same values and gradients, in tiles that divide the axis") {
  const Graph graph = build_graph(block, DType::f64);
  unsigned seed = 3;
  for (const Graph& before : {graph, chunk(graph, 4), differentiate(chunk(graph, 4)),
                              normalise(differentiate(chunk(graph, 4)))})
    for (const auto& [most, count] : std::map<int, int>{{1, 6}, {2, 3}, {3, 2}, {5, 2}}) {
      const Tiles tiles = in_tiles(before, "p", most);
      CAPTURE(most, tiles.outer, to_text(tiles.graph));
      REQUIRE(tiles.graph.axis(tiles.outer).extent == Extent::constant(count));
      for (std::int64_t length : {1, 4, 9}) {
        const Tensors64 inputs = random_inputs(before, {{"b", 2}, {"t", length}}, ++seed);
        require_equal(evaluate(tiles.graph, inputs), evaluate(before, inputs), 1e-12);
      }
    }
}

TEST_CASE("tiles: one is the graph itself") {
  const Graph graph = build_graph(block);
  for (const std::int64_t most : {6, 7, 1000}) {
    const Tiles tiles = in_tiles(graph, "p", most);
    CHECK(to_text(tiles.graph) == to_text(graph));
    CHECK(tiles.outer.empty());
  }
  CHECK(in_tiles(graph, "", 2).outer.empty());
}

TEST_CASE("tiles: of an axis of the state over which nothing sums that reads it") {
  const auto axis_of = [](const BlockFunction& block) { return tiled_axis(build_graph(block)); };
  CHECK(axis_of(block) == "p");
  CHECK(axis_of(block_function(SsdSpec{.nheads = 2, .headdim = 8, .d_state = 16})) == "p");
  CHECK(axis_of(block_function(Mamba3ScanSpec{.nheads = 2, .headdim = 8, .d_state = 16})) == "p");
  // Both axes are summed over; a state that varies as its decay does; no state.
  const auto scanned = [](const std::function<void(Scope&, const Expr&)>& read,
                          const std::vector<Axis>& decay) {
    return [read, decay](Scope& s) {
      const Expr u = s.input("k", {b, t, n}) * s.input("v", {b, t, p});
      read(s, scan(t, -softplus(s.input("f", decay)), u).leaving);
    };
  };
  const auto total = [](Scope& s, const Expr& state) { s.output("y", sum(state, {n, p}), {b, t}); };
  const auto as_it_is = [](Scope& s, const Expr& state) { s.output("y", state, {b, t, n, p}); };
  CHECK(axis_of(scanned(total, {b, t})).empty());
  CHECK(axis_of(scanned(as_it_is, {b, t})) == "p");  // the longer one
  CHECK(axis_of(scanned(as_it_is, {b, t, p})) == "n");
  CHECK(axis_of(scanned(as_it_is, {b, t, n, p})).empty());
  CHECK(axis_of([](Scope& s) { s.output("y", 2 * s.input("x", {b, t, p}), {b, t, p}); }).empty());
}

Lowered lowered(const std::string& schedule) {
  const Graph graph =
      build_graph(block_function(SsdSpec{.nheads = 6, .headdim = 16, .d_state = 32, .ngroups = 2}));
  return lower(graph, parse_schedule(schedule), floating_outputs(graph), floating_inputs(graph));
}

TEST_CASE("tiles: grid points of loops over chunks, innermost loops where they are summed over") {
  using Kind = AxisMapping::Kind;
  const Lowered whole = lowered("chunk=8"), tiles = lowered("chunk=8 tile=8 backward.tile=4");
  // No kernel and no temporary more.
  CHECK(tiles.forward.kernels.size() == whole.forward.kernels.size());
  CHECK(tiles.backward.kernels.size() == whole.backward.kernels.size());
  CHECK(arena(tiles.backward, {{"b", 2}, {"t", 64}}).bytes ==
        arena(whole.backward, {{"b", 2}, {"t", 64}}).bytes);
  for (const Plan* plan : {&tiles.forward, &tiles.backward}) {
    INFO(to_text(*plan));
    REQUIRE(plan->tiles.size() == 1);
    CHECK(plan->graph.axis(plan->tiles[0]).extent ==
          Extent::constant(plan->pass == Pass::forward ? 2 : 4));
    std::map<Kind, int> found;
    for (const PlannedKernel& kernel : plan->kernels)
      for (const AxisMapping& mapped : kernel.mapping) {
        if (mapped.axis != plan->tiles[0]) continue;
        ++found[mapped.kind];
        if (mapped.kind == Kind::serial) CHECK(&mapped == &kernel.mapping.back());
      }
    CHECK(found[Kind::grid] > 0);
    CHECK((found[Kind::serial] > 0) == (plan->pass == Pass::backward));
  }
  CHECK(whole.forward.tiles.empty());
}

}  // namespace
}  // namespace krait
