#include <catch2/catch.hpp>

#include "dsl/error.h"
#include "dsl/expr.h"

using namespace krait;
using Catch::Matchers::Contains;

namespace {

/// One of everything.
void everything(Scope& s) {
  const Axis b("b"), t("t"), h("h", 4), k("k", 3), q("q", 16), v("v", 50);
  const Axis c("c", Extent{"t", 0, 16}), t3("t3", Extent{"t", 3, 1}), u("u", Extent{"t", 0, 1});
  auto x = s.input("x", {b, t, h});
  auto ids = s.input("ids", {b, t}, DType::i32);
  auto a = s.param("A_log", {h}, {Init::Kind::log_uniform, 1, 16});
  auto taps = s.param("taps", {h}, {Init::Kind::fan_in, 3});
  auto table = s.param("table", {v, h}, {Init::Kind::normal, 0.02});
  auto before = s.state("conv_in", "conv_out", {b, h, k});
  auto s0 = s.state("s_in", "s_out", {b, h});
  auto decay = (-exp(a)).named("decay");
  auto y = shift(x, t, 2, before, k) * taps + shift(x, t, -1, 0.5);
  auto reset = ids != shift(ids, t, 1, -1);
  auto states = scan(t, decay, y, {s0, reset});
  auto angle = cumsum(t, x, {.reset = reset, .reverse = true, .exclusive = true, .wrap = true});
  auto rows = gather(table, v, ids);
  auto chunks = split(states, t, c, q);
  auto again = rename(merge(chunks, c, q, u), u, t);
  auto late = concat({before, x}, {k, t}, t3);
  s.leave("conv_out", tail(late, t3, k));
  s.leave("s_out", states.last);
  auto all = again + sin_turns(angle.values) + rows + at(x, t, 0) + at(x, t, -1) +
             slice(late, t3, 3, t) + select(s.index(t) < 5.0, x, rows) / s.size(t);
  s.output("y", all.named("y"), {"t", "b", "h"});
  s.output("top", maximum(all, {t, h}), {"b"});
  s.output("norm", mean(square(all), {h}).named("y"), {"b", "t"});
}

}  // namespace

TEST_CASE("text of a graph, line by line") {
  Graph graph = build_graph([](Scope& s) {
    const Axis b("b"), t("t"), h("h", 4), n("n", 8);
    auto x = s.input("x", {b, t, h, n}, DType::bf16);
    auto a = s.param("A", {h}, {Init::Kind::uniform, -1, 0.5});
    auto h0 = s.state("h0", "h", {h, b, n});
    auto states = scan(t, (-exp(a)).named("decay"), x, {h0, {}});
    s.leave("h", states.last);
    s.output("y", sum(states * x * 2.0, n), {"t", "b", "h"});
  });
  CHECK(to_text(graph) ==
        "axes b, t, h = 4, n = 8\n"
        "x (b t h n) bf16 = Input data stored (b t h n)\n"
        "A (h) f32 = Input parameter stored (h), init uniform(-1, 0.5)\n"
        "h0 (b h n) f32 = Input state stored (h b n)\n"
        "%3 (h) f32 = Map exp(A)\n"
        "decay (h) f32 = Map -%3\n"
        "%5.0 (b t h n) f32, %5.1 (b t h n) f32, %5.2 (b h n) f32 = Scan t of x, log_decay decay, "
        "initial h0\n"
        "%6 (b t h) f32 = Contract sum (n) of %5.1 * x\n"
        "%7 (b t h) f32 = Map %6 * 2\n"
        "output h = %5.2 stored (h b n)\n"
        "output y = %7 stored (t b h)\n"
        "state h0 -> h\n");
  CHECK_THAT(to_dot(graph), Contains("n5 -> n6 [label=\"1\"];") && Contains("digraph") &&
                                Contains("n4 [label=\"decay (h) f32\\nMap -%3\"];") &&
                                Contains("n5 -> out0 [label=\"2\"];"));
}

