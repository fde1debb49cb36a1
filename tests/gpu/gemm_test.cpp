// Products on an emulated GPU: by the stand-in for cuBLASLt and by generated kernels.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "runtime/krait.h"
#include "tests/gpu/emulated.h"

namespace krait {
namespace {

using testing::emulated_device;
constexpr const char* library_path = KRAIT_EMULATOR_CUBLASLT;

Tensor drawn(const Shape& shape, unsigned seed) {
  Tensor made(DType::f32, shape);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> draw(-8, 8);  // exact in f32, sums too
  for (std::int64_t i = 0; i < made.count(); ++i)
    made.data_as<float>()[i] = static_cast<float>(draw(random)) / 4;
  return made;
}

/// Three tensors with rows of a length of their own, and a product of them.
struct Problem {
  GemmCalls calls;
  Tensor a, b, c;

  explicit Problem(const GemmCalls& of)
      : calls(of),
        a(drawn({reach(&GemmCalls::Loop::a, of.shape.transpose_a ? of.shape.k : of.shape.m,
                       of.shape.lda)},
                1)),
        b(drawn({reach(&GemmCalls::Loop::b, of.shape.transpose_b ? of.shape.n : of.shape.k,
                       of.shape.ldb)},
                2)),
        c(drawn({reach(&GemmCalls::Loop::c, of.shape.m, of.shape.ldc)}, 3)) {
    calls.a = 0, calls.b = 1, calls.c = 2;
  }
  std::int64_t reach(std::int64_t GemmCalls::Loop::*stride, std::int64_t rows,
                     std::int64_t length) const {
    std::int64_t all = rows * length;
    for (const GemmCalls::Loop& loop : calls.loops) all += (loop.count - 1) * loop.*stride;
    return all;
  }

  /// All of c, by the plain sums.
  std::vector<float> expected() const {
    std::vector<float> made(c.data_as<float>(), c.data_as<float>() + c.count());
    std::int64_t total = 1;
    for (const GemmCalls::Loop& loop : calls.loops) total *= loop.count;
    for (std::int64_t i = 0; i < total; ++i) {
      std::int64_t rest = i, at_a = 0, at_b = 0, at_c = 0;
      bool adds = false;
      for (const GemmCalls::Loop& loop : calls.loops) {
        const std::int64_t position = rest % loop.count;
        rest /= loop.count;
        at_a += position * loop.a, at_b += position * loop.b, at_c += position * loop.c;
        adds |= loop.sum && position > 0;
      }
      add(at_a, at_b, at_c, adds, made);
    }
    return made;
  }
  void add(std::int64_t at_a, std::int64_t at_b, std::int64_t at_c, bool adds,
           std::vector<float>& to) const {
    const GemmShape& s = calls.shape;
    for (std::int64_t m = 0; m < s.m; ++m)
      for (std::int64_t n = 0; n < s.n; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < s.k; ++k)
          sum +=
              double{a.data_as<float>()[at_a + (s.transpose_a ? k * s.lda + m : m * s.lda + k)]} *
              double{b.data_as<float>()[at_b + (s.transpose_b ? n * s.ldb + k : k * s.ldb + n)]};
        float& element = to[static_cast<std::size_t>(at_c + m * s.ldc + n)];
        element = static_cast<float>(sum + (adds ? double{element} : 0.0));
      }
  }

