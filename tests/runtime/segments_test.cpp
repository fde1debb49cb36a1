// Segments on the host: any length, more parts than chunks and fewer, and nothing is compiled anew.
#include "schedules/partition.h"
#include "schedules/segment.h"
#include "tests/runtime/layers.h"

namespace krait {
namespace {

const Axis b("b"), t("t");

/// A running angle that turns the keys of a scan, and a sum that runs beside it.
void turned(Scope& s) {
  const Axis h("h", 2), n("n", 8), p("p", 5);
  const Expr angle0 = s.state("angle0", "angle", {b, h});
  const Running angle = cumsum(t, s.input("turn", {b, t, h}), {.initial = angle0, .wrap = true});
  const Expr k = s.input("k", {b, t, n}) * cos_turns(angle.values);
  const Expr q = s.input("q", {b, t, n}) * sin_turns(angle.values);
  const Expr rate = s.param("rate", {h}, {Init::Kind::uniform, -1, 1});
  const Expr f = s.input("f", {b, t, h}), v = s.input("v", {b, t, h, p});
  const Expr state0 = s.state("h0", "h", {b, h, n, p});
  const ScanResult state = scan(t, -softplus(f + rate), k * v, {.initial = state0});
  const Expr count = cumsum(t, square(f), {.exclusive = true}).values;
  s.output("y", sum(state * q, n) + 0.1 * tanh(count), {b, t, h, p});
  s.leave("angle", sin_turns(angle.last));
  s.leave("h", state.last);
}

/// A scan on the graph's own axis, whose decay does not vary along it: no chunks, only parts.
TEST_CASE("segments on the host: a decay that does not vary in time, sums from the end") {
  const Axis h("h", 3);
  const Graph graph = build_graph(
      [&](Scope& s) {
        const Expr decay = -exp(s.input("rate", {h})), reset = s.input("reset", {b, t}, DType::i32);
        const ScanResult state = scan(t, decay, s.input("x", {b, t, h}), {.reset = reset});
        s.output("y", state.leaving, {b, t, h});
        s.output("last", state.last, {b, h});
        const Running back = cumsum(t, s.input("z", {b, t, h}),
                                    {.initial = s.input("after", {b, h}),
                                     .reset = reset,
                                     .reverse = true,
                                     .exclusive = true});
        s.output("back", back.values, {b, t, h});
        s.output("first", back.last, {b, h});
      },
      DType::f64);
  const Executor executor(partition(in_segments(graph, 4), {}, Pass::forward), test_device());
  for (std::int64_t length : {1, 3, 4, 9, 33}) {
    INFO("t " << length);
    Tensor64 reset({2, length});
    for (std::int64_t i = 0; i < reset.count(); ++i) reset.data[i] = i % 7 == 5;
    const Tensors64 inputs = random_inputs(graph, {{"b", 2}, {"t", length}}, 3, {{"reset", reset}});
    check_close(run_plan(executor, inputs), evaluate(graph, inputs), 1e-13);
  }
}

TEST_CASE(
    "segments on the host: outputs outputs and gradients, any length, nothing compiled anew") {
  for (const char* schedule : {"chunk=4 segments=3", "chunk=4 segments=chunks",
                               "chunk=8 backward.chunk=4 segments=2 backward.segments=5"})
    for (DType dtype : {DType::f64, DType::f32}) {
      LayerOptions options;
      options.dtype = dtype;
      options.schedule = parse_schedule(schedule);
      options.on = test_device();
      const Layer layer(turned, options);
      const Compiler::Counters built = options.on->compiler().counters();
      for (std::int64_t length : {1, 3, 4, 5, 17, 61, 300}) {
        INFO(schedule << " " << name(dtype) << " t " << length);
        const Tensors64 inputs =
            random_inputs(layer.graph(), {{"b", length > 100 ? 1 : 2}, {"t", length}}, 4);
        check_layer(layer, inputs, dtype == DType::f64 ? 1e-12 : 1e-5);
      }
      CHECK(options.on->compiler().counters().compiled == built.compiled);
    }
}

}  // namespace
}  // namespace krait