TEST_CASE("text shows every op and tells equal labels apart") {
  const std::string text = to_text(build_graph(everything));
  for (const char* part : {"Shift t by 2 of x, state conv_in along k",
                           "Shift t by -1 of x, fill 0.5",
                           ", initial s_in, reset ",
                           ", reverse, exclusive, wrap",
                           "Gather v of table by ids",
                           "Split t into (c q) of ",
                           "Merge (c q) into u of ",
                           "Rename u to t of ",
                           "Concat into t3 of conv_in along k, x along t",
                           "Slice t3 from 3 before the end into k of ",
                           "Slice t at 0 of x",
                           "Slice t at 1 before the end of x",
                           "Slice t3 from 3 into t of ",
                           "Reduce max (t h) of ",
                           "size(t)",
                           "index(t)",
                           "init normal(0.02)",
                           "c = ceil(t/16)",
                           "t3 = t+3",
                           "Map !(ids == "}) {
    INFO(part);
    CHECK_THAT(text, Contains(part));
  }
  CHECK_THAT(text, Contains("\ny%") && !Contains("\ny ("));
}

TEST_CASE("the same text twice, whatever was built before") {
  const std::string first = to_text(build_graph(everything));
  build_graph([](Scope& s) { s.output("z", exp(s.input("x", {Axis("q", 5)})), {"q"}); });
  CHECK(to_text(build_graph(everything)) == first);
  CHECK(to_dot(build_graph(everything)) == to_dot(build_graph(everything)));
}

TEST_CASE("an identity copy prints the same text") {
  const Graph graph = build_graph(everything, DType::bf16);
  Graph copy;
  Rewriter rewriter(graph, copy);
  rewriter.copy_axes();
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) rewriter.copy(id);
  rewriter.copy_interface();
  verify(copy);
  CHECK(to_text(copy) == to_text(graph));
  CHECK(copy.accumulator() == graph.accumulator());
  CHECK(copy.states().size() == 2);
}

TEST_CASE("a rewrite that forgets an operand is our own error") {
  const Graph graph = build_graph(everything);
  Graph copy;
  Rewriter rewriter(graph, copy);
  rewriter.copy_axes();
  const int last = static_cast<int>(graph.nodes().size()) - 1;
  CHECK_FALSE(rewriter.has({0}));
  CHECK_THROWS_AS(rewriter.copy(last), InternalError);
  CHECK_THROWS_WITH(rewriter.at({0}), Contains("value x of node 0"));
}

TEST_CASE("prune drops what no output needs and keeps inputs") {
  Graph graph;
  graph.declare(Axis("t"));
  const Value x = graph.input({"x", {"t"}});
  graph.input({"unused", {"t"}});
  const Value dead = graph.map(ScalarOp::exp, x);
  graph.map(ScalarOp::log, dead);
  const Value kept = graph.map(ScalarOp::tanh, x);
  graph.set_label(kept, "kept");
  graph.add_output("y", kept, {"t"});
  CHECK(to_text(prune(graph)) ==
        "axes t\n"
        "x (t) f32 = Input data stored (t)\n"
        "unused (t) f32 = Input data stored (t)\n"
        "kept (t) f32 = Map tanh(x)\n"
        "output y = kept stored (t)\n");
}

TEST_CASE("the verifier accepts what is sound and names what is not") {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
    CHECK_NOTHROW(verify(build_graph(everything, dtype)));

  Graph graph;
  graph.declare(Axis("t"));
  graph.declare(Axis("h", 4));
  const Value x = graph.input({"x", {"t"}});
  const Value in = graph.input({"in", {"h"}, DType::f32, Role::state});
  graph.add_output("y", x, {"t"});
  graph.add_output("other", in, {"h"});
  verify(graph);
  SECTION("a state without an input") {
    graph.add_state("none", "y");
    CHECK_THROWS_WITH(verify(graph), Contains("state none is no input"));
  }
  SECTION("a state without an output") {
    graph.add_state("in", "none");
    CHECK_THROWS_WITH(verify(graph), Contains("none, which is no output"));
  }
  SECTION("a state of another shape") {
    graph.add_state("in", "y");
    CHECK_THROWS_WITH(verify(graph), Contains("another shape as y from node x"));
  }
  SECTION("a state that stands twice") {
    graph.add_state("in", "other");
    verify(graph);
    graph.add_state("in", "other");
    CHECK_THROWS_AS(verify(graph), InternalError);
  }
  SECTION("a node whose axis changed its meaning") {
    // The dtype of a Map without a float operand is that of the graph.
    Scalar s;
    s.finish(s.apply(ScalarOp::mul, s.index("t"), s.constant(0.5)));
    graph.set_label(graph.map(s, {}), "ramp");
    verify(graph);
    graph.set_accumulator(DType::f64);
    CHECK_THROWS_AS(verify(graph), InternalError);
    CHECK_THROWS_WITH(verify(graph), Contains("node ramp (number 2, Map)"));
  }
}
