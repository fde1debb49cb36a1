// The chunk axis in parts: the same function, and plans whose loops run in parallel.
#include "schedules/segment.h"

#include "schedules/lower.h"
#include "schedules/normalise.h"
#include "tests/schedules/chunk_testing.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), a("a", 3);

/// That nothing runs along an axis of dynamic size but in parts.
void require_in_parts(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    const auto* scan = std::get_if<Scan>(&node.op);
    const auto* cumsum = std::get_if<Cumsum>(&node.op);
    if (scan == nullptr && cumsum == nullptr) continue;
    const std::string& axis = scan != nullptr ? scan->axis : cumsum->axis;
    const std::string& parts = scan != nullptr ? scan->parts : cumsum->parts;
    REQUIRE(graph.axis(axis).extent.is_constant() == parts.empty());
  }
}

/// Values before and after, with fewer positions than parts and with more.
void check_parts(const Graph& graph, const std::set<std::string>& negative = {},
                 double bound = 1e-12) {
  unsigned seed = 1;
  for (std::int64_t segments : {2, 3, 5, 0}) {
    const Graph cut = in_segments(graph, segments);
    require_in_parts(cut);
    for (std::int64_t length : {1, 2, 3, 4, 6, 17, 70}) {
      CAPTURE(segments, length);
      const Tensors64 inputs = random_inputs(graph, {{"b", 2}, {"t", length}}, ++seed, negative);
      require_equal(evaluate(cut, inputs), evaluate(graph, inputs), bound);
    }
  }
}

TEST_CASE("segments: every kind of running sum, and its gradient") {
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
          const Running sums = cumsum(t, s.input("x", {b, t, a}), options);
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
    check_parts(graph);
    check_parts(differentiate(graph));
  }
}

TEST_CASE("segments: sums of integers stay integers") {
  const Graph graph = build_graph(
      [&](Scope& s) {
        const Running count = cumsum(t, s.input("reset", {b, t}, DType::i32));
        s.output("count", count.values, {"b", "t"});
        s.output("last", count.last, {"b"});
      },
      DType::f64);
  check_parts(graph);
  const Graph cut = in_segments(graph, 3);
  for (const Output& output : cut.outputs()) CHECK(cut.type(output.value).dtype == DType::i32);
}

/// A scan whose entering, leaving and last values are all seen.
Graph scan_graph(bool initial, bool reset, const std::vector<Axis>& decay, bool wide_input) {
  return build_graph(
      [&](Scope& s) {
        const Axis n("n", 2);
        ScanOptions options;
        if (initial) options.initial = s.state("s0", "s1", {b, a, n});
        if (reset) options.reset = s.input("reset", {b, t}, DType::i32);
        const Expr u = wide_input ? s.input("u", {b, t, a}) * s.input("k", {b, t, n})
                                  : s.input("u", {b, a}) * s.input("k", {b, n});
        const ScanResult state = scan(t, nonpositive(s.input("decay", decay)), u, options);
        s.output("before", sum(square(state.entering), n), {"b", "t", "a"});
        s.output("y", sum(state.leaving, n), {"b", "t", "a"});
        if (initial) {
          s.leave("s1", state.last);
        } else {
          s.output("last", state.last, {"b", "a", "n"});
        }
      },
      DType::f64);
}

TEST_CASE("segments: scans, their gradients, late ones") {
  for (bool initial : {false, true})
    for (bool reset : {false, true})
      for (const std::vector<Axis>& decay : {std::vector<Axis>{b, t}, {a}, {b, t, a}}) {
        const bool along_time = decay.size() > 1;
        CAPTURE(initial, reset, along_time);
        const Graph graph = scan_graph(initial, reset, decay, true);
        check_parts(graph, {"decay"});
        const Graph gradients = differentiate(graph);
        check_parts(gradients, {"decay"});
        const Graph late = take_shifted_late(gradients);
        check_parts(late, {"decay"});
      }
  check_parts(scan_graph(true, true, {b, t}, false), {"decay"});
}

/// A running angle that turns the keys of a scan, documents, states.
void turned(Scope& s) {
  const Axis h("h", 2), n("n", 4), p("p", 5);
  const Expr reset = s.input("reset", {b, t}, DType::i32);
  const Expr angle0 = s.state("angle0", "angle", {b, h});
  const Running angle =
      cumsum(t, s.input("turn", {b, t, h}), {.initial = angle0, .reset = reset, .wrap = true});
  const Expr k = s.input("k", {b, t, n}) * cos_turns(angle.values);
  const Expr q = s.input("q", {b, t, n}) * sin_turns(angle.values);
  const Expr state0 = s.state("h0", "h", {b, h, n, p});
  const ScanResult state =
      scan(t, -softplus(s.input("f", {b, t, h})), k * s.input("v", {b, t, h, p}),
           {.initial = state0, .reset = reset});
  s.output("y", sum(state * q, n), {"b", "t", "h", "p"});
  s.leave("angle", angle.last);
  s.leave("h", state.last);
}

