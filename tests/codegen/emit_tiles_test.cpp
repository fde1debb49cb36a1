#include <catch2/catch.hpp>

#include "tests/codegen/harness.h"

using namespace krait;
using namespace krait::test;

namespace {

const std::vector<std::int64_t> odd_extents{1, 3, 5, 12, 20, 24, 67};

Scalar expression(const std::function<int(Scalar&)>& make) {
  Scalar scalar;
  scalar.finish(make(scalar));
  return scalar;
}

/// A copy between a tensor and a buffer of the same extents.
Copy whole_copy(Build& build, int to, int from, const std::vector<std::int64_t>& extents) {
  Copy copy;
  for (std::int64_t extent : extents) copy.domain.push_back(build.var("i", extent));
  copy.source = build.at(from, copy.domain);
  copy.destination = build.at(to, copy.domain);
  return copy;
}

int brought(Build& build, const std::string& name, DType dtype,
            const std::vector<std::int64_t>& extents, DType on_chip) {
  const int n = static_cast<int>(extents.size());
  const int from = build.global(name, dtype, extents, false, build.order(n), build.random() % 3);
  const int to = build.chip(name + "_tile", on_chip, extents, build.order(n));
  build.program.body.push_back(whole_copy(build, to, from, extents));
  return to;
}

void given_back(Build& build, int buffer, DType dtype, const std::vector<std::int64_t>& extents) {
  const int to = build.global("out" + std::to_string(buffer), dtype, extents, true,
                              build.order(static_cast<int>(extents.size())), build.random() % 3);
  build.program.body.push_back(whole_copy(build, to, buffer, extents));
}

std::int64_t small(Build& build) { return 1 + static_cast<std::int64_t>(build.random() % 5); }
std::int64_t pick(Build& build) { return odd_extents[build.random() % odd_extents.size()]; }

}  // namespace

TEST_CASE("copies between dtypes and layouts", "[codegen][copy]") {
  const std::vector<DType> floats{DType::f32, DType::f64, DType::bf16, DType::f16};
  unsigned seed = 0;
  for (DType from : floats) {
    for (DType to : floats) {
      Build build("copies");
      build.random.seed(++seed);
      for (int i = 0; i < 3; ++i) {
        const std::vector<std::int64_t> extents{pick(build), pick(build), small(build)};
        const int tile = brought(build, "x" + std::to_string(i), from, extents,
                                 i == 0 ? from : accumulator(wider(from, to)));
        given_back(build, tile, to, extents);
      }
      compare(build, random_world(build, {}, seed), 0);
    }
  }
}

TEST_CASE("half precision is rounded to the nearest, infinities and NaN stay", "[codegen][copy]") {
  for (DType dtype : {DType::bf16, DType::f16}) {
    Build build("rounding");
    const int from = build.global("x", DType::f32, {40}, false);
    const int to = build.global("y", dtype, {40}, true);
    build.program.body.push_back(whole_copy(build, to, from, {40}));
    World world = random_world(build);
    const std::vector<double> hard{0.0,         -0.0,      1 + 0x1p-8, 1 + 0x3p-8,
                                   1 + 0x1p-11, INFINITY,  -0x1.8p127, 0x1.fffffep127,
                                   NAN,         -INFINITY, 0x1.8p-24,  65520};
    std::copy(hard.begin(), hard.end(), world.pointers[0].begin());
    compare(build, world, 0);
  }
}

