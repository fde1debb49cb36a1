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
  const testing::Launched launched;
  Layer::Forward forward = layer.forward({{"x", x.ref()}});
  Tensors gradients = layer.backward(forward.tape, {{"y", dy.ref()}});
  Run made;
  for (const auto& [name, tensor] : forward.outputs)
    made.outputs.emplace(name, to_host(tensor.ref(), *gpu));
  for (const auto& [name, tensor] : gradients)
    made.gradients.emplace(name, to_host(tensor.ref(), *gpu));
  made.kernels = launched.by_kernel();
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

TEST_CASE("the library adds a vector along the columns of a product that only that reads") {
  const auto gpu = emulated_device(library_path);
  const Axis b("b"), t("t"), d("d", 24), e("e", 40);
  LayerOptions options{.device = "cuda:0", .on = gpu};
  options.wanted = options.cotangents = std::vector<std::string>{};
  const auto run_with = [&](bool relu, const std::string& schedule) {
    options.schedule = parse_schedule(schedule);
    const Layer layer(
        [&](Scope& s) {
          const Expr y =
              contract({s.input("x", {b, t, d}), s.param("w", {e, d})}, {d}) + s.param("bias", {e});
          s.output("y", relu ? max(y, 0.0) : y, {b, t, e});
        },
        options);
    const Tensor x = to_device(drawn({3, 7, 24}, 1).ref(), *gpu),
                 w = to_device(drawn({40, 24}, 2).ref(), *gpu),
                 bias = to_device(drawn({40}, 3).ref(), *gpu);
    const testing::Launched launched;
    const Layer::Forward forward =
        layer.forward({{"x", x.ref()}, {"w", w.ref()}, {"bias", bias.ref()}});
    Tensor y = to_host(forward.outputs.at("y").ref(), *gpu);  // waits for what was launched
    return std::pair(std::move(y), launched.by_kernel().size());
  };
  const auto [library, kernels] = run_with(false, "");
  CHECK(kernels == 0);
  const auto [generated, two] = run_with(false, "gemm=generated");
  CHECK(two == 2);
  CHECK(run_with(true, "").second == 1);  // more than a vector is added
  CHECK(std::equal(library.data_as<float>(), library.data_as<float>() + library.count(),
                   generated.data_as<float>()));
  const Tensor x = drawn({3, 7, 24}, 1), w = drawn({40, 24}, 2), bias = drawn({40}, 3);
  for (std::int64_t r = 0; r < 21; ++r)
    for (std::int64_t c = 0; c < 40; ++c) {
      float sum = bias.data_as<float>()[c];
      for (std::int64_t k = 0; k < 24; ++k)
        sum += x.data_as<float>()[r * 24 + k] * w.data_as<float>()[c * 24 + k];
      REQUIRE(library.data_as<float>()[r * 40 + c] == sum);
    }
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

// ------------------------------------------------------------------------- the generated product
/// y = x w and its gradients, of numbers that f32 adds up exactly in any order.
struct Projection {
  std::int64_t d, e, sequences, length;
  bool turned = false;  // stored so that what is summed over, and time, lies side by side

  void block(Scope& s) const {
    const Axis b("b"), t("t"), in("d", d), out("e", e);
    const Expr x = turned ? s.input("x", {b, in, t}) : s.input("x", {b, t, in});
    const Expr w = turned ? s.param("w", {in, out}) : s.param("w", {out, in});
    const Expr y = contract({x, w}, {in});
    turned ? s.output("y", y, {out, t, b}) : s.output("y", y, {b, t, out});
  }
  /// Places in dense tensors in that order.
  std::int64_t x_at(std::int64_t b, std::int64_t t, std::int64_t i) const {
    return turned ? (b * d + i) * length + t : (b * length + t) * d + i;
  }
  std::int64_t w_at(std::int64_t i, std::int64_t o) const { return turned ? i * e + o : o * d + i; }
  std::int64_t y_at(std::int64_t b, std::int64_t t, std::int64_t o) const {
    return turned ? (o * length + t) * sequences + b : (b * length + t) * e + o;
  }
  Shape x_shape() const {
    return turned ? Shape{sequences, d, length} : Shape{sequences, length, d};
  }
  Shape w_shape() const { return turned ? Shape{d, e} : Shape{e, d}; }
  Shape y_shape() const {
    return turned ? Shape{e, length, sequences} : Shape{sequences, length, e};
  }
};

/// Counts of the kernels of one forward and backward.
nlohmann::json check_projection(const Projection& p, Device& gpu, const Layer& layer) {
  const Tensor x = drawn(p.x_shape(), 1), w = drawn(p.w_shape(), 2), dy = drawn(p.y_shape(), 3);
  Tensor y(DType::f32, p.y_shape()), dx(DType::f32, p.x_shape()), dw(DType::f32, p.w_shape());
  for (std::int64_t b = 0; b < p.sequences; ++b)
    for (std::int64_t t = 0; t < p.length; ++t)
      for (std::int64_t o = 0; o < p.e; ++o)
        for (std::int64_t i = 0; i < p.d; ++i) {
          const float in = x.data_as<float>()[p.x_at(b, t, i)],
                      weight = w.data_as<float>()[p.w_at(i, o)],
                      cotangent = dy.data_as<float>()[p.y_at(b, t, o)];
          y.data_as<float>()[p.y_at(b, t, o)] += in * weight;
          dx.data_as<float>()[p.x_at(b, t, i)] += cotangent * weight;
          dw.data_as<float>()[p.w_at(i, o)] += cotangent * in;
        }
  const Tensor gpu_x = to_device(x.ref(), gpu), gpu_w = to_device(w.ref(), gpu),
               gpu_dy = to_device(dy.ref(), gpu);
  const testing::Launched launched;
  const Layer::Forward forward = layer.forward({{"x", gpu_x.ref()}, {"w", gpu_w.ref()}});
  const Tensors gradients = layer.backward(forward.tape, {{"y", gpu_dy.ref()}});
  const auto same = [&](const Tensor& got, const Tensor& expected) {
    const Tensor back = to_host(got.ref(), gpu);
    return std::equal(back.data_as<float>(), back.data_as<float>() + back.count(),
                      expected.data_as<float>());
  };
  CHECK(same(forward.outputs.at("y"), y));
  CHECK(same(gradients.at("x"), dx));
  CHECK(same(gradients.at("w"), dw));
  return launched.by_kernel();
}

Layer layer_of(const Projection& p, const std::shared_ptr<Device>& gpu,
               const std::string& schedule = "") {
  return Layer([&](Scope& s) { p.block(s); },
               {.device = "cuda:0", .on = gpu, .schedule = parse_schedule(schedule)});
}

TEST_CASE("generated products have any sizes and orders in memory") {
  const auto gpu = emulated_device();
  for (const bool turned : {false, true})
    for (const auto& [d, e] : {std::pair{16, 17}, {129, 40}}) {
      const Layer layer = layer_of({d, e, 1, 1, turned}, gpu);
      for (const auto& [sequences, length] : {std::pair{1, 1}, {3, 3}, {2, 129}}) {
        INFO(d << " to " << e << ", " << sequences << " of " << length << ", turned " << turned);
        const nlohmann::json counts =
            check_projection({d, e, sequences, length, turned}, *gpu, layer);
        // Weight gradients of few blocks are summed in parts.
        CHECK(counts.contains("krait_finish_w"));
      }
    }
}

TEST_CASE("generated products have other blocks where there are other warps") {
  const auto gpu = emulated_device();
  for (const char* schedule : {"warps=1", "warps=2", "warps=16 math=exact"}) {
    const Projection p{40, 72, 2, 70};
    const nlohmann::json counts = check_projection(p, *gpu, layer_of(p, gpu, schedule));
    CHECK(counts.contains("krait_finish_w") ==
          (std::string(schedule).find("exact") == std::string::npos));
  }
}

TEST_CASE(
    "a generated product reads each operand once a block, and its threads reuse what they hold") {
  const auto gpu = emulated_device();
  const Projection p{128, 512, 1, 256};
  const nlohmann::json counts = check_projection(p, *gpu, layer_of(p, gpu));
  const auto per_product = [&](const char* kernel, double number) {
    return number /
           counts.at(kernel).at("thread_instructions").at("by_class").at("float32").get<double>();
  };
  for (const auto& [kernel, block] :
       {std::pair{"krait_y", 128.0}, {"krait_x", 64.0}, {"krait_w", 64.0}}) {
    INFO(kernel);
    const nlohmann::json& of = counts.at(kernel);
    CHECK(per_product(kernel, of["global"]["load"]["bytes"].get<double>() / 4) <= 2 / block + 1e-9);
    // Whole sectors, and no conflicts worth a word.
    CHECK(of["global"]["load"]["sectors"].get<double>() * 32 ==
          of["global"]["load"]["bytes"].get<double>());
    CHECK(of["global"]["store"]["sectors"].get<double>() * 32 ==
          of["global"]["store"]["bytes"].get<double>());
    CHECK(of["shared"]["load"]["wavefronts"] == of["shared"]["load"]["ideal"]);
    double loaded = 0;
    for (const auto& [bytes, lanes] : of["shared"]["load"]["lanes_by_bytes"].items())
      loaded += std::stod(bytes) / 4 * lanes.get<double>();
    // 8 by 8 results a thread, or 8 by 4.
    CHECK(per_product(kernel, loaded) <= (block == 128 ? 0.25 : 0.375) + 1e-9);
  }
}

}  // namespace
}  // namespace krait
