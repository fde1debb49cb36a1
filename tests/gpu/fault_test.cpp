// Faults of the driver, injected: each is the environment's error, everything is freed, and the
// next try works.
#include "tests/gpu/recurrence.h"
#include "tests/run_program.h"

namespace krait {
namespace {

using namespace krait::testing;
using Catch::Contains;

constexpr std::int64_t kB = 2, kT = 21;
const std::vector<float> kU = drawn(kB * kT * 4, 1);

const std::vector<float>& host_output() {
  static const std::vector<float> output = [] {
    const Layer host = retention_on("host");
    return values_of(host.forward({{"u", {kU.data(), {kB, kT, 4}}}}).outputs.at("y"));
  }();
  return output;
}

/// All that a user does: a device, a layer, a window with gradients, steps, a captured step.
void work(bool captures) {
  const Layer layer = retention_on("cuda:0");
  Device& device = *layer.device();
  const Tensor u = to_device({kU.data(), {kB, kT, 4}}, device);
  const Layer::Forward forward = layer.forward({{"u", u.ref()}});
  const TensorRef y = forward.outputs.at("y").ref();
  const Tensors gradients = layer.backward(forward.tape, {{"y", y}});
  Tensor sum(DType::f32, {kB, kT, 4}, device);
  layer.backward(forward.tape, {{"y", y}}, {{"u", sum.ref()}}, true);
  const Tensors states = layer.zero_states({{"b", kB}});
  const TensorRef first(static_cast<float*>(u.ref().data), {kB, 1, 4}, {kT * 4, 4, 1});
  const TensorRef out(static_cast<float*>(y.data), {kB, 1, 3}, {kT * 3, 3, 1});
  const auto step = [&](Stream stream) {
    layer.step({{"u", first}}, refs(states), {{"y", out}}, stream);
  };
  step({});
  if (captures) {
    const auto captured = device.capture(step);
    captured->bind(step);
    captured->replay();
    device.finish();
  }
  // Position 0 was written by the step, from the same zero state.
  if (relative_error(values_of(to_host(y, device)), host_output()) > (captures ? 1 : 1e-5))
    throw std::runtime_error("wrong numbers");
  to_host(gradients.at("u").ref(), device);
}

/// What the work threw, "" where it went through.
std::string outcome(bool captures = false) {
  try {
    work(captures);
    return "";
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

/// Runs the work under a fault; the context of another program part stays current, nothing is left.
std::string faulty(bool captures = true) {
  const auto current = [] {
    CUcontext now = nullptr;
    check(driver<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent")(&now));
    return now;
  };
  const Alive before = alive();
  const CUcontext entered = current();
  const std::string error = outcome(captures);
  CHECK(alive() == before);
  CHECK(current() == entered);
  return error;
}

class OtherContext {
 public:
  OtherContext() {
    check(driver<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&context_, 0, 0));
  }
  ~OtherContext() { driver<decltype(&cuCtxDestroy)>("cuCtxDestroy_v2")(context_); }
  OtherContext(const OtherContext&) = delete;

 private:
  CUcontext context_ = nullptr;
};

TEST_CASE("out of memory at every allocation in turn") {
  const EmulatedGpu gpu;
  const OtherContext other;
  REQUIRE(outcome() == "");
  int failed = 0;
  for (std::uint64_t n = 1;; ++n) {
    REQUIRE(n < 200);
    INFO("allocation " << n);
    EmulatedGpu::fail_allocation(n);
    const std::string error = faulty();
    // Memory that was kept without a use may have helped.
    if (!error.empty()) {
      ++failed;
      CHECK_THAT(error, Contains("CUDA_ERROR_OUT_OF_MEMORY") && Contains("smaller sizes"));
      if (error.find("no memory for") != std::string::npos)
        CHECK_THAT(error, Contains(" bytes are free"));
    }
    CUdeviceptr memory = 0;
    const CUresult left = driver<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&memory, 512);
    EmulatedGpu::fail_allocation(0);
    if (left == CUDA_ERROR_OUT_OF_MEMORY) break;  // nobody met it
    driver<decltype(&cuMemFree)>("cuMemFree_v2")(memory);
  }
  CHECK(failed > 10);
  CHECK(outcome() == "");
}

TEST_CASE("every entry point that fails is named by its code, and the next try works") {
  const EmulatedGpu gpu;
  const OtherContext other;
  REQUIRE(outcome() == "");
  for (const char* name : {"cuDeviceGetCount",
                           "cuDeviceGetAttribute",
                           "cuDevicePrimaryCtxRetain",
                           "cuCtxPushCurrent",
                           "cuStreamCreate",
                           "cuEventCreate",
                           "cuMemAllocAsync",
                           "cuMemsetD8Async",
                           "cuMemcpyHtoDAsync",
                           "cuMemcpyDtoHAsync",
                           "cuStreamSynchronize",
                           "cuStreamWaitEvent",
                           "cuModuleLoadDataEx",
                           "cuModuleGetFunction",
                           "cuLaunchKernel",
                           "cuPointerGetAttributes",
                           "cuStreamBeginCapture",
                           "cuStreamEndCapture",
                           "cuGraphInstantiateWithFlags",
                           "cuGraphExecUpdate",
                           "cuGraphLaunch"}) {
    INFO(name);
    EmulatedGpu::fail_call(name, 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK_THAT(faulty(), Contains("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
    EmulatedGpu::fail_call(name, 0, CUDA_SUCCESS);
  }
  // What only helps is done without.
  for (const char* name :
       {"cuEventRecord", "cuEventQuery", "cuMemGetInfo", "cuStreamIsCapturing"}) {
    INFO(name);
    EmulatedGpu::fail_call(name, 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(outcome() == "");
    EmulatedGpu::fail_call(name, 0, CUDA_SUCCESS);
  }
  CHECK(outcome(true) == "");
}

TEST_CASE("each launch is looked at") {
  const EmulatedGpu gpu;
  const OtherContext other;
  const auto launches = [] { return testing::launches().size(); };
  REQUIRE(outcome() == "");
  const std::size_t before = launches();
  REQUIRE(outcome() == "");
  const std::size_t all = launches() - before;
  CHECK(all > 5);
  for (std::size_t n = 1; n <= all; ++n) {
    INFO("launch " << n << " of " << all);
    EmulatedGpu::fail_call("cuLaunchKernel", n, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK_THAT(faulty(false), Contains("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
    EmulatedGpu::fail_call("cuLaunchKernel", 0, CUDA_SUCCESS);
  }
}

TEST_CASE("a kernel that faults loses the context, and says so; a new device works") {
  const EmulatedGpu gpu;
  for (const bool shared : {false, true}) {
    INFO("held by another: " << shared);
    const auto framework = shared ? std::make_unique<Framework>() : nullptr;
    {
      const Layer layer = retention_on("cuda:0");
      Device& device = *layer.device();
      const Tensor u = to_device({kU.data(), {kB, kT, 4}}, device);
      const Tensor y(DType::f32, {kB, kT, 3}, device);
      // Says that it steps over far more memory than it has.
      const TensorRef wild(static_cast<const float*>(y.data()), {kB, kT, 3}, {1 << 28, 3, 1});
      const auto run = [&] {
        layer.forward({{"u", u.ref()}}, {{"y", wild}});
        device.finish();
      };
      CHECK_THROWS_WITH(run(),
                        Contains("CUDA_ERROR_") && Contains("context of the device is lost"));
      // Nothing goes any more, and each call says why.
      CHECK_THROWS_WITH(run(), Contains("context of the device is lost"));
      CHECK_THROWS_WITH(to_host(u.ref(), device), Contains("context of the device is lost"));
      CHECK_THROWS_AS(Tensor(DType::f32, {1 << 20}, device), EnvironmentError);
    }
    if (shared)
      CHECK_THAT(outcome(), Contains("context of the device is lost"));
    else
      CHECK(outcome() == "");
  }
}

TEST_CASE("images that a driver refuses") {
  const TestFolder folder;
  const std::string before = std::getenv("KRAIT_CACHE_DIR") ? std::getenv("KRAIT_CACHE_DIR") : "";
  ::setenv("KRAIT_CACHE_DIR", folder.path.c_str(), 1);
  {
    const EmulatedGpu gpu;
    // Just compiled: nothing that compiling again would mend.
    EmulatedGpu::fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_INVALID_IMAGE);
    CHECK_THROWS_AS(retention_on("cuda:0"), InternalError);
    CHECK(retention_on("cuda:0").counters().compiled >= 1);
    CHECK(retention_on("cuda:0").counters().compiled == 0);
    // From the cache: compiled again, once.
    EmulatedGpu::fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_INVALID_IMAGE);
    CHECK(retention_on("cuda:0").counters().compiled == 1);
    CHECK(retention_on("cuda:0").counters().compiled == 0);
  }
  if (before.empty())
    ::unsetenv("KRAIT_CACHE_DIR");
  else
    ::setenv("KRAIT_CACHE_DIR", before.c_str(), 1);
}

TEST_CASE("a stream that is gone is the driver's error") {
  const EmulatedGpu gpu;
  CUstream gone = nullptr;
  const Layer layer = retention_on("cuda:0");
  const Tensor u = to_device({kU.data(), {kB, kT, 4}}, *layer.device());
  {
    const Framework framework;
    check(driver<decltype(&cuStreamCreate)>("cuStreamCreate")(&gone, 0));
    check(driver<decltype(&cuStreamDestroy)>("cuStreamDestroy_v2")(gone));
  }
  CHECK_THROWS_AS(layer.forward({{"u", u.ref()}}, {}, Stream::of(gone)), EnvironmentError);
  const Layer::Forward forward = layer.forward({{"u", u.ref()}});
  CHECK(relative_error(values_of(to_host(forward.outputs.at("y").ref(), *layer.device())),
                       host_output()) < 1e-5);
}

}  // namespace
}  // namespace krait
