// Calls written down as CUDA graphs, on an emulated GPU.
#include <cstring>

#include "tests/gpu/recurrence.h"

namespace krait {
namespace {

using namespace krait::testing;
using Catch::Contains;

constexpr std::int64_t kB = 2, kT = 21;
const std::vector<float> kU = drawn(kB * kT * 4, 1);

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

/// Position i of u (kB, kT, 4), or of y (kB, kT, 3).
TensorRef position(void* memory, std::int64_t i, std::int64_t width) {
  return {static_cast<float*>(memory) + i * width, {kB, 1, width}, {kT * width, width, 1}};
}

TEST_CASE("a decode loop that was captured gives the bits of one that was not") {
  const EmulatedGpu gpu;
  Framework framework;
  const Layer layer = retention_on("cuda:0");
  void* const u = framework.put(kU);
  const std::size_t outputs = kB * kT * 3;
  void* const expected = framework.put(std::vector<float>(outputs));
  void* const got = framework.put(std::vector<float>(outputs));
  const Tensors plain = layer.zero_states({{"b", kB}}), states = layer.zero_states({{"b", kB}});
  const auto step = [&](std::int64_t i, const Tensors& carried, void* y, Stream stream) {
    layer.step({{"u", position(u, i, 4)}}, refs(carried), {{"y", position(y, i, 3)}}, stream);
  };
  for (std::int64_t i = 0; i < kT; ++i) step(i, plain, expected, framework.stream());

  const auto captured =
      layer.device()->capture([&](Stream stream) { step(0, states, got, stream); });
  EmulatedGpu::fail_allocation(1);
  for (std::int64_t i = 0; i < kT; ++i) {
    if (i > 0) captured->bind([&](Stream stream) { step(i, states, got, stream); });
    captured->replay(framework.stream());
  }
  EmulatedGpu::fail_allocation(0);
  CHECK(same_bits(framework.get(got, outputs), framework.get(expected, outputs)));
  for (const auto& [name, state] : states)
    CHECK(same_bits(values_of(to_host(state.ref(), *layer.device(), framework.stream())),
                    values_of(to_host(plain.at(name).ref(), *layer.device()))));
  CHECK(relative_error(
            framework.get(got, outputs),
            values_of(
                retention_on("host").forward({{"u", {kU.data(), {kB, kT, 4}}}}).outputs.at("y"))) <
        1e-5);
}

TEST_CASE("a captured step with one set of pointers is a loop by itself") {
  const EmulatedGpu gpu;
  Framework framework;
  const Layer layer = retention_on("cuda:0");
  const TensorRef u(static_cast<float*>(framework.put(kU)), {kB, 1, 4}, {kT * 4, 4, 1});
  const Tensor y(DType::f32, {kB, 1, 3}, *layer.device());
  const Tensors plain = layer.zero_states({{"b", kB}}), states = layer.zero_states({{"b", kB}});
  const auto captured = layer.device()->capture([&](Stream stream) {
    layer.step({{"u", u}}, refs(states), {{"y", y.ref()}}, stream);
  });
  for (int i = 0; i < 5; ++i) captured->replay(framework.stream());
  const std::vector<float> got = framework.get(y.data(), kB * 3);
  for (int i = 0; i < 5; ++i)
    layer.step({{"u", u}}, refs(plain), {{"y", y.ref()}}, framework.stream());
  CHECK(same_bits(got, framework.get(y.data(), kB * 3)));
}

TEST_CASE("a forward and its backward are one graph, whose results stand where they are") {
  const EmulatedGpu gpu;
  Framework framework;
  const Layer layer = retention_on("cuda:0");
  const std::vector<float> other = drawn(kU.size(), 2), ones(kB * kT * 3, 1);
  const TensorRef first(static_cast<float*>(framework.put(kU)), {kB, kT, 4});
  const TensorRef second(static_cast<float*>(framework.put(other)), {kB, kT, 4});
  const TensorRef cotangent(static_cast<float*>(framework.put(ones)), {kB, kT, 3});
  Tensors gradients;
  const auto run = [&](const TensorRef& u, Stream stream) {
    const Layer::Forward forward = layer.forward({{"u", u}}, {}, stream);
    gradients = layer.backward(forward.tape, {{"y", cotangent}}, {}, false, stream);
  };
  const auto values = [&] {
    std::vector<float> all;
    for (const auto& [name, gradient] : gradients) {
      const std::vector<float> part = framework.get(gradient.data(), gradient.count());
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  run(first, framework.stream());
  const std::vector<float> of_first = values();
  run(second, framework.stream());
  const std::vector<float> of_second = values();
  REQUIRE(!same_bits(of_first, of_second));

  const auto captured = layer.device()->capture([&](Stream stream) { run(first, stream); });
  captured->replay(framework.stream());
  captured->replay(framework.stream());  // zeros that it starts from are made each time
  CHECK(same_bits(values(), of_first));
  captured->bind([&](Stream stream) { run(second, stream); });
  captured->replay(framework.stream());
  CHECK(same_bits(values(), of_second));
}

TEST_CASE("products of a library are captured with their workspace") {
  ::setenv("KRAIT_LIBCUBLASLT", KRAIT_EMULATOR_CUBLASLT, 1);
  const EmulatedGpu gpu;
  Framework framework;
  LayerOptions options;
  options.device = "cuda:0";
  options.schedule = parse_schedule("gemm=library");
  options.wanted = options.cotangents = std::vector<std::string>{};
  const Layer layer(
      [](Scope& s) {
        const Axis b("b"), t("t"), d("d", 40), e("e", 72);
        const Init small{Init::Kind::fan_in, 40};
        const Expr x = s.input("x", {b, t, d});
        const Expr inner = silu(contract({x, s.param("into", {e, d}, small)}, {d}));
        s.output("y", contract({inner, s.param("back", {d, e}, small)}, {e}), {b, t, d});
      },
      options);
  const std::size_t count = kB * kT * 40;
  const auto tensor = [&](const std::vector<float>& values) {
    return TensorRef(static_cast<float*>(framework.put(values)), {kB, kT, 40});
  };
  const TensorRef first = tensor(drawn(count, 3)), second = tensor(drawn(count, 4));
  const TensorRef y = tensor(std::vector<float>(count));
  const auto run = [&](const TensorRef& x, Stream stream) {
    layer.forward({{"x", x}}, {{"y", y}}, stream);
  };
  run(second, framework.stream());
  const std::vector<float> expected = framework.get(y.data, count);
  const auto captured = layer.device()->capture([&](Stream stream) { run(first, stream); });
  captured->replay(framework.stream());
  CHECK(!same_bits(framework.get(y.data, count), expected));
  captured->bind([&](Stream stream) { run(second, stream); });
  captured->replay(framework.stream());
  CHECK(same_bits(framework.get(y.data, count), expected));
  ::unsetenv("KRAIT_LIBCUBLASLT");
}

TEST_CASE("what cannot be captured is refused with the reason, and does no harm") {
  const EmulatedGpu gpu;
  Framework framework;
  const Layer layer = retention_on("cuda:0");
  Device& device = *layer.device();
  const TensorRef u(static_cast<float*>(framework.put(kU)), {kB, kT, 4});
  const auto run = [&](Stream stream) { return layer.forward({{"u", u}}, {}, stream); };
  CHECK_THROWS_WITH(make_device("host")->capture([](Stream) {}),
                    Contains("host") && Contains("cuda:N"));
  CHECK_THROWS_WITH(device.capture([&](Stream stream) {
    to_host(run(stream).outputs.at("y").ref(), device, stream);
  }),
                    Contains("copying from the device"));
  CHECK_THROWS_WITH(device.capture([&](Stream stream) { device.finish(stream); }),
                    Contains("waiting for the device"));
  CHECK_THROWS_WITH(device.capture([&](Stream) { run({}); }), Contains("gave no work"));
  CHECK_THROWS_WITH(device.capture([&](Stream stream) {
    run(stream);
    driver<decltype(&cuStreamSynchronize)>("cuStreamSynchronize")(
        static_cast<CUstream>(stream.handle()));
  }),
                    Contains("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
  CHECK_THROWS_WITH(device.capture([](Stream) { throw std::runtime_error("of the call"); }),
                    "of the call");
  // One that someone else captures has no place for memory.
  const auto stream = static_cast<CUstream>(framework.stream().handle());
  check(driver<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture_v2")(
      stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK_THROWS_WITH(run(framework.stream()), Contains("Device::capture"));
  CUgraph graph = nullptr;
  check(driver<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(stream, &graph));
  check(driver<decltype(&cuGraphDestroy)>("cuGraphDestroy")(graph));

  const auto captured = device.capture(run);
  CHECK_THROWS_WITH(captured->bind([&](Stream s) {
    run(s);
    run(s);
  }),
                    Contains("other work"));
  CHECK_NOTHROW(captured->replay(framework.stream()));
  framework.synchronize();
}

}  // namespace
}  // namespace krait
