// States that are made again on the host: the same bits as where all are kept.
#include "schedules/lower.h"
#include "tests/runtime/layer_testing.h"

namespace krait {
namespace {

const Axis b("b"), t("t");

/// Decays, states that come and go, documents, a normaliser beside the state.
void documents(Scope& s) {
  const Axis h("h", 3), n("n", 8), p("p", 5);
  const Expr reset = s.input("reset", {b, t}, DType::i32);
  const Expr decay = -softplus(s.input("f", {b, t, h}));
  const Expr k = s.input("k", {b, t, n}), q = s.input("q", {b, t, n});  // of all heads
  const Expr v = s.input("v", {b, t, h, p}), h0 = s.state("h0", "h", {b, h, n, p});
  const ScanResult state = scan(t, decay, k * v, {.initial = h0, .reset = reset});
  const ScanResult keys = scan(t, decay, k, {.reset = reset});
  s.output("y", sum(state * q, n) / (1 + square(sum(keys * q, n))), {b, t, h, p});
  s.leave("h", state.last);
}

Tensors64 inputs_of(const Graph& graph, std::int64_t length) {
  Tensor64 reset({2, length});
  for (std::int64_t i = 0; i < reset.count(); ++i) reset.data[i] = i % 13 == 6;
  return random_inputs(graph, {{"b", 2}, {"t", length}}, 7, {{"reset", reset}});
}

constexpr std::int64_t lengths[] = {1, 3, 4, 5, 12, 13, 16, 17, 41};

TEST_CASE("a layer gives the same bits however many states it keeps") {
  for (DType dtype : {DType::f32, DType::f64}) {
    const Layer all(documents, testing::layer_options(dtype, "chunk=4"));
    for (const char* schedule : {"chunk=4 save.every=8", "chunk=4 save.every=12"}) {
      if (dtype == DType::f64 && schedule != std::string("chunk=4 save.every=12")) continue;
      const Layer some(documents, testing::layer_options(dtype, schedule));
      const Plan plan =
          lower(some.graph(), parse_schedule(schedule), {"y", "h"}, {"f", "k", "q", "v", "h0"})
              .backward;
      std::size_t again = 0;
      for (const PlannedKernel& kernel : plan.kernels) again += kernel.remade.size();
      CHECK(again == 6);  // states and keys, for q; both ways, for the decay
      for (std::int64_t length : lengths) {
        INFO(name(dtype) << " " << schedule << " t " << length);
        const Tensors64 inputs = inputs_of(all.graph(), length);
        const Tensors64 cotangents = random_cotangents(all.graph(), evaluate(all.graph(), inputs));
        const testing::LayerRun expected = testing::run_layer(all, inputs, cotangents),
                                got = testing::run_layer(some, inputs, cotangents);
        for (const auto& [name, tensor] : expected.gradients) {
          INFO(name);
          CHECK(got.gradients.at(name).data == tensor.data);
        }
      }
    }
  }
}

TEST_CASE("parts of the time with few states kept: gradients are right") {
  const Layer layer(documents,
                    testing::layer_options(DType::f64, "chunk=4 segments=3 save.every=12"));
  for (std::int64_t length : lengths) {
    INFO("t " << length);
    check_layer(layer, inputs_of(layer.graph(), length), 1e-12);
  }
}

}  // namespace
}  // namespace krait
