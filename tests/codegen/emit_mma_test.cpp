#include <catch2/catch.hpp>

#include "tests/codegen/harness.h"

using namespace krait;
using namespace krait::test;

namespace {

struct Shape {
  std::int64_t batch, rows, columns, sum;
};

/// Operands come from global memory into buffers on chip whose dimensions lie in a random order.
Build product(const Shape& shape, DType dtype, bool accumulate, unsigned seed) {
  Build build("product");
  build.random.seed(seed);
  auto& p = build.program;
  auto brought = [&](const char* name, std::vector<std::int64_t> extents) {
    const int n = static_cast<int>(extents.size());
    const int from = build.global(name, dtype, extents, false, build.order(n), seed % 3);
    const int to = build.chip(std::string(name) + "_tile", dtype, extents, build.order(n));
    Copy copy;
    for (std::int64_t extent : extents) copy.domain.push_back(build.var("i", extent));
    copy.source = build.at(from, copy.domain);
    copy.destination = build.at(to, copy.domain);
    p.body.push_back(copy);
    return to;
  };
  const int left = brought("left", {shape.batch, shape.rows, shape.sum});
  const int right = brought("right", {shape.batch, shape.sum, shape.columns});
  const int out = brought("out", {shape.batch, shape.rows, shape.columns});
  const int b = build.var("b", shape.batch), r = build.var("r", shape.rows),
            c = build.var("c", shape.columns), k = build.var("k", shape.sum);
  Mma mma;
  mma.batch = {b}, mma.rows = {r}, mma.columns = {c}, mma.sum = {k};
  mma.left = build.at(left, {b, r, k});
  mma.right = build.at(right, {b, k, c});
  mma.destination = build.at(out, {b, r, c});
  mma.accumulate = accumulate;
  p.body.push_back(mma);
  const int result = build.global("result", dtype, {shape.batch, shape.rows, shape.columns}, true);
  Copy back;
  for (std::int64_t extent : {shape.batch, shape.rows, shape.columns})
    back.domain.push_back(build.var("i", extent));
  back.source = build.at(out, back.domain);
  back.destination = build.at(result, back.domain);
  p.body.push_back(back);
  return build;
}

}  // namespace

TEST_CASE("products of any shape and layout match the interpreter", "[codegen][mma]") {
  const std::vector<Shape> shapes{{1, 1, 1, 1},   {1, 3, 5, 7},   {2, 12, 20, 24}, {1, 16, 16, 16},
                                  {1, 67, 33, 5}, {3, 5, 67, 12}, {1, 64, 64, 32}, {1, 24, 48, 3},
                                  {2, 1, 40, 9},  {1, 40, 1, 9},  {1, 15, 17, 1}};
  unsigned seed = 0;
  for (const Shape& shape : shapes) {
    for (bool accumulate : {false, true}) {
      ++seed;
      Build f32 = product(shape, DType::f32, accumulate, seed);
      compare(f32, random_world(f32, {}, seed), 2e-5);
      Build f64 = product(shape, DType::f64, accumulate, seed + 100);
      compare(f64, random_world(f64, {}, seed), 1e-13);
    }
  }
}

TEST_CASE("products over several variables and with broadcast batches", "[codegen][mma]") {
  // out[b, r0, r1, c0, c1] = sum over k0, k1 of left[r0, k0, r1, k1] right[b, k1, c1, k0, c0].
  for (unsigned seed : {1u, 2u, 3u, 4u}) {
    Build build("several");
    build.random.seed(seed);
    auto& p = build.program;
    auto brought = [&](const char* name, std::vector<std::int64_t> extents) {
      const int n = static_cast<int>(extents.size());
      const int from = build.global(name, DType::f32, extents, false, build.order(n));
      const int to = build.chip(std::string(name) + "_tile", DType::f32, extents, build.order(n));
      Copy copy;
      for (std::int64_t extent : extents) copy.domain.push_back(build.var("i", extent));
      copy.source = build.at(from, copy.domain);
      copy.destination = build.at(to, copy.domain);
      p.body.push_back(copy);
      return to;
    };
    const int left = brought("left", {3, 4, 5, 2}), right = brought("right", {2, 2, 6, 4, 7});
    const int out = build.chip("out", DType::f32, {2, 3, 5, 7, 6}, build.order(5));
    const int b = build.var("b", 2), r0 = build.var("r0", 3), r1 = build.var("r1", 5),
              c0 = build.var("c0", 7), c1 = build.var("c1", 6), k0 = build.var("k0", 4),
              k1 = build.var("k1", 2);
    Mma mma;
    mma.batch = {b}, mma.rows = {r0, r1}, mma.columns = {c0, c1}, mma.sum = {k0, k1};
    mma.left = build.at(left, {r0, k0, r1, k1});
    mma.right = build.at(right, {b, k1, c1, k0, c0});
    mma.destination = build.at(out, {b, r0, r1, c0, c1});
    p.body.push_back(mma);
    const int result = build.global("result", DType::f32, {2, 3, 5, 7, 6}, true);
    Copy back;
    for (std::int64_t extent : {2, 3, 5, 7, 6}) back.domain.push_back(build.var("i", extent));
    back.source = build.at(out, back.domain);
    back.destination = build.at(result, back.domain);
    p.body.push_back(back);
    compare(build, random_world(build, {}, seed), 1e-5);
  }
}
