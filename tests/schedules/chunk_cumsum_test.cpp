// Running sums and shifts over chunks, against the same graph before.
#include "tests/schedules/chunk_testing.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), a("a", 3);

TEST_CASE("chunk: every kind of running sum") {
  for (int kind = 0; kind < 32; ++kind) {
    const bool reverse = kind & 1, exclusive = kind & 2, wrap = kind & 4, initial = kind & 8,
               reset = kind & 16;
    CAPTURE(reverse, exclusive, wrap, initial, reset);
    const Graph graph = build_graph(
        [&](Scope& s) {
          RunningOptions options;
          options.reverse = reverse, options.exclusive = exclusive, options.wrap = wrap;
          if (initial) options.initial = s.state("s0", "s1", {b, a});
          if (reset) options.reset = s.input("reset", {b, t}, DType::i32);
          // What is summed is not zero where its input is.
          const Running sums = cumsum(t, exp(s.input("x", {b, t, a})), options);
          // Of a wrapped value the sine: at the seam two sums may round to either side.
          const auto seen = [&](const Expr& x) { return wrap ? sin_turns(x) + cos_turns(x) : x; };
          s.output("y", seen(sums.values), {"b", "t", "a"});
          if (initial) {
            s.leave("s1", seen(sums.last));
          } else {
            s.output("last", seen(sums.last), {"b", "a"});
          }
        },
        DType::f64);
    check_chunk(graph, {{}});
  }
}

TEST_CASE("chunk: wrapped sums stay in range, integer sums are integers") {
  const Graph graph = build_graph(
      [&](Scope& s) {
        RunningOptions options;
        options.wrap = true;
        s.output("y", cumsum(t, s.input("x", {b, t, a}), options).values, {"b", "t", "a"});
        const Running count = cumsum(t, s.input("reset", {b, t}, DType::i32));
        s.output("count", count.values, {"b", "t"});
        s.output("last", count.last, {"b"});
      },
      DType::f64);
  check_chunk(graph, {{}, {}, {}, false});
  const Graph chunked = chunk(graph, 4);
  const auto result = evaluate(chunked, random_inputs(graph, {{"b", 2}, {"t", 30}}, 9));
  for (double x : result.at("y").data) REQUIRE((x >= -0.5 && x < 0.5));
  REQUIRE(chunked.type(chunked.outputs()[1].value).dtype == DType::i32);
}

TEST_CASE("chunk: the last position of what is made of a running sum needs no other position") {
  const Graph graph = build_graph(
      [&](Scope& s) {
        const Axis one("one", 1);
        const Expr turns = cumsum(t, s.input("x", {b, t, a})).values;
        const Expr k = s.input("k", {b, t, a}) * cos_turns(turns);
        s.output("y", sum(k, a), {"b", "t"});
        s.output("last", at(tail(k, t, one), one, 0), {"b", "a"});
      },
      DType::f64);
  check_chunk(graph, {{}});
  const Graph chunked = chunk(graph, 4);
  for (const Node& node : chunked.nodes())
    if (const auto* slice = std::get_if<Slice>(&node.op); slice != nullptr && slice->from_end)
      REQUIRE(std::holds_alternative<Input>(chunked.node(node.operands[0].node).op));
}

TEST_CASE("chunk: shifts of inputs and of running sums, with and without a state") {
  const Axis w("w", 4);
  for (std::int64_t steps : {1, 3, 4, -1, -2}) {
    CAPTURE(steps);
    const Graph graph = build_graph(
        [&](Scope& s) {
          const Expr x = s.input("x", {b, t, a});
          const Expr turns = cumsum(t, x).values;
          const Expr rotated = tanh(x) * cos_turns(turns);
          s.output("fill", shift(x, t, steps, 2.0) * turns, {"b", "t", "a"});
          s.output("y", shift(rotated, t, steps) + rotated, {"b", "t", "a"});
          if (steps > 0) {
            const Expr state = s.state("s0", "s1", {b, a, w});
            s.output("z", shift(rotated, t, steps, state, w), {"b", "t", "a"});
            const Axis history("history", t.extent.plus(4));
            s.leave("s1", tail(concat({state, rotated}, {w, t}, history), history, w));
          }
        },
        DType::f64);
    check_chunk(graph, {{}});
  }
}

TEST_CASE("chunk: positions, sums over time, and a graph with nothing to chunk") {
  check_chunk(build_graph(
                  [&](Scope& s) {
                    const Expr x = s.input("x", {b, t, a});
                    const Expr sums = cumsum(t, x).values;
                    const Expr place = s.index(t) / s.size(t);
                    s.output("y", sums * place, {"b", "t", "a"});
                    s.output("mean", mean(sums, {t}), {"b", "a"});
                    s.output("most", maximum(sums, {t}), {"b", "a"});
                    s.output("dot", sum(sums * x, {t}), {"b", "a"});
                  },
                  DType::f64),
              {{}});
  const Graph plain = build_graph([&](Scope& s) {
    s.output("y", shift(s.input("x", {b, t, a}), t, 1), {"b", "t", "a"});
  });
  REQUIRE(to_text(chunk(plain, 4)) == to_text(plain));
}

}  // namespace
}  // namespace krait
