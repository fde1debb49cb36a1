#include "schedules/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "dsl/error.h"
#include "dsl/expr.h"
#include "schedules/partition.h"

namespace krait {
namespace {

MemoryObject temporary(const std::string& name, std::int64_t size, int first, int last) {
  return {MemoryObject::Kind::temporary, name, DType::f32, {Axis(name, size)}, {1}, first, last};
}

/// Two loops over t, one each way: what the first gives stands in memory, t * n elements.
Plan small_plan() {
  const Axis t("t"), n("n", 5);
  Scope s;
  const Expr x = s.input("x", {t, n});
  s.output("y", cumsum(t, cumsum(t, x).values, {.reverse = true}).values, {t, n});
  s.output("total", sum(x * x, {t, n}), std::initializer_list<Axis>{});
  Plan plan = partition(s.finish(), {}, Pass::forward);
  return plan;
}

TEST_CASE("an arena keeps apart what lives together, aligned, and reuses what is over") {
  Plan plan;
  plan.objects = {temporary("a", 100, 0, 1), temporary("b", 30, 1, 2), temporary("c", 100, 2, 3),
                  temporary("d", 1, 0, 3), temporary("unused", 7, -1, -1)};
  plan.objects.push_back(temporary("x", 9, 0, 3));
  plan.objects.back().kind = MemoryObject::Kind::input;
  const Arena result = arena(plan, {});
  REQUIRE(result.offset.size() == 6);
  CHECK(result.offset[4] == -1);
  CHECK(result.offset[5] == -1);
  for (int i = 0; i < 4; ++i) {
    CHECK(result.offset[i] % 64 == 0);
    CHECK(result.offset[i] + plan.objects[i].bytes({}) <= result.bytes);
    for (int j = 0; j < i; ++j) {
      const MemoryObject &a = plan.objects[i], &b = plan.objects[j];
      if (a.first_kernel > b.last_kernel || b.first_kernel > a.last_kernel) continue;
      INFO(a.name << " and " << b.name);
      CHECK((result.offset[i] >= result.offset[j] + b.bytes({}) ||
             result.offset[j] >= result.offset[i] + a.bytes({})));
    }
  }
  CHECK(result.offset[0] == result.offset[2]);  // a is over when c begins
  CHECK(result.bytes == 448 + 128 + 64);
}

TEST_CASE("sizes beyond 63 bits are the caller's error") {
  MemoryObject object = temporary("a", 1 << 20, 0, 0);
  object.dims.push_back(Axis("t"));
  object.dims.push_back(Axis("u"));
  object.strides = {0, 0, 0};
  CHECK(object.bytes({{"t", 3}, {"u", 5}}) == 4 * 15 * (std::int64_t{1} << 20));
  CHECK_THROWS_AS(object.bytes({{"t", std::int64_t{1} << 30}, {"u", std::int64_t{1} << 30}}),
                  UsageError);
}

TEST_CASE("a plan's text is stable and names what stands in memory") {
  const Plan plan = small_plan();
  const std::string text = to_text(plan);
  CHECK(text == to_text(small_plan()));
  CHECK(text.find("input x f32 [t, n 5 by 1]") != std::string::npos);
  CHECK(text.find("store @") != std::string::npos);
  CHECK(plan.find_object(MemoryObject::Kind::output, "y") >= 0);
  CHECK(plan.find_object(MemoryObject::Kind::input, "y") == -1);
}

TEST_CASE("the verifier refuses plans that are broken in one place") {
  const Plan good = small_plan();
  CHECK_NOTHROW(verify(good));
  const auto broken = [&](const std::function<void(Plan&)>& spoil) {
    Plan plan = good;
    spoil(plan);
    CHECK_THROWS_AS(verify(plan), InternalError);
  };
  const int input = good.find_object(MemoryObject::Kind::input, "x");
  const int output = good.find_object(MemoryObject::Kind::output, "y");
  std::size_t writer = 0;
  for (std::size_t i = 0; i < good.kernels.size(); ++i)
    for (const auto& [value, view] : good.kernels[i].stores)
      if (view.object == output) writer = i;
  broken([&](Plan& plan) { plan.kernels[writer].stores.clear(); });
  broken([&](Plan& plan) { plan.kernels[writer].nodes.clear(); });
  broken([&](Plan& plan) { plan.kernels[writer].loads.clear(); });
  broken([&](Plan& plan) { plan.kernels[writer].stores[0].second.object = input; });
  broken([&](Plan& plan) { plan.kernels[writer].stores[0].second.dims.pop_back(); });
  broken([&](Plan& plan) { plan.kernels[writer].stores[0].second.dims[1].extent.offset = 6; });
  broken([&](Plan& plan) {
    plan.kernels[writer].stores[0].second.dims[0].index.terms[0].first = "nowhere";
  });
  broken([&](Plan& plan) { plan.kernels[writer].loads.begin()->second[0].keep = true; });
  broken([&](Plan& plan) {
    plan.kernels[writer].mapping.push_back({"t", AxisMapping::Kind::grid, false, 1, ""});
    plan.kernels[writer].mapping.push_back({"t", AxisMapping::Kind::grid, false, 1, ""});
  });
  broken([&](Plan& plan) {
    for (AxisMapping& axis : plan.kernels[writer].mapping)
      if (axis.axis == "t") axis.reverse = !axis.reverse;
  });
  broken([&](Plan& plan) { std::reverse(plan.kernels.begin(), plan.kernels.end()); });
  broken([&](Plan& plan) { plan.objects[0].strides.push_back(1); });
  broken([&](Plan& plan) {
    for (MemoryObject& object : plan.objects)
      if (object.kind == MemoryObject::Kind::temporary) object.last_kernel = -1;
  });
}

}  // namespace
}  // namespace krait
