#include "schedules/cost.h"

#include <catch2/catch.hpp>

#include "dsl/error.h"
#include "dsl/expr.h"
#include "schedules/lower.h"

namespace krait {
namespace {

using Catch::Contains;

const Axis b("b"), t("t");

/// A scan of outer products with h heads, states of p n.
Graph scan_graph(std::int64_t h, std::int64_t p, std::int64_t n) {
  const Axis heads("h", h), wide("p", p), deep("n", n);
  Scope s;
  const Expr q = s.input("q", {b, t, heads, deep}), k = s.input("k", {b, t, heads, deep});
  const Expr v = s.input("v", {b, t, heads, wide}), rate = s.param("rate", {heads});
  s.output("y", sum(scan(t, -exp(rate), k * v).entering * q, deep), {b, t, heads, wide});
  return s.finish();
}

Lowered lowered(const Graph& graph, const std::string& schedule) {
  return lower(graph, parse_schedule(schedule), {"y"}, {"q", "k", "v", "rate"});
}

/// y = sum over k of x w, nothing else.
Plan product_plan(std::int64_t m, std::int64_t k) {
  const Axis rows("m", m), inner("k", k);
  Scope s;
  const Expr x = s.input("x", {t, inner}), w = s.param("w", {rows, inner});
  s.output("y", sum(x * w, inner), {t, rows});
  return lower(s.finish(), {}, {}, {}).forward;
}

TEST_CASE("a product costs two operations a term, and its operands and its result in bytes") {
  const Target target;
  const Cost found = cost(product_plan(32, 48), {{"t", 100}}, target);
  REQUIRE(found.kernels.size() == 1);
  CHECK(found.kernels[0].product_flops == 2.0 * 100 * 32 * 48);
  CHECK(found.kernels[0].element_flops == 0);
  CHECK(found.bytes == 4.0 * (100 * 48 + 32 * 48 + 100 * 32));
  CHECK(found.arena_bytes == 0);
}

TEST_CASE("a fused kernel counts what each grid point repeats, and the weight of its functions") {
  const Axis n("n", 8);
  Scope s;
  const Expr x = s.input("x", {t, n}), a = s.input("a", {n});
  s.output("y", x + exp(a), {t, n});
  const Plan plan = lower(s.finish(), {}, {}, {}).forward;
  const Cost ten = cost(plan, {{"t", 10}}, {}), twenty = cost(plan, {{"t", 20}}, {});
  REQUIRE(ten.kernels.size() == 1);
  // One exponential and one sum for each of t n: the kernel's points are positions of t.
  Scalar both;
  both.finish(
      both.apply(ScalarOp::add, both.operand(0), both.apply(ScalarOp::exp, both.operand(1))));
  CHECK(ten.kernels[0].element_flops == 80 * weight(both));
  CHECK(twenty.kernels[0].element_flops == 160 * weight(both));
  CHECK(ten.kernels[0].grid * 2 == twenty.kernels[0].grid);
  CHECK(ten.bytes == 4 * (80 + 8 + 80));
}

TEST_CASE("functions weigh more than sums, and leaves nothing") {
  const auto weight_of = [](ScalarOp op) {
    Scalar scalar;
    scalar.finish(scalar.apply(op, scalar.operand(0), arity(op) > 1 ? scalar.operand(1) : -1));
    return weight(scalar);
  };
  CHECK(weight_of(ScalarOp::add) == 1);
  CHECK(weight_of(ScalarOp::exp) > 4 * weight_of(ScalarOp::mul));
  CHECK(weight_of(ScalarOp::softplus) > weight_of(ScalarOp::exp));
  CHECK(weight_of(ScalarOp::nonpositive) == 0);
  Scalar leaf;
  leaf.finish(leaf.operand(0));
  CHECK(weight(leaf) == 0);
}

TEST_CASE("every cost grows with the length, the heads and the width of the states") {
  const Target target;
  const auto both = [&](std::int64_t h, std::int64_t p, std::int64_t n, std::int64_t length) {
    const Lowered plans = lowered(scan_graph(h, p, n), "chunk=32");
    const Sizes sizes{{"b", 2}, {"t", length}};
    return std::pair(cost(plans.forward, sizes, target), cost(plans.backward, sizes, target));
  };
  const auto base = both(4, 16, 16, 256);
  for (const auto& more :
       {both(4, 16, 16, 512), both(8, 16, 16, 256), both(4, 32, 16, 256), both(4, 16, 32, 256)})
    for (const auto& [small, large] :
         {std::pair(base.first, more.first), std::pair(base.second, more.second)}) {
      CHECK(small.flops < large.flops);
      CHECK(small.bytes < large.bytes);
      CHECK(small.seconds < large.seconds);
      CHECK(small.arena_bytes <= large.arena_bytes);
    }
}

TEST_CASE("what a kernel keeps on chip grows with the chunk, states in memory become fewer") {
  const Graph graph = scan_graph(4, 64, 64);
  const Sizes sizes{{"b", 1}, {"t", 2048}};
  Cost before;
  for (const char* chunk : {"chunk=16", "chunk=64", "chunk=256"}) {
    const Cost next = cost(lowered(graph, chunk).backward, sizes, {});
    if (!before.kernels.empty()) {
      CHECK(next.scratch_bytes > before.scratch_bytes);
      CHECK(next.flops > before.flops);
    }
    before = next;
  }
  CHECK(cost(lowered(graph, "chunk=64").backward, sizes, {}).arena_bytes <
        cost(lowered(graph, "chunk=16").backward, sizes, {}).arena_bytes);
}

TEST_CASE("threads help as far as there are grid points for them") {
  const Plan plan = lowered(scan_graph(4, 64, 64), "chunk=64").forward;
  const auto seconds = [&](std::int64_t threads, std::int64_t batch) {
    Target target;
    target.threads = threads;
    return cost(plan, {{"b", batch}, {"t", 1024}}, target).seconds;
  };
  CHECK(seconds(2, 1) < 0.6 * seconds(1, 1));
  CHECK(seconds(4, 1) < seconds(2, 1));
  CHECK(seconds(16, 1) > 0.95 * seconds(4, 1));
  CHECK(seconds(16, 4) < 0.5 * seconds(4, 4));
}

TEST_CASE("time follows each rate of the target") {
  const Plan plan = lowered(scan_graph(4, 64, 64), "chunk=64").forward;
  const Sizes sizes{{"b", 1}, {"t", 1024}};
  const Target base;
  const double usual = cost(plan, sizes, base).seconds;
  const auto slower = [&](auto change) {
    Target target = base;
    change(target);
    return cost(plan, sizes, target).seconds > usual;
  };
  CHECK(slower([](Target& target) { target.vector_bits /= 2; }));
  CHECK(slower([](Target& target) { target.cycles_per_second /= 2; }));
  CHECK(slower([](Target& target) { target.l1_bytes = target.l2_bytes = 1024; }));
  CHECK(slower([](Target& target) { target.memory_bytes_per_second = 1e8; }));
  CHECK(slower([](Target& target) { target.launch_seconds *= 2; }));
}

TEST_CASE(
    "the text of a cost names kernels and sums; a size that is missing is the caller's error") {
  const Plan plan = product_plan(32, 48);
  const std::string text = to_text(cost(plan, {{"t", 100}}, {}));
  CHECK_THAT(text, Contains("kernel " + plan.kernels[0].name + ": grid "));
  CHECK_THAT(text, Contains("1 kernels, "));
  CHECK(text == to_text(cost(product_plan(32, 48), {{"t", 100}}, {})));
  CHECK_THROWS_AS(cost(plan, {}, {}), UsageError);
}

}  // namespace
}  // namespace krait
