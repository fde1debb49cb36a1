#include "runtime/executor.h"

#include <functional>

#include "dsl/error.h"
#include "dsl/expr.h"
#include "runtime/host/gemm.h"
#include "schedules/partition.h"
#include "tests/runtime/execution.h"

namespace krait {
namespace {

Plan plan_of(const Graph& graph) { return partition(graph, {}, Pass::forward); }

struct Case {
  const char* name;
  std::function<void(Scope&)> block;
};

const Axis b("b"), t("t");

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::int64_t width : {1, 5, 16, 24}) {
    const Axis n("n", width), m("m", 20);
    all.push_back({"elementwise", [=](Scope& s) {
                     const Expr x = s.input("x", {b, t, n}), w = s.param("w", {n});
                     s.output("y", silu(x * w) + exp(-square(x)) * 0.5, {b, t, n});
                     s.output("mask", select(s.index(t) <= s.index(n), x, 0 * x), {b, t, n});
                   }});
    all.push_back({"rows", [=](Scope& s) {
                     const Expr x = s.input("x", {b, t, n}), w = s.param("w", {n});
                     s.output("y", x * rsqrt(mean(square(x), {n}) + 1e-5) * w, {b, t, n});
                     s.output("top", maximum(x, {n}), {b, t});
                   }});
    all.push_back({"transposed", [=](Scope& s) {
                     const Expr x = s.input("x", {b, t, n}), z = s.input("z", {n, t, b});
                     s.output("y", x + z, {n, b, t});
                   }});
    all.push_back({"running", [=](Scope& s) {
                     const Expr x = s.input("x", {b, t, n});
                     const Running running = cumsum(t, x);
                     s.output("y", running.values, {b, t, n});
                     s.output("last", running.last, {b, n});
                     s.output("back", cumsum(t, x * x, {.reverse = true, .exclusive = true}).values,
                              {t, b, n});
                   }});
    all.push_back({"window", [=](Scope& s) {
                     const Axis k("k", 3);
                     const Expr x = s.input("x", {b, t, n}), state = s.input("state", {b, n, k});
                     s.output("y", shift(x, t, 2, state, k) * 0.5 + shift(x, t, -1), {b, t, n});
                   }});
    all.push_back({"sums", [=](Scope& s) {
                     const Expr x = s.input("x", {b, t, n}), y = s.input("y", {b, t, n});
                     s.output("dw", sum(x * y, {b, t}), {n});
                     s.output("all", sum(exp(x), {b, t, n}), std::initializer_list<Axis>{});
                   }});
  }
  return all;
}

TEST_CASE("small graphs on the host give what evaluate gives") {
  const auto device = test_device();
  for (DType dtype : {DType::f32, DType::f64})
    for (const Case& one : cases()) {
      const Graph graph = build_graph(one.block, dtype);
      const Executor executor(plan_of(graph), device);
      for (const Sizes& sizes : {Sizes{{"b", 1}, {"t", 1}}, Sizes{{"b", 3}, {"t", 37}}}) {
        INFO(one.name << " " << name(dtype) << " t " << sizes.at("t") << '\n'
                      << to_text(executor.plan()));
        const Tensors64 inputs = random_inputs(graph, sizes, 7);
        check_close(run_plan(executor, inputs), evaluate(graph, inputs),
                    dtype == DType::f64 ? 1e-13 : 2e-6);
      }
    }
}

struct ProductCase {
  const char* name;
  std::function<void(Scope&)> block;
};

std::vector<ProductCase> products() {
  const Axis d("d", 40), e("e", 48), h("h", 3);
  return {
      {"projection",
       [=](Scope& s) {
         s.output("y", contract({s.input("x", {b, t, d}), s.param("w", {e, d})}, {d}), {b, t, e});
       }},
      {"time first",
       [=](Scope& s) {
         s.output("y", contract({s.input("x", {t, b, d}), s.param("w", {d, e})}, {d}), {b, t, e});
       }},
      {"gradient of a weight",
       [=](Scope& s) {
         s.output("dw", contract({s.input("x", {b, t, d}), s.input("dy", {b, t, e})}, {b, t}),
                  {e, d});
       }},
      {"gradient, times apart",
       [=](Scope& s) {
         s.output("dw", contract({s.input("x", {b, t, d}), s.input("dy", {t, b, e})}, {b, t}),
                  {d, e});
       }},
      {"heads",
       [=](Scope& s) {
         const Axis k("k", 17);
         s.output("y", contract({s.input("x", {b, t, h, k}), s.param("w", {h, k, e})}, {k, h}),
                  {b, e, t});
       }},
  };
}