TEST_CASE("segments: after chunk and differentiate, at lengths around the chunk") {
  const Graph graph = build_graph(turned, DType::f64);
  unsigned seed = 5;
  for (std::int64_t size : {1, 4, 7})
    for (const Graph& before : {chunk(graph, size), differentiate(chunk(graph, size))})
      for (std::int64_t segments : {3, 0}) {
        const Graph after = in_segments(normalise(before), segments);
        require_in_parts(after);
        for (std::int64_t length :
             std::set<std::int64_t>{1, size - 1, size, size + 1, 3 * size + 5}) {
          if (length < 1) continue;
          CAPTURE(size, segments, length);
          const Tensors64 inputs = random_inputs(before, {{"b", 2}, {"t", length}}, ++seed);
          require_equal(evaluate(after, inputs), evaluate(before, inputs), 1e-11);
        }
      }
}

TEST_CASE("segments: one is the graph itself") {
  const Graph graph = chunk(build_graph(turned, DType::f64), 4);
  CHECK(to_text(in_segments(graph, 1)) == to_text(graph));
}

Lowered lowered(const std::string& schedule) {
  const Graph graph = build_graph(turned);
  return lower(graph, parse_schedule(schedule), {"y", "h"}, {"turn", "k", "q", "v", "f", "h0"});
}

/// Kernels that run along the chunk axis, by how it is cut.
std::map<AxisMapping::Kind, int> loops_over_chunks(const Plan& plan) {
  std::map<AxisMapping::Kind, int> count;
  for (const PlannedKernel& kernel : plan.kernels)
    for (const AxisMapping& axis : kernel.mapping) {
      const bool runs = std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](int node) {
        const Op& op = plan.graph.node(node).op;
        const auto* scan = std::get_if<Scan>(&op);
        const auto* cumsum = std::get_if<Cumsum>(&op);
        return (scan != nullptr && scan->axis == axis.axis) ||
               (cumsum != nullptr && cumsum->axis == axis.axis);
      });
      if (axis.axis == "c" && runs) ++count[axis.kind];
    }
  return count;
}

TEST_CASE("segments: loops over chunks are cut into as many parts as the schedule says") {
  using Kind = AxisMapping::Kind;
  const Lowered one = lowered("chunk=4"), three = lowered("chunk=4 segments=3 backward.segments=5");
  for (const Plan* plan : {&one.forward, &one.backward}) {
    CHECK(loops_over_chunks(*plan)[Kind::serial] > 0);
    CHECK(loops_over_chunks(*plan)[Kind::blocked] == 0);
  }
  for (const Plan* plan : {&three.forward, &three.backward}) {
    INFO(to_text(*plan));
    CHECK(loops_over_chunks(*plan)[Kind::serial] == 0);
    CHECK(loops_over_chunks(*plan)[Kind::blocked] > 0);
    for (const PlannedKernel& kernel : plan->kernels)
      for (const AxisMapping& axis : kernel.mapping)
        if (axis.axis == "c" && axis.kind == Kind::blocked && axis.block_axis == "segment")
          CHECK(axis.blocks == (plan->pass == Pass::forward ? 3 : 5));
  }
  CHECK(lowered("chunk=4 segments=chunks").forward.graph.axis("segment").extent ==
        Extent::constant(most_segments));
}

TEST_CASE("segments: forward keeps no state for each chunk, only for each part") {
  const Plan plan = lowered("chunk=4 segments=3").forward;
  INFO(to_text(plan));
  for (const MemoryObject& object : plan.objects) {
    AxisNames dims;
    for (const Axis& dim : object.dims) dims.push_back(dim.name);
    const bool state = contains(dims, "n") && contains(dims, "p");
    CHECK_FALSE((state && (contains(dims, "c") || contains(dims, "t"))));
    // Parts stand outside of what each holds.
    if (state && contains(dims, "segment"))
      CHECK(std::find(dims.begin(), dims.end(), "segment") <
            std::find(dims.begin(), dims.end(), "n"));
  }
}

}  // namespace
}  // namespace krait
