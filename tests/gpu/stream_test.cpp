// Streams, memory and contexts of the caller, on an emulated GPU.
#include <thread>

#include "tests/gpu/recurrence.h"

namespace krait {
namespace {

using namespace krait::testing;

constexpr std::int64_t kB = 2, kT = 21;
const std::vector<float> kU = drawn(kB * kT * 4, 1);

std::vector<float> host_output() {
  const Layer host = retention_on("host");
  const Layer::Forward forward = host.forward({{"u", {kU.data(), {kB, kT, 4}}}});
  return values_of(forward.outputs.at("y"));
}

TEST_CASE("a GPU works in the caller's stream and memory, and waits for nothing") {
  const EmulatedGpu gpu;
  const std::vector<float> expected = host_output();
  Framework framework;
  const Layer layer = retention_on("cuda:0");
  // u is the middle of rows of 9, y of rows of 5.
  std::vector<float> rows(kB * kT * 9, 100);
  for (std::int64_t i = 0; i < kB * kT; ++i) std::copy_n(&kU[4 * i], 4, &rows[9 * i + 3]);
  float* const in = static_cast<float*>(framework.put(rows));
  float* const out = static_cast<float*>(framework.put(std::vector<float>(kB * kT * 5, 7)));
  const TensorRef u(in + 3, {kB, kT, 4}, {kT * 9, 9, 1}), y(out + 1, {kB, kT, 3}, {kT * 5, 5, 1});
  const std::vector<float> ones(kB * kT * 3, 1);
  const TensorRef cotangent(static_cast<float*>(framework.put(ones)), {kB, kT, 3});

  Gate gate(framework.stream());
  Layer::Forward forward = layer.forward({{"u", u}}, {{"y", y}}, framework.stream());
  Tensors gradients =
      layer.backward(forward.tape, {{"y", cotangent}}, {}, false, framework.stream());
  forward = {};  // freed while nothing has run yet
  const TensorRef of_u = gradients.at("u").ref();
  gate.open();

  const std::vector<float> written = framework.get(out, kB * kT * 5);
  std::vector<float> got;
  for (std::int64_t i = 0; i < kB * kT; ++i) {
    CHECK((written[5 * i] == 7 && written[5 * i + 4] == 7));
    got.insert(got.end(), &written[5 * i + 1], &written[5 * i + 4]);
  }
  CHECK(relative_error(got, expected) < 1e-5);

  const Layer host = retention_on("host");
  const Layer::Forward on_host = host.forward({{"u", {kU.data(), {kB, kT, 4}}}});
  const Tensors reference = host.backward(on_host.tape, {{"y", {ones.data(), {kB, kT, 3}}}});
  CHECK(relative_error(framework.get(of_u.data, kU.size()), values_of(reference.at("u"))) < 5e-5);
}

TEST_CASE("default streams, of all threads and of each") {
  const EmulatedGpu gpu;
  const std::vector<float> expected = host_output();
  Framework framework;
  const Layer layer = retention_on("cuda:0");
  const TensorRef u(static_cast<float*>(framework.put(kU)), {kB, kT, 4});
  const auto run = [&](Stream stream) {
    for (int i = 0; i < 3; ++i) {
      const Layer::Forward forward = layer.forward({{"u", u}}, {}, stream);
      const Tensor y = to_host(forward.outputs.at("y").ref(), *layer.device(), stream);
      if (relative_error(values_of(y), expected) > 1e-5) throw std::runtime_error("wrong numbers");
    }
  };
  CHECK_NOTHROW(run(Stream::of(nullptr)));
  std::vector<std::thread> threads;
  std::vector<std::string> errors(2);
  for (std::string& error : errors)
    threads.emplace_back([&] {
      try {
        run(Stream::per_thread());
      } catch (const std::exception& e) {
        error = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("memory in use by one stream is not lent to another") {
  const EmulatedGpu gpu;
  const std::vector<float> expected = host_output();
  Framework first, second;
  const Layer layer = retention_on("cuda:0");
  const TensorRef u(static_cast<float*>(first.put(kU)), {kB, kT, 4});
  const TensorRef zeros(static_cast<float*>(first.put(std::vector<float>(kU.size()))), {kB, kT, 4});
  // Warm, so that there is idle memory to lend.
  layer.forward({{"u", u}}, {}, first.stream());
  first.synchronize();
  Gate gate(first.stream());
  const Layer::Forward held = layer.forward({{"u", u}}, {}, first.stream());
  const Layer::Forward other = layer.forward({{"u", zeros}}, {}, second.stream());
  gate.open();
  CHECK(relative_error(first.get(held.outputs.at("y").data(), expected.size()), expected) < 1e-5);
  CHECK(second.get(other.outputs.at("y").data(), expected.size()) ==
        std::vector<float>(expected.size()));
}

TEST_CASE("steps of a GPU allocate nothing after the first, nor do windows") {
  const EmulatedGpu gpu;
  Framework framework;
  const Layer layer = retention_on("cuda:0");
  const TensorRef u(static_cast<float*>(framework.put(kU)), {kB, kT, 4});
  const TensorRef first(static_cast<float*>(u.data), {kB, 1, 4}, {kT * 4, 4, 1});
  const Tensor y(DType::f32, {kB, 1, 3}, *layer.device());
  const Tensors states = layer.zero_states({{"b", kB}});
  for (int i = 0; i < 6; ++i) {
    if (i == 1) EmulatedGpu::fail_allocation(1);
    CHECK_NOTHROW(layer.step({{"u", first}}, refs(states), {{"y", y.ref()}}, framework.stream()));
    const Layer::Forward forward = layer.forward({{"u", u}}, {}, framework.stream());
    CHECK_NOTHROW(layer.backward(forward.tape, {{"y", forward.outputs.at("y").ref()}}, {}, false,
                                 framework.stream()));
  }
  CUdeviceptr memory = 0;  // whose failure nobody has met yet
  CHECK(driver<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&memory, 512) == CUDA_ERROR_OUT_OF_MEMORY);
  framework.synchronize();
  const Alive before = alive();
  layer.device()->trim();
  CHECK(alive()[0] < before[0]);
}

TEST_CASE("another context that is current stays so, and krait uses the primary one") {
  const EmulatedGpu gpu;
  const std::vector<float> expected = host_output();
  CUcontext other = nullptr, now = nullptr;
  check(driver<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&other, 0, 0));
  const auto current = [&] {
    check(driver<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent")(&now));
    return now;
  };
  {
    const Layer layer = retention_on("cuda:0");
    const Tensor u = to_device({kU.data(), {kB, kT, 4}}, *layer.device());
    const Layer::Forward forward = layer.forward({{"u", u.ref()}});
    CHECK(current() == other);
    const Tensor y = to_host(forward.outputs.at("y").ref(), *layer.device());
    CHECK(relative_error(values_of(y), expected) < 1e-5);
    CHECK(alive()[6] == 2);
  }
  CHECK(current() == other);
  check(driver<decltype(&cuCtxDestroy)>("cuCtxDestroy_v2")(other));
}

TEST_CASE("memory that a GPU cannot reach is refused by name") {
  const EmulatedGpu gpu;
  const Layer layer = retention_on("cuda:0");
  try {
    layer.forward({{"u", {kU.data(), {kB, kT, 4}}}});
    FAIL("no error");
  } catch (const UsageError& error) {
    CHECK_THAT(error.what(), Catch::Contains("memory of u") && Catch::Contains("cuda:0"));
  }
}

}  // namespace
}  // namespace krait