TEST_CASE("products by a library and by generated kernels") {
  const auto without = test_device(2, "none");
  REQUIRE(!without->blas().available());
  const auto with = test_device(2);
  REQUIRE(with->blas().available());
  for (DType dtype : {DType::f32, DType::f64})
    for (const ProductCase& one : products()) {
      const Graph graph = build_graph(one.block, dtype);
      const Plan plan = plan_of(graph);
      INFO(one.name << " " << name(dtype) << '\n' << to_text(plan));
      const Executor generated(plan, without), library(plan, with);
      CHECK(generated.library_kernels() == 0);
      CHECK(library.library_kernels() == 1);
      for (const Sizes& sizes : {Sizes{{"b", 1}, {"t", 1}}, Sizes{{"b", 2}, {"t", 75}}}) {
        const Tensors64 inputs = random_inputs(graph, sizes, 3);
        const Tensors64 reference = evaluate(graph, inputs);
        const double bound = dtype == DType::f64 ? 1e-14 : 2e-6;
        check_close(run_plan(generated, inputs), reference, bound);
        check_close(run_plan(library, inputs), reference, bound);
      }
    }
}

Graph projection() {
  const Axis d("d", 32), e("e", 24);
  return build_graph([=](Scope& s) {
    const Expr x = s.input("x", {b, t, d});
    s.output("y", contract({x, s.param("w", {e, d})}, {d}), {b, t, e});
    s.output("z", exp(x), {b, t, d});
  });
}

TEST_CASE("slices of larger tensors are read and written in place") {
  const Graph graph = projection();
  for (const char* libblas : {"libopenblas.so.0", "none"}) {
    const Executor executor(plan_of(graph), test_device(2, libblas));
    const Tensors64 inputs = random_inputs(graph, {{"b", 3}, {"t", 10}}, 5);
    const Tensors64 reference = evaluate(graph, inputs);
    // x stands in rows of 100, y in time-major order with rows of 50.
    std::vector<float> x(3 * 10 * 100, 99), y(10 * 3 * 50, 99), z(3 * 10 * 32);
    const TensorRef x_ref(x.data() + 7, {3, 10, 32}, {1000, 100, 1});
    const TensorRef y_ref(y.data() + 3, {3, 10, 24}, {50, 150, 1});
    copy({inputs.at("x").data.data(), {3, 10, 32}}, x_ref);
    const Tensor w = from_float64(inputs.at("w"), DType::f32);
    executor.run({{"x", x_ref}, {"w", w.ref()}},
                 {{"y", y_ref}, {"z", TensorRef(z.data(), {3, 10, 32})}});
    CHECK(relative_error(to_float64(y_ref), reference.at("y")) <= 1e-6);
    CHECK(relative_error(to_float64({z.data(), {3, 10, 32}}), reference.at("z")) <= 1e-6);
    std::size_t untouched = 0;
    for (float value : y) untouched += value == 99;
    CHECK(untouched == 10 * 3 * (50 - 24));
    // One row for all times.
    const Tensor64 row = random_tensor({32}, 11);
    Tensors64 repeated = inputs;
    for (std::size_t i = 0; i < repeated["x"].data.size(); ++i)
      repeated["x"].data[i] = row.data[i % 32];
    const Tensor single = from_float64(row, DType::f32);
    const TensorRef broadcast(single.data(), DType::f32, {3, 10, 32}, {0, 0, 1});
    executor.run({{"x", broadcast}, {"w", w.ref()}},
                 {{"y", y_ref}, {"z", TensorRef(z.data(), {3, 10, 32})}});
    CHECK(relative_error(to_float64(y_ref), evaluate(graph, repeated).at("y")) <= 1e-6);
  }
}

