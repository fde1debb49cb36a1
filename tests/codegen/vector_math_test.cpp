#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numbers>

#include "tests/codegen/harness.h"

using namespace krait;
using namespace krait::test;

namespace {

struct Function {
  ScalarOp op;
  long double (*exact)(long double);
  double bound32, bound64;  // units in the last place
  bool absolute = false;    // then the bound is the difference itself
};

// Turns are folded to a quarter first, exactly: pi itself is not a long double.
long double sin_turns(long double x) {
  long double r = x - std::round(x);
  if (std::fabs(r) > 0.25L) r = std::copysign(0.5L, r) - r;
  return std::sin(2 * std::numbers::pi_v<long double> * r);
}
long double cos_turns(long double x) { return sin_turns(0.25L - std::fabs(x - std::round(x))); }

const std::vector<Function> functions{
    {ScalarOp::exp, [](long double x) { return std::exp(x); }, 1, 1.1},
    {ScalarOp::exp_nonpositive, [](long double x) { return x > 0 ? 1 : std::exp(x); }, 1, 1.1},
    {ScalarOp::log, [](long double x) { return std::log(x); }, 1.5, 1.5},
    {ScalarOp::log1p, [](long double x) { return std::log1p(x); }, 2, 2},
    {ScalarOp::expm1, [](long double x) { return std::expm1(x); }, 2, 2.1},
    {ScalarOp::tanh, [](long double x) { return std::tanh(x); }, 2, 2},
    {ScalarOp::sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 2, 2.3},
    {ScalarOp::softplus, [](long double x) { return x > 20 ? x : std::log1p(std::exp(x)); }, 2.5,
     2.5},
    {ScalarOp::sin_turns, sin_turns, 2, 2},
    {ScalarOp::cos_turns, cos_turns, 1e-7, 3e-16, true},
    {ScalarOp::sqrt, [](long double x) { return std::sqrt(x); }, 0.5, 0.5},
    {ScalarOp::rsqrt, [](long double x) { return 1 / std::sqrt(x); }, 1.5, 1.5},
};

/// One kernel: y = op(x) over `count` numbers.
Build map_of(ScalarOp op, DType dtype, std::int64_t count) {
  Build build("maths");
  const int x = build.global("x", dtype, {count}, false),
            y = build.global("y", dtype, {count}, true);
  MapTile map;
  map.domain = {build.var("i", count)};
  map.operands = {build.at(x, map.domain)}, map.destinations = {build.at(y, map.domain)};
  map.compute = dtype;
  Scalar scalar;
  scalar.finish(scalar.apply(op, scalar.operand(0)));
  map.results = {scalar};
  build.program.body.push_back(map);
  return build;
}

/// Numbers of every size and sign that matters, dense where the functions bend.
std::vector<double> sweep(DType dtype) {
  std::vector<double> all{0.0,  -0.0, INFINITY, -INFINITY, NAN, 1,    -1,    0.5,   -0.5,   0.25,
                          0.75, 20,   -20,      88.7,      89,  -104, -87.4, 709.7, -745.1, 1e30};
  std::mt19937_64 random(3);
  auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const int deepest = dtype == DType::f32 ? -149 : -1074,
            highest = dtype == DType::f32 ? 127 : 1023;
  for (int i = 0; i < 30000; ++i) {
    const double sign = i % 2 == 0 ? 1 : -1;
    all.push_back(sign * std::ldexp(uniform(1, 2), static_cast<int>(uniform(deepest, highest))));
    all.push_back(sign * std::ldexp(uniform(1, 2), static_cast<int>(uniform(-30, 3))));
    all.push_back(uniform(-2, 2));
    all.push_back(uniform(-120, 100));
    all.push_back(uniform(-760, 720));
    all.push_back(1 + sign * std::ldexp(uniform(1, 2), static_cast<int>(uniform(-30, -1))));
  }
  for (double& x : all) x = rounded(x, dtype);
  return all;
}

/// |got - want| in units in the last place of `want`; denormals share the unit of the smallest
/// normal number.
long double ulps(double got, long double want, DType dtype) {
  const int mantissa = dtype == DType::f32 ? 23 : 52, lowest = dtype == DType::f32 ? -126 : -1022;
  const int exponent = want == 0 ? lowest : std::max(lowest, std::ilogb(want));
  return std::fabs(got - want) / std::ldexp(1.0L, exponent - mantissa);
}

}  // namespace

TEST_CASE("vector maths keeps its bounds in every width", "[codegen][math]") {
  for (DType dtype : {DType::f32, DType::f64}) {
    const std::vector<double> inputs = sweep(dtype);
    const double largest = dtype == DType::f32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
    for (const Function& f : functions) {
      const Build build = map_of(f.op, dtype, static_cast<std::int64_t>(inputs.size()));
      World world = random_world(build);
      world.pointers[0] = inputs;
      for (const VectorTarget& target : targets()) {
        const Ran ran = run_on_host(build.program, world, target);
        long double worst = 0;
        double where = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          const double x = inputs[i], got = ran.pointers[1][i];
          const long double want = f.exact(x);
          INFO(name(f.op) << '(' << x << ") = " << got << ", expected " << double(want) << " in "
                          << name(dtype) << " by " << target.vector_bits);
          if (std::isinf(x) && f.absolute) {
            REQUIRE(std::isnan(got));
            continue;
          }
          if (std::isnan(want) != std::isnan(got)) REQUIRE(std::isnan(want) == std::isnan(got));
          if (std::isnan(want)) continue;
          if (std::fabs(want) > largest) {
            // Between the largest number and twice it either may come of rounding.
            if (std::fabs(got) < largest) REQUIRE(std::isinf(got));
            continue;
          }
          if (std::isinf(want) || std::isinf(got)) {
            if (got != static_cast<double>(want)) REQUIRE(got == static_cast<double>(want));
            continue;
          }
          const long double error = f.absolute ? std::fabs(got - want) : ulps(got, want, dtype);
          if (error > worst) worst = error, where = x;
        }
        INFO(name(f.op) << " at " << where << " in " << name(dtype) << " by "
                        << target.vector_bits);
        CHECK(worst <= (dtype == DType::f32 ? f.bound32 : f.bound64));
      }
    }
  }
}

TEST_CASE("one lane of vector maths equals every other", "[codegen][math]") {
  // The same numbers computed in vectors, in a masked rest, and one at a time: bit for bit.
  const std::vector<double> inputs{0.3, -0.7, 5, NAN, -12, 1e-20, INFINITY, 1, 0.9, -1e-3, 40};
  for (const Function& f : functions) {
    for (DType dtype : {DType::f32, DType::f64}) {
      const Build build = map_of(f.op, dtype, 11);
      World world = random_world(build);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        world.pointers[0][i] = rounded(inputs[i], dtype);
      std::vector<std::vector<double>> all;
      for (const VectorTarget& target : targets())
        all.push_back(run_on_host(build.program, world, target).pointers[1]);
      const Build single = map_of(f.op, dtype, 1);
      std::vector<double> one_by_one;
      for (double x : world.pointers[0]) {
        World one = random_world(single);
        one.pointers[0] = {x};
        one_by_one.push_back(run_on_host(single.program, one, targets()[0]).pointers[1][0]);
      }
      all.push_back(one_by_one);
      for (const auto& other : all)
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          INFO(name(f.op) << '(' << inputs[i] << ')');
          REQUIRE((other[i] == all[0][i] || (std::isnan(other[i]) && std::isnan(all[0][i]))));
        }
    }
  }
}
