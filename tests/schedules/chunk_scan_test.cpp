// Scans of a user's own over chunks, against the same graph before.
#include "tests/schedules/chunk_testing.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), h("h", 3), p("p", 5), n("n", 2), m("m", 2);

Graph built(const BlockFunction& block) { return build_graph(block, DType::f64); }

struct Parts {
  Expr x, B, C, decay;
};
Parts parts(Scope& s) {
  return {s.input("x", {b, t, h, p}), s.input("B", {b, t, n}), s.input("C", {b, t, n}),
          -softplus(s.input("a", {b, t, h}))};
}

TEST_CASE("chunk: a decay per head that depends on the data") {
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const ScanResult state = scan(t, decay, x * B);
                s.output("y", sum(state.leaving * C, n), {"b", "t", "h", "p"});
                s.output("last", state.last, {"b", "h", "p", "n"});
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: scores are made without the heads, where neither factor has them") {
  const Graph graph =
      chunk(built([](Scope& s) {
              const auto [x, B, C, decay] = parts(s);
              s.output("y", sum(scan(t, decay, x * B) * C, n), {"b", "t", "h", "p"});
            }),
            4);
  bool scores = false;
  for (const Node& node : graph.nodes()) {
    const auto* contract = std::get_if<Contract>(&node.op);
    if (contract != nullptr && contract->sum == AxisNames{"n"} &&
        contains(node.results[0].axes, "k")) {
      scores = true;
      REQUIRE(!contains(node.results[0].axes, "h"));
      REQUIRE(!contains(node.results[0].axes, "p"));
    }
  }
  REQUIRE(scores);
}

TEST_CASE("chunk: a constant decay, a carried state, documents") {
  for (bool documents : {false, true})
    for (bool initial : {false, true}) {
      CAPTURE(documents, initial);
      check_chunk(built([&](Scope& s) {
                    const Expr q = s.input("q", {b, t, h, n}), k = s.input("k", {b, t, h, n}),
                               v = s.input("v", {b, t, h, p});
                    const Expr decay = s.param("log_decay", {h});
                    ScanOptions options;
                    if (initial) options.initial = s.state("s0", "s1", {b, h, p, n});
                    if (documents) options.reset = s.input("reset", {b, t}, DType::i32);
                    const ScanResult state = scan(t, -exp(decay), k * v, options);
                    s.output("y", sum(state * q, n), {"b", "t", "h", "p"});
                    if (initial) s.leave("s1", state.last);
                  }),
                  {{"p", "n"}});
    }
}

TEST_CASE("chunk: documents of one position, at borders, several in a chunk") {
  const Graph graph = built([](Scope& s) {
    const auto [x, B, C, decay] = parts(s);
    const ScanResult state = scan(t, decay, x * B,
                                  {.initial = s.state("s0", "s1", {b, h, p, n}),
                                   .reset = s.input("reset", {b, t}, DType::i32)});
    s.output("y", sum(state.leaving * C, n), {"b", "t", "h", "p"});
    s.output("before", sum(state.entering * C, n), {"b", "t", "h", "p"});
    s.leave("s1", state.last);
  });
  const Graph chunked = chunk(graph, 4);
  for (std::set<int> starts : std::vector<std::set<int>>{{0},
                                                         {3},
                                                         {4},
                                                         {4, 5},
                                                         {3, 4, 7, 8},
                                                         {1, 2, 3},
                                                         {8, 9, 10, 11},
                                                         {16},
                                                         {0, 4, 8, 12, 16}}) {
    Tensors64 inputs = random_inputs(graph, {{"b", 2}, {"t", 17}}, 5);
    for (int i = 0; i < 34; ++i) inputs["reset"].data[i] = starts.count(i % 17) != 0;
    require_equal(evaluate(chunked, inputs), evaluate(graph, inputs), 1e-12);
  }
}