TEST_CASE("tensors that do not fit are refused by name") {
  const Executor executor(plan_of(projection()), test_device());
  std::vector<float> memory(10000);
  const auto tensor = [&](Shape shape, Shape strides = {}) {
    return TensorRef(memory.data(), std::move(shape), std::move(strides));
  };
  const TensorMap inputs = {{"x", tensor({2, 5, 32})}, {"w", tensor({24, 32})}};
  const TensorMap outputs = {{"y", tensor({2, 5, 24})}, {"z", tensor({2, 5, 32})}};
  CHECK_NOTHROW(executor.run(inputs, outputs));
  const auto message = [&](const std::string& name, TensorRef with) {
    TensorMap in = inputs, out = outputs;
    TensorMap& map = in.count(name) ? in : out;
    if (with.shape.empty())
      map.erase(name);
    else
      map[name] = with;
    try {
      executor.run(in, out);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  using Catch::Contains;
  CHECK_THAT(message("x", {}), Contains("input x is missing"));
  CHECK_THAT(message("z", {}), Contains("output z is missing"));
  CHECK_THAT(message("x", tensor({2, 5})), Contains("input x has shape (2, 5)"));
  CHECK_THAT(message("x", tensor({2, 5, 31})),
             Contains("input x, dimension 2 (axis d) is 31; allowed: 32"));
  CHECK_THAT(message("y", tensor({2, 6, 24})),
             Contains("output y, dimension 1 (axis t) is 6; allowed: 5"));
  CHECK_THAT(message("x", tensor({0, 5, 32})), Contains("dimension 0 (axis b) is 0"));
  CHECK_THAT(message("x", {memory.data(), DType::f64, {2, 5, 32}}),
             Contains("dtype of input x is f64; allowed: f32"));
  CHECK_THAT(message("x", tensor({2, 5, 32}, {320, 64, 2})),
             Contains("stride of input x, dimension 2 (axis d) is 2; allowed: 1"));
  CHECK_THAT(message("x", tensor({2, 5, 32}, {-160, 32, 1})), Contains("is -160; allowed: 0"));
  CHECK_THAT(message("y", tensor({2, 5, 24}, {0, 24, 1})), Contains("strides of output y"));
  CHECK_THAT(message("y", TensorRef(static_cast<float*>(nullptr), {2, 5, 24})),
             Contains("output y has no memory"));
  CHECK_THAT(message("x", {reinterpret_cast<char*>(memory.data()) + 1, DType::f32, {2, 5, 32}}),
             Contains("address of input x"));
  CHECK_NOTHROW(executor.run(inputs, outputs));
}

TEST_CASE("sizes are checked against one another") {
  const Axis n("n", 4);
  const Graph graph = build_graph([=](Scope& s) {
    const Expr x = s.input("x", {b, t, n});
    s.output("y", x + s.input("z", {t, n}), {b, t, n});
  });
  const Executor executor(plan_of(graph), test_device());
  std::vector<float> memory(1000);
  const auto tensor = [&](Shape shape) { return TensorRef(memory.data(), std::move(shape)); };
  CHECK_THROWS_WITH(
      executor.run({{"x", tensor({2, 5, 4})}, {"z", tensor({6, 4})}}, {{"y", tensor({2, 5, 4})}}),
      Catch::Contains("input z, dimension 0 (axis t) is 6; allowed: 5, as input x, dimension 1"));
}

TEST_CASE("the bits do not depend on the number of threads or on a second run") {
  const Axis n("n", 24), d("d", 32);
  const Graph graph = build_graph([=](Scope& s) {
    const Expr x = s.input("x", {b, t, n}), w = s.param("w", {d, n});
    const Expr u = contract({x, w}, {n});
    s.output("y", cumsum(t, u).values, {b, t, d});
    s.output("dw", sum(x * exp(x), {b, t}), {n});
  });
  for (const char* libblas : {"libopenblas.so.0", "none"}) {
    const Executor one(plan_of(graph), test_device(1, libblas));
    const Executor three(plan_of(graph), test_device(3, libblas));
    const Tensors64 inputs = random_inputs(graph, {{"b", 2}, {"t", 300}}, 1);
    const Tensors64 first = run_plan(one, inputs);
    for (const Tensors64& other : {run_plan(one, inputs), run_plan(three, inputs)})
      for (const auto& [name, tensor] : first) CHECK(tensor.data == other.at(name).data);
  }
}

}  // namespace
}  // namespace krait