  std::vector<float> run(Device& gpu, bool workspace = true) const {
    const Tensor gpu_a = to_device(a.ref(), gpu), gpu_b = to_device(b.ref(), gpu);
    Tensor gpu_c = to_device(c.ref(), gpu);
    const auto product = gpu.prepare(calls, workspace);
    CHECK((workspace || product->workspace_bytes == 0));
    Tensor space;
    if (product->workspace_bytes > 0)
      space = Tensor(DType::f64, {product->workspace_bytes / 8}, gpu);
    void* const pointers[] = {const_cast<void*>(gpu_a.ref().data),
                              const_cast<void*>(gpu_b.ref().data), gpu_c.data()};
    gpu.product(*product, pointers, space.data(), {});
    const Tensor got = to_host(gpu_c.ref(), gpu);
    return {got.data_as<float>(), got.data_as<float>() + got.count()};
  }
};

GemmCalls calls_of(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a = false,
                   bool transpose_b = false, std::int64_t padding = 0) {
  GemmCalls calls;
  calls.shape = {.m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b};
  calls.shape.lda = (transpose_a ? m : k) + padding;
  calls.shape.ldb = (transpose_b ? k : n) + padding;
  calls.shape.ldc = n + 2 * padding;
  return calls;
}

TEST_CASE("the library's products have any sizes, transposes and row lengths") {
  const auto gpu = emulated_device(library_path);
  REQUIRE(gpu->library_text().find("cuBLASLt 13.") == 0);
  int number = 0;
  for (const std::int64_t m : {1, 3, 16, 17, 40, 129})
    for (const std::int64_t n : {1, 3, 16, 17, 40, 129})
      for (const std::int64_t k : {1, 3, 16, 17, 40, 129}) {
        ++number;
        const Problem problem(calls_of(m, n, k, number % 2 != 0, number / 2 % 2 != 0, number % 3));
        INFO(m << " " << n << " " << k << " number " << number);
        REQUIRE(problem.run(*gpu, number % 5 != 0) == problem.expected());
      }
}

TEST_CASE("the library's products are batched, looped over and added up") {
  const auto gpu = emulated_device(library_path);
  // Heads that lie side by side in rows; sequences; sums of several products.
  GemmCalls heads = calls_of(17, 8, 16);
  heads.shape.ldc = 3 * 8;
  heads.loops = {{3, 16 * 17, 16 * 8, 8, false}};
  GemmCalls batch = calls_of(5, 7, 9, true);
  batch.loops = {{4, 45, 0, 35, false}, {2, 4 * 45, 63, 4 * 35, false}};
  GemmCalls sums = calls_of(6, 10, 3, false, true, 1);
  sums.loops = {{3, 30, 50, 0, true}, {2, 200, 300, 90, false}};
  for (const GemmCalls& calls : {heads, batch, sums}) {
    const Problem problem(calls);
    CHECK(problem.run(*gpu) == problem.expected());
    GemmCalls offset = calls;  // pointers without the widest alignment
    offset.c_offset = 0;
    CHECK(problem.run(*gpu, false) == problem.expected());
  }
}

TEST_CASE("a library that is missing or cannot initialise leaves products to generated kernels") {
  CHECK(emulated_device("/no/such/library.so")->library_text().find("/no/such/library.so") !=
        std::string::npos);
  // One that is no cuBLASLt.
  CHECK(emulated_device(KRAIT_EMULATOR_LIBRARY)->library_text().find("has no cublasLtCreate") !=
        std::string::npos);
  const auto gpu = emulated_device(library_path);
  EMULATOR(cuda_emulator_fail_call)("cuCtxGetCurrent", 2, 999, 0);  // krait asks first
  CHECK(gpu->library_text().find("CUBLAS_STATUS_NOT_INITIALIZED") != std::string::npos);
  CHECK(gpu->library_text().find("none (") == 0);  // it is not asked again
  CHECK(emulated_device(library_path)->library_text().find("cuBLASLt") == 0);
}

TEST_CASE("a product that fails is the environment's error, with the library's status") {
  const auto gpu = emulated_device(library_path);
  const Problem problem(calls_of(4, 4, 4));
  CHECK(problem.run(*gpu) == problem.expected());
  EMULATOR(cuda_emulator_fail_call)("cuStreamIsCapturing", 1, 999, 0);
  CHECK_THROWS_WITH(problem.run(*gpu), Catch::Contains("4 by 4 by 4") &&
                                           Catch::Contains("CUBLAS_STATUS_EXECUTION_FAILED"));
  CHECK(problem.run(*gpu) == problem.expected());
}

// ------------------------------------------------------------------------------------ in a layer
/// Two projections with something between.
void projections(Scope& s) {
  const Axis b("b"), t("t"), d("d", 40), e("e", 72);
  const Expr x = s.input("x", {b, t, d});
  const Expr inner = silu(contract({x, s.param("into", {e, d})}, {d}));
  s.output("y", contract({inner, s.param("back", {d, e})}, {e}), {b, t, d});
}

Layer layer_of(const std::shared_ptr<Device>& gpu, LayerOptions options) {
  options.device = "cuda:0";
  options.on = gpu;
  Layer layer(projections, options);
  layer.set_parameter("into", drawn({72, 40}, 5).ref());
  layer.set_parameter("back", drawn({40, 72}, 6).ref());
  return layer;
}

struct Run {
  Tensors outputs, gradients;
  nlohmann::json kernels;
};

Run run(const std::shared_ptr<Device>& gpu, const std::string& schedule) {
  const Layer layer = layer_of(gpu, {.schedule = parse_schedule(schedule)});
  const Tensor x = to_device(drawn({2, 21, 40}, 7).ref(), *gpu),
               dy = to_device(drawn({2, 21, 40}, 8).ref(), *gpu);
  const nlohmann::json before = testing::launched();
  Layer::Forward forward = layer.forward({{"x", x.ref()}});
  Tensors gradients = layer.backward(forward.tape, {{"y", dy.ref()}});
  Run made;
  for (const auto& [name, tensor] : forward.outputs)
    made.outputs.emplace(name, to_host(tensor.ref(), *gpu));
  for (const auto& [name, tensor] : gradients)
    made.gradients.emplace(name, to_host(tensor.ref(), *gpu));
  const nlohmann::json after = testing::launched();
  for (const auto& [name, counts] : after.items()) {
    const int launches = counts.at("launches").get<int>() -
                         (before.contains(name) ? before[name].at("launches").get<int>() : 0);
    if (launches > 0) made.kernels[name] = launches;
  }
  return made;
}

double distance(const Tensor& a, const Tensor& b) {
  double apart = 0, length = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    apart += std::pow(a.data_as<float>()[i] - b.data_as<float>()[i], 2);
    length += std::pow(a.data_as<float>()[i], 2);
  }
  return std::sqrt(apart / length);
}