TEST_CASE("chunk: documents and inputs that are not zero where what they are made of is") {
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr starts = s.input("flag", {b, t}, DType::i32) == 0.0;
                const ScanResult state = scan(t, decay, exp(x) * cos_turns(B), {.reset = starts});
                s.output("y", sum(state.leaving * C, n), {"b", "t", "h", "p"});
                s.output("last", state.last, {"b", "h", "p", "n"});
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: a factor that a select puts together stays one factor") {
  const Graph graph = built([](Scope& s) {
    const auto [x, B, C, decay] = parts(s);
    const Expr even = s.input("even", {b, t, h}), odd = s.input("odd", {b, t, h});
    const Expr pairs = select(s.index(n) == 0.0, even * 2.0 - odd, even + odd);
    s.output("y", sum(scan(t, decay, x * pairs) * C, n), {"b", "t", "h", "p"});
  });
  check_chunk(graph, {{"p", "n"}});
  const Graph chunked = chunk(graph, 4);
  int products = 0;
  for (const Node& node : chunked.nodes())
    if (const auto* contract = std::get_if<Contract>(&node.op))
      products += contains(contract->sum, "k");
  REQUIRE(products == 1);
}

TEST_CASE("chunk: the state before a step") {
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const ScanResult state =
                    scan(t, decay, x * B, {.reset = s.input("reset", {b, t}, DType::i32)});
                const Expr reset = s.input("reset2", {b, t}, DType::i32);
                s.output("y", sum(state.entering * C, n), {"b", "t", "h", "p"});
                s.output("z",
                         sum(select(reset == 0.0, exp(decay) * state.entering, 0.0 * x) * C, n),
                         {"b", "t", "h", "p"});
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: an input of two products, scaled factors, a rank") {
  const Axis r("r", 2);
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr y = s.input("y", {b, t, h, p}), D = s.input("D", {b, t, h, n});
                const Expr dt = softplus(s.input("dt", {b, t, h}));
                const ScanResult state = scan(t, decay, dt * x * B - y * (D * 0.5) / (1.0 + dt));
                s.output("out", sum(state * C, n), {"b", "t", "h", "p"});
                s.output("last", state.last, {"b", "h", "p", "n"});
              }),
              {{"p", "n"}});
  check_chunk(built([&](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr v = s.input("v", {b, t, h, r, p}), k = s.input("k", {b, t, h, r, n}),
                           q = s.input("q", {b, t, h, r, n});
                const ScanResult state = scan(t, decay, contract({v, k}, {r}));
                s.output("out", contract({state.leaving, q}, {n}), {"b", "t", "h", "r", "p"});
                s.output("last", state.last, {"b", "h", "p", "n"});
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: an input masked by the user, and one without a batch or without time") {
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr on = s.input("on", {b, t}, DType::i32);
                const Expr u = select(on == 1.0, x * B, s.constant(0));
                s.output("y", sum(scan(t, decay, u) * C, n), {"b", "t", "h", "p"});
              }),
              {{"p", "n"}});
  check_chunk(
      built([](Scope& s) {
        const auto [x, B, C, decay] = parts(s);
        const Expr w = s.param("w", {n}), v = s.input("v", {t, p});
        s.output("y", sum(scan(t, decay, v * w) * C, n), {"b", "t", "h", "p"});
        s.output("z", sum(scan(t, decay, s.param("u", {p, n})) * C, n), {"b", "t", "h", "p"});
      }),
      {{"p", "n"}});
}