TEST_CASE("maps over integers, positions, sizes and masks", "[codegen][map]") {
  for (DType compute : {DType::f32, DType::f64}) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
      Build build("maps");
      build.random.seed(seed);
      const std::int64_t m = pick(build), n = pick(build);
      const int x = brought(build, "x", compute, {m, n}, compute);
      const int row = brought(build, "row", compute, {m}, compute);
      const int count = brought(build, "count", DType::i32, {n}, DType::i32);
      const int y = build.chip("y", compute, {m, n}, build.order(2));
      const int z = build.chip("z", compute, {m, n}, build.order(2));
      const int whole = build.chip("whole", DType::i32, {m, n}, build.order(2));
      const int mask = build.chip("mask", DType::i32, {m, n}, build.order(2));
      const int i = build.var("i", m), j = build.var("j", n);
      using enum ScalarOp;
      MapTile map;
      map.domain = {i, j};
      map.compute = compute;
      map.operands = {build.at(x, {i, j}), build.at(row, {i}), build.at(count, {j})};
      map.positions = {{"q", Index::variable(i, 2) + Index::of(1)}, {"k", Index::variable(j)}};
      // y = k <= q ? min(x, row) * |x| - sqrt(1 + x x) : wrap(7 x) / (2 + count)
      map.results.push_back(expression([](Scalar& s) {
        int a = s.operand(0), b = s.operand(1), c = s.operand(2);
        int left = s.apply(mul, s.apply(min, a, b), s.apply(abs, a));
        left = s.apply(sub, left, s.apply(sqrt, s.apply(add, s.constant(1), s.apply(mul, a, a))));
        int right = s.apply(wrap, s.apply(mul, s.constant(7), a));
        right = s.apply(div, right, s.apply(add, s.constant(2), c));
        return s.apply(select, s.apply(less_equal, s.index("k"), s.index("q")), left, right);
      }));
      // z = max(x, -row) + floor(3 x) * rsqrt(2 + row) + t
      map.results.push_back(expression([](Scalar& s) {
        int a = s.operand(0), b = s.operand(1);
        int scale = s.apply(rsqrt, s.apply(add, s.constant(2), b));
        int sum = s.apply(mul, s.apply(floor, s.apply(mul, s.constant(3), a)), scale);
        sum = s.apply(add, s.apply(max, a, s.apply(neg, b)), sum);
        return s.apply(add, sum, s.extent(Extent{"t", 3, 4}));
      }));
      // floor((count - 5 k) / 3) + max(q, k)
      map.results.push_back(expression([](Scalar& s) {
        int top = s.apply(sub, s.operand(2), s.apply(mul, s.constant(5), s.index("k")));
        int low = s.apply(floor, s.apply(div, top, s.constant(3)));
        return s.apply(add, low, s.apply(max, s.index("q"), s.index("k")));
      }));
      // (count == 2 and not x < 0) or k == q
      map.results.push_back(expression([](Scalar& s) {
        int both = s.apply(logical_and, s.apply(equal, s.operand(2), s.constant(2)),
                           s.apply(logical_not, s.apply(less, s.operand(0), s.constant(0))));
        return s.apply(logical_or, both, s.apply(equal, s.index("k"), s.index("q")));
      }));
      for (int to : {y, z, whole, mask}) map.destinations.push_back(build.at(to, {i, j}));
      build.program.argument({TileProgram::Argument::Kind::size, "t", -1, -1});
      build.program.body.push_back(map);
      for (int to : {y, z}) given_back(build, to, compute, {m, n});
      for (int to : {whole, mask}) given_back(build, to, DType::i32, {m, n});
      compare(build, random_world(build, {{"t", 18}}, seed), compute == DType::f32 ? 2e-6 : 1e-14);
    }
  }
}

TEST_CASE("reductions over any variable, several at once", "[codegen][reduce]") {
  for (DType compute : {DType::f32, DType::f64}) {
    for (unsigned seed = 1; seed <= 12; ++seed) {
      Build build("reductions");
      build.random.seed(seed);
      const std::int64_t m = pick(build), n = pick(build), k = small(build);
      const int x = brought(build, "x", compute, {m, n, k}, compute);
      const int y = brought(build, "y", compute, {n, k}, compute);
      const int count = brought(build, "count", DType::i32, {m, n}, DType::i32);
      const int sums = brought(build, "sums", compute, {m}, compute);
      const int weighted = brought(build, "weighted", compute, {m}, compute);
      const int counts = brought(build, "counts", DType::i32, {m}, DType::i32);
      for (auto kind : {ReduceTile::Kind::sum, ReduceTile::Kind::max}) {
        ReduceTile reduce;
        const int i = build.var("i", m), j = build.var("j", n), l = build.var("l", k);
        reduce.domain = {i}, reduce.reduced = {j, l};
        reduce.kind = kind;
        reduce.compute = compute;
        reduce.accumulate = seed % 2 == 0;
        reduce.operands = {build.at(x, {i, j, l}), build.at(y, {j, l}), build.at(count, {i, j})};
        reduce.positions = {{"j", Index::variable(j)}};
        using enum ScalarOp;
        reduce.results.push_back(
            expression([](Scalar& s) { return s.apply(mul, s.operand(0), s.operand(1)); }));
        reduce.results.push_back(expression([](Scalar& s) {
          return s.apply(select, s.apply(less, s.index("j"), s.constant(10)),
                         s.apply(sub, s.operand(0), s.constant(3)), s.operand(1));
        }));
        reduce.results.push_back(expression([](Scalar& s) { return s.operand(2); }));
        for (int to : {sums, weighted, counts}) reduce.destinations.push_back(build.at(to, {i}));
        build.program.body.push_back(reduce);
      }
      for (int to : {sums, weighted}) given_back(build, to, compute, {m});
      given_back(build, counts, DType::i32, {m});
      compare(build, random_world(build, {}, seed), compute == DType::f32 ? 2e-5 : 1e-13);
    }
  }
}