void check_alike(const Run& a, const Run& b) {
  for (const auto* tensors : {&a.outputs, &a.gradients})
    for (const auto& [name, tensor] : *tensors) {
      INFO(name);
      const Tensors& others = tensors == &a.outputs ? b.outputs : b.gradients;
      CHECK(distance(tensor, others.at(name)) < 2e-6);
    }
}

TEST_CASE("a layer's projections and their gradients go to the library, or are generated") {
  const auto gpu = emulated_device(library_path);
  const Run library = run(gpu, ""), generated = run(gpu, "gemm=generated");
  check_alike(library, generated);
  for (const char* name : {"krait_into", "krait_back", "krait_y", "krait_x"}) {
    INFO(name);
    CHECK(!library.kernels.contains(name));
    CHECK(generated.kernels.contains(name));
  }
  const auto bare = emulated_device();
  check_alike(library, run(bare, ""));
  CHECK_THROWS_AS(run(bare, "gemm=library"), EnvironmentError);
  // Every sum in one order, unless the library is asked for.
  CHECK(run(gpu, "math=exact").kernels.contains("krait_into"));
  CHECK(!run(gpu, "math=exact gemm=library").kernels.contains("krait_into"));
}

TEST_CASE("products do without a workspace where there is no memory for one") {
  const auto gpu = emulated_device(library_path);
  LayerOptions options;
  options.wanted = options.cotangents = std::vector<std::string>{};
  const Layer layer = layer_of(gpu, options);
  const Tensor x = to_device(drawn({2, 21, 40}, 7).ref(), *gpu);
  Tensor y(DType::f32, {2, 21, 40}, *gpu), again(DType::f32, {2, 21, 40}, *gpu);
  // The first allocation of the first call is that of temporaries and workspace.
  EMULATOR(cuda_emulator_fail_allocation)(1);
  layer.forward({{"x", x.ref()}}, {{"y", y.ref()}});
  const Layer other = layer_of(gpu, options);
  other.forward({{"x", x.ref()}}, {{"y", again.ref()}});
  CHECK(distance(to_host(y.ref(), *gpu), to_host(again.ref(), *gpu)) == 0);
}

}  // namespace
}  // namespace krait