TEST_CASE("chunk: a decay of each key channel") {
  check_chunk(built([](Scope& s) {
                const Expr q = s.input("q", {b, t, h, n}), k = s.input("k", {b, t, h, n}),
                           v = s.input("v", {b, t, h, p});
                const Expr decay = -softplus(s.input("a", {b, t, h, n}));
                const ScanResult state =
                    scan(t, decay, k * v, {.initial = s.state("s0", "s1", {b, h, p, n})});
                s.output("y", sum(state * q, n), {"b", "t", "h", "p"});
                s.leave("s1", state.last);
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: no decay, and readers that sum either axis or both") {
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr state = scan(t, s.constant(0), x * B);
                const Expr w = s.input("w", {b, t, p});
                s.output("y", sum(state * C, n), {"b", "t", "h", "p"});
                s.output("z", contract({state, w}, {p}), {"b", "t", "h", "n"});
                s.output("both", contract({state, w, C}, {p, n}), {"b", "t", "h"});
                s.output("plain", sum(sum(state, n), p), {"b", "t", "h"});
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: what is linear in the state goes along with it") {
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr other = s.input("other", {b, t, h, p});
                const ScanResult state = scan(t, decay, x * B);
                const Expr two = -(state.leaving / (1.0 + exp(decay))) + 0.5 * state.entering;
                s.output("y", sum((two + other) * C, n), {"b", "t", "h", "p"});
                // What lacks the summed axis counts once for each of its positions.
                s.output("z", sum(two * C + other, n), {"b", "t", "h", "p"});
              }),
              {{"p", "n"}});
  const Axis e("e", 6), g("g", 2), j("j", 3), n2("n2", 2);
  check_chunk(built([&](Scope& s) {
                const Expr v = s.input("v", {b, t, e, p}), k = s.input("k", {b, t, n});
                const Expr decay = -softplus(s.input("a", {b, t, e}));
                const Expr state = rename(split(scan(t, decay, v * k), e, g, j), n, n2);
                const Expr q = s.input("q", {b, t, g, n2});
                s.output("y", merge(sum(state * q, n2), g, j, e), {"b", "t", "e", "p"});
              }),
              {{"p", "n"}, {}, {}, true});
}

