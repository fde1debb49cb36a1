#include "schedules/candidates.h"

#include <catch2/catch.hpp>
#include <set>

#include "dsl/error.h"
#include "dsl/expr.h"
#include "schedules/lower.h"

namespace krait {
namespace {

using Catch::Contains;

const Axis b("b"), t("t");

/// A scan of outer products; `declared`: whether its decay is known to be no growth.
Graph scan_graph(std::int64_t h, std::int64_t p, std::int64_t n, bool declared = true) {
  const Axis heads("h", h), wide("p", p), deep("n", n);
  Scope s;
  const Expr q = s.input("q", {b, t, heads, deep}), k = s.input("k", {b, t, heads, deep});
  const Expr v = s.input("v", {b, t, heads, wide}), rate = s.input("rate", {b, t, heads});
  const Expr decay = declared ? -exp(rate) : rate + 0.5;
  s.output("y", sum(scan(t, decay, k * v).entering * q, deep), {b, t, heads, wide});
  return s.finish();
}

const std::vector<std::string> kWanted{"q", "k", "v", "rate"};

Target target_of(std::int64_t threads) {
  Target target;
  target.threads = threads;
  return target;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("candidates are every legal pair of chunks, cheapest first, the same each time") {
  const Graph graph = scan_graph(4, 16, 16);
  const ScheduleRequest request{graph, {{"b", 1}, {"t", 256}}, {"y"}, kWanted};
  const std::vector<Candidate> all = candidates(request, target_of(2));
  CHECK(all.size() == 25);
  std::set<std::string> texts;
  for (const Candidate& one : all) {
    texts.insert(to_text(one.schedule));
    CHECK(one.forward.seconds > 0);
    CHECK(one.backward.seconds > 0);
    CHECK_FALSE(one.schedule.segments);
  }
  CHECK(texts.size() == all.size());
  CHECK(texts.count("chunk=16 backward.chunk=64") == 1);
  CHECK(std::is_sorted(all.begin(), all.end(),
                       [](const auto& x, const auto& y) { return x.price < y.price; }));
  const std::vector<Candidate> again = candidates(request, target_of(2));
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].schedule == again[i].schedule);
}

TEST_CASE("keys that are given stay; without gradients there is one chunk; short is not padded") {
  const Graph graph = scan_graph(4, 16, 16);
  const Sizes sizes{{"b", 1}, {"t", 256}};
  for (const Candidate& one : candidates({graph, sizes, {"y"}, kWanted}, target_of(2),
                                         parse_schedule("backward.chunk=48")))
    CHECK(one.schedule.backward_chunk == 48);
  const auto forward = candidates({graph, sizes, {}, {}}, target_of(2));
  CHECK(forward.size() == 5);
  for (const Candidate& one : forward) CHECK_FALSE(one.schedule.backward_chunk);
  for (const Candidate& one : candidates({graph, {{"b", 1}, {"t", 33}}, {}, {}}, target_of(2)))
    CHECK(*one.schedule.chunk <= 64);
}

TEST_CASE("segments are thought of where there are fewer states than threads, up to the chunks") {
  const Graph graph = scan_graph(2, 16, 16);
  const auto segments = [&](std::int64_t threads, std::int64_t batch, std::int64_t length) {
    std::set<std::int64_t> numbers;
    for (const Candidate& one :
         candidates({graph, {{"b", batch}, {"t", length}}, {}, {}}, target_of(threads)))
      numbers.insert(one.schedule.segments.value_or(1));
    return numbers;
  };
  CHECK(segments(2, 1, 512) == std::set<std::int64_t>{1});
  CHECK(segments(16, 1, 512) == std::set<std::int64_t>{1, 2, 4, 8});
  CHECK(segments(16, 4, 512) == std::set<std::int64_t>{1, 2});
  CHECK(segments(64, 1, 40) == std::set<std::int64_t>{1, 2, 3});
}

TEST_CASE("defaults fill only what is open, by the width of the states and the length") {
  const auto chosen = [](std::int64_t p, std::int64_t n, std::int64_t length,
                         const std::string& given = "", std::int64_t threads = 2) {
    const Graph graph = scan_graph(2, p, n);
    return to_text(with_defaults(parse_schedule(given),
                                 {graph, {{"b", 1}, {"t", length}}, {"y"}, kWanted},
                                 target_of(threads)));
  };
  CHECK(chosen(64, 128, 2048) == "chunk=32 backward.chunk=128");
  CHECK(chosen(128, 256, 2048) == "chunk=64 backward.chunk=256");
  CHECK(chosen(16, 16, 2048) == "chunk=16");
  CHECK(chosen(64, 128, 20) == "chunk=32");
  CHECK(chosen(64, 128, 1) == "chunk=16");
  CHECK(chosen(64, 128, 2048, "chunk=50") == "chunk=50");
  CHECK(chosen(64, 128, 2048, "backward.chunk=50") == "chunk=32 backward.chunk=50");
  CHECK(chosen(64, 128, 2048, "", 9) == "chunk=32 backward.chunk=128");
  CHECK(chosen(64, 128, 2048, "segments=1", 9) == "chunk=32 backward.chunk=128 segments=1");
  CHECK(chosen(64, 128, 64, "chunk=64", 9) == "chunk=64");
  CHECK(chosen(64, 128, 2048, "plan=step") == "plan=step");
}

TEST_CASE("sizes that nobody tells count as a long window of one row") {
  const Graph graph = scan_graph(2, 64, 128);
  const Sizes sizes = with_usual_sizes(graph, {{"b", 3}});
  CHECK(sizes == Sizes{{"b", 3}, {"t", 2048}});
  CHECK(with_usual_sizes(graph, {{"t", 5}}) == Sizes{{"b", 1}, {"t", 5}});
  CHECK(to_text(with_defaults({}, {graph, {}, {}, {}}, target_of(2))) == "chunk=32");
}

TEST_CASE("a graph without a scan has no open key") {
  Scope s;
  s.output("y", exp(s.input("x", {t})), {t});
  const Graph graph = s.finish();
  CHECK(with_defaults({}, {graph, {}, {}, {}}, target_of(8)) == Schedule{});
}

TEST_CASE("what a target or a graph does not allow is refused with the reason") {
  const Graph graph = scan_graph(2, 8, 8), growing = scan_graph(2, 8, 8, false);
  const Target target = target_of(2);
  CHECK(why_illegal(Schedule{}, graph, target) == std::nullopt);
  CHECK(why_illegal(parse_schedule("plan=step"), growing, target) == std::nullopt);
  CHECK_THAT(why_illegal(parse_schedule("plan=recurrent"), graph, target).value(),
             Contains("plan=recurrent is not on this device (host) yet; allowed: plan=chunks"));
  CHECK_THAT(why_illegal(Schedule{}, growing, target).value(),
             Contains("plan=chunks needs a graph that can be chunked"));
  CHECK_THAT(error_of([&] {
               candidates({growing, {}, {}, {}}, target);
             }),
             Contains("can be chunked"));
  CHECK_THAT(error_of([&] {
               candidates({graph, {}, {}, {}}, target, parse_schedule("plan=step"));
             }),
             Contains("allowed: plan=chunks"));
}

TEST_CASE("more on chip than a kernel may keep, or more temporaries than memory, is refused") {
  const Graph graph = scan_graph(2, 16, 16);
  const Sizes sizes{{"b", 1}, {"t", 4096}};
  const Schedule schedule = parse_schedule("chunk=4096");
  const Lowered plans = lower(graph, schedule, {"y"}, kWanted);
  Target target = target_of(2);
  CHECK(why_illegal(plans.forward, sizes, target) == std::nullopt);
  CHECK_NOTHROW(require_legal(plans.backward, sizes, target));

  target.scratch_limit = 32 << 20;
  const std::string reason = why_illegal(plans.forward, sizes, target).value();
  CHECK_THAT(reason, Contains("bytes on chip at once; allowed: a smaller chunk"));
  CHECK_THAT(reason, Contains("33554432"));
  CHECK_THAT(error_of([&] { require_legal(plans.forward, sizes, target); }),
             Contains("schedule \"chunk=4096\": kernel "));
  const ScheduleRequest request{graph, sizes, {"y"}, kWanted};
  CHECK_THAT(error_of([&] { candidates(request, target, schedule); }), Contains("on chip at once"));

  target.scratch_limit = 1 << 20;
  const auto legal = candidates(request, target);
  CHECK(legal.size() > 0);
  target.scratch_limit = 64 << 10;  // allows some chunks only
  CHECK(candidates(request, target).size() < legal.size());

  target = target_of(2);
  target.memory_bytes = 1000;
  const Lowered small = lower(graph, parse_schedule("chunk=16"), {"y"}, kWanted);
  CHECK_THAT(why_illegal(small.backward, sizes, target).value(),
             Contains("temporaries of the backward pass would take "));
}

TEST_CASE("a chunk beyond all bounds is refused, not computed") {
  const Graph graph = scan_graph(2, 16, 16);
  const Plan plan = lower(graph, parse_schedule("chunk=1048576"), {}, {}).forward;
  CHECK(why_illegal(plan, {{"b", 1}, {"t", 100}}, target_of(2)).has_value());
}

}  // namespace
}  // namespace krait