TEST_CASE("a column sum keeps its domain in the vectors", "[codegen][reduce]") {
  Build build("columns");
  const int x = brought(build, "x", DType::f32, {20, 130}, DType::f32);
  const int sums = build.chip("sums", DType::f32, {130});
  ReduceTile reduce;
  const int i = build.var("i", 20), j = build.var("j", 130);
  reduce.domain = {j}, reduce.reduced = {i};
  reduce.operands = {build.at(x, {i, j})};
  reduce.results = {expression([](Scalar& s) { return s.operand(0); })};
  reduce.destinations = {build.at(sums, {j})};
  build.program.body.push_back(reduce);
  given_back(build, sums, DType::f32, {130});
  compare(build, random_world(build), 1e-5);
}

TEST_CASE("scans in both directions, with resets, ends and pairs", "[codegen][scan]") {
  for (unsigned seed = 1; seed <= 32; ++seed) {
    Build build("scans");
    build.random.seed(seed);
    const std::int64_t m = pick(build), n = pick(build);
    ScanTile scan;
    scan.reverse = (seed & 1) != 0;
    scan.exclusive = (seed & 2) != 0;
    scan.pair = (seed & 4) != 0;
    scan.wrap = (seed & 8) != 0 && !scan.pair;
    const DType dtype = scan.pair || (seed & 16) != 0 ? DType::f32 : DType::f64;
    const int x = brought(build, "x", dtype, {m, n}, dtype);
    const int initial = brought(build, "initial", dtype, {m}, dtype);
    const int reset = brought(build, "reset", DType::i32, {m, n}, DType::i32);
    const int y = build.chip("y", dtype, {m, n}, build.order(2));
    const int low = build.chip("low", dtype, {m, n}, build.order(2));
    const int last = build.chip("last", dtype, {m});
    const int i = build.var("i", m), j = build.var("j", n);
    scan.domain = {i}, scan.along = j;
    scan.source = build.at(x, {i, j});
    scan.destination = build.at(y, {i, j});
    if (scan.pair) scan.low = build.at(low, {i, j});
    scan.last = build.at(last, {i});
    if (seed % 3 != 0) scan.initial = build.at(initial, {i});
    if (seed % 5 != 0) scan.reset = build.at(reset, {i, j});
    build.program.body.push_back(scan);
    given_back(build, y, dtype, {m, n});
    given_back(build, last, dtype, {m});
    if (scan.pair) {
      // high + low in double is the sum to twice the digits.
      MapTile join;
      const int out = build.global("joined", DType::f64, {m, n}, true);
      const int a = build.var("i", m), b = build.var("j", n);
      join.domain = {a, b};
      join.compute = DType::f64;
      join.operands = {build.at(y, {a, b}), build.at(low, {a, b})};
      join.results = {
          expression([](Scalar& s) { return s.apply(ScalarOp::add, s.operand(0), s.operand(1)); })};
      join.destinations = {build.at(out, {a, b})};
      build.program.body.push_back(join);
    }
    World world = random_world(build, {}, seed);
    for (double& value : world.pointers[2]) value = value == 3;  // reset now and then
    World expected = world;
    interpret(build.program, expected);
    compare(build, world, dtype == DType::f32 ? 1e-5 : 1e-13);
    if (scan.pair) {
      const Ran ran = run_on_host(build.program, world, {512, 32});
      for (std::size_t e = 0; e < expected.pointers.back().size(); ++e)
        REQUIRE(std::fabs(ran.pointers.back()[e] - expected.pointers.back()[e]) < 1e-11);
    }
  }
}

TEST_CASE("integer scans count", "[codegen][scan]") {
  for (std::int64_t n : odd_extents) {
    Build build("counts");
    const int x = brought(build, "x", DType::i32, {n, 5}, DType::i32);
    const int y = build.chip("y", DType::i32, {n, 5}, {1, 0});
    ScanTile scan;
    const int i = build.var("i", 5), j = build.var("j", n);
    scan.domain = {i}, scan.along = j;
    scan.source = build.at(x, {j, i}), scan.destination = build.at(y, {j, i});
    build.program.body.push_back(scan);
    given_back(build, y, DType::i32, {n, 5});
    compare(build, random_world(build), 0);
  }
}