TEST_CASE("chunk: terms of the input that lack axes of the state") {
  check_chunk(built([](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr plain = s.input("plain", {b, t, h}), w = s.input("w", {b, t, p});
                const ScanResult state = scan(t, decay, x * B + plain);
                s.output("y", sum(state * C, n), {"b", "t", "h", "p"});
                s.output("z", sum(state, n), {"b", "t", "h", "p"});
                s.output("both", contract({state, w}, {p, n}), {"b", "t", "h"});
                s.output("last", state.last, {"b", "h", "p", "n"});
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: state axes that are merged before the state is read") {
  const Axis e("e", 15);
  check_chunk(built([&](Scope& s) {
                const auto [x, B, C, decay] = parts(s);
                const Expr state = merge(scan(t, decay, x * B), h, p, e);
                s.output("y", sum(state * C, n) * s.input("gate", {b, t, e}), {"b", "t", "e"});
              }),
              {{"p", "n"}});
}

TEST_CASE("chunk: a vector state and a scalar state need no reader") {
  check_chunk(
      built([](Scope& s) {
        const Expr x = s.input("x", {b, t, h, p});
        const Expr decay = -softplus(s.input("a", {b, t, h}));
        const ScanResult state = scan(t, decay, x, {.initial = s.state("s0", "s1", {b, h, p})});
        s.output("y", state.leaving * sigmoid(x), {"b", "t", "h", "p"});
        s.output("z", tanh(state.entering), {"b", "t", "h", "p"});
        s.output("w", sum(state.leaving * s.param("C", {h, p}), p), {"b", "t", "h"});
        s.leave("s1", state.last);
        const Expr norm = scan(t, decay, exp(decay));
        s.output("norm", norm, {"b", "t", "h"});
      }),
      {});
}

TEST_CASE("chunk: a scan whose decay and input come from another scan") {
  const Axis d("d", 4);
  check_chunk(built([&](Scope& s) {
                Expr u = s.input("u", {b, t, d});
                for (const char* layer : {"0.", "1."}) {
                  const Scope::Prefix prefix(s, layer);
                  const Expr up = s.param("up", {d, h, p}), key = s.param("key", {d, n}),
                             query = s.param("query", {d, n}), gate = s.param("gate", {d, h}),
                             down = s.param("down", {h, p, d});
                  const Expr x = sum(u * up, d), B = sum(u * key, d), C = sum(u * query, d);
                  const Expr late = shift(B, t, 1) + shift(B, t, -1) * 0.5;
                  const Expr state = scan(t, -softplus(sum(u * gate, d)), x * late);
                  u = u + contract({sum(state * C, n) * sigmoid(x), down}, {h, p});
                }
                s.output("y", u, {"b", "t", "d"});
                s.output("total", sum(u * u, {t}), {"b", "d"});
              }),
              {{"p", "n"}, {}, {}, true, 1e-10});
}

TEST_CASE("chunk: reasons") {
  const auto reason = [](const BlockFunction& block) {
    const Graph graph = built(block);
    const auto why = why_not_chunkable(graph);
    REQUIRE(why.has_value());
    REQUIRE_THROWS_AS(chunk(graph, 8), UsageError);
    return *why;
  };
  using Catch::Contains;
  REQUIRE_THAT(reason([](Scope& s) {
                 const auto [x, B, C, decay] = parts(s);
                 const Expr raw = s.input("raw", {b, t, h}).named("raw_decay");
                 s.output("y", sum(scan(t, raw, x * B) * C, n), {"b", "t", "h", "p"});
               }),
               Contains("raw_decay") && Contains("not declared nonpositive"));
  REQUIRE_THAT(reason([](Scope& s) {
                 const auto [x, B, C, decay] = parts(s);
                 s.output("y", scan(t, decay, x * B), {"b", "t", "h", "p", "n"});
               }),
               Contains("without a sum"));
  REQUIRE_THAT(reason([](Scope& s) {
                 const auto [x, B, C, decay] = parts(s);
                 s.output("y", sum(tanh(scan(t, decay, x * B)) * C, n), {"b", "t", "h", "p"});
               }),
               Contains("without a sum"));
  REQUIRE_THAT(reason([](Scope& s) {
                 const Expr x = s.input("x", {b, t, p}), B = s.input("B", {b, t, n});
                 const Expr decay = -softplus(s.input("dt", {b, t, p})) * exp(s.param("A", {p, n}));
                 s.output("y", sum(scan(t, decay, x * B) * B, n), {"b", "t", "p"});
               }),
               Contains("every axis of its state"));
  REQUIRE_THAT(reason([](Scope& s) {
                 const Axis other("other", 3);
                 const Expr x = s.input("x", {b, t, other});
                 const Expr state = scan(other, s.constant(-1), scan(t, s.constant(-1), x));
                 s.output("y", state, {"b", "t", "other"});
               }),
               Contains("several axes"));
  const Graph graph = built([](Scope& s) {
    const auto [x, B, C, decay] = parts(s);
    s.output("y", sum(scan(t, decay, x * B) * C, n), {"b", "t", "h", "p"});
  });
  REQUIRE_THROWS_WITH(chunk(graph, 0), Contains("chunk is 0"));
  Graph reverse = differentiate(graph);
  REQUIRE_THAT(*why_not_chunkable(reverse), Contains("backwards"));
}

TEST_CASE("chunk: one chunk that starts from zero leaves no scan; text is the same twice") {
  const Axis time("t", 4);
  const auto block = [&](Scope& s) {
    const Expr x = s.input("x", {b, time, p}), B = s.input("B", {b, time, n});
    const ScanResult state = scan(time, s.constant(-1), x * B);
    s.output("y", sum(state * B, n), {"b", "t", "p"});
    s.output("last", state.last, {"b", "p", "n"});
  };
  const Graph graph = built(block), one = chunk(graph, 4);
  for (const Node& node : one.nodes()) REQUIRE(!std::holds_alternative<Scan>(node.op));
  const Tensors64 inputs = random_inputs(graph, {{"b", 2}}, 3);
  require_equal(evaluate(one, inputs), evaluate(graph, inputs), 1e-12);
  require_equal(evaluate(chunk(graph, 3), inputs), evaluate(graph, inputs), 1e-12);
  REQUIRE(to_text(one) == to_text(chunk(built(block), 4)));
}

}  // namespace
}  // namespace krait
