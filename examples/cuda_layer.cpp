// A Mamba-2 layer on a GPU: forward, backward and one step, beside the same on the host. Ends with
// 3 where there is no GPU, no driver or no NVRTC, and says which.
#include <krait/krait.h>

#include <cmath>
#include <iostream>
#include <vector>

namespace {

using namespace krait;

constexpr std::int64_t kBatch = 2, kLength = 100, kWidth = 64;

/// What a layer gives, back in this process's memory.
struct Result {
  std::vector<float> y, next, d_A_log;
};

std::vector<float> values(const TensorRef& tensor, Device& device) {
  const Tensor host = to_host(tensor, device);
  return {host.data_as<float>(), host.data_as<float>() + host.count()};
}

Result run(const std::string& device) {
  Mamba2Spec spec{.d_model = kWidth, .d_state = 32, .headdim = 32};
  spec.initial_state = true;
  const Layer layer(block_function(spec), {.name = "layer", .device = device, .seed = 1});
  Device& on = *layer.device();

  // Tensors stand in the device's memory; one of this process is copied there once.
  Tensor host(DType::f32, {kBatch, kLength, kWidth});
  for (std::int64_t i = 0; i < host.count(); ++i)
    host.data_as<float>()[i] = std::sin(0.01f * static_cast<float>(i));
  const Tensor u = to_device(host.ref(), on);
  Layer::Forward window = layer.forward({{"u", u.ref()}});
  const Tensors gradients = layer.backward(window.tape, {{"y", u.ref()}});

  const Tensors states = layer.take_states(window.outputs);
  const TensorRef first{host.data(), DType::f32, {kBatch, 1, kWidth}, host.ref().strides};
  const Tensor one = to_device(first, on), next(DType::f32, one.shape(), on);
  layer.step({{"u", one.ref()}}, refs(states), {{"y", next.ref()}});
  std::cout << device << ": " << layer.counters().compiled << " kernels compiled, "
            << layer.counters().from_cache
            << " from the cache; matrix products: " << on.library_text() << '\n';
  return {values(window.outputs.at("y").ref(), on), values(next.ref(), on),
          values(gradients.at("w.A_log").ref(), on)};
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(squares / size);
}

}  // namespace

int main() try {
  const Result gpu = run("cuda:0"), host = run("host");
  const double y = difference(gpu.y, host.y), next = difference(gpu.next, host.next);
  const double gradient = difference(gpu.d_A_log, host.d_A_log);
  std::cout << "relative difference: y " << y << ", y of one step more " << next
            << ", gradient of A_log " << gradient << '\n';
  const bool close = y < 1e-5 && next < 1e-5 && gradient < 5e-5;
  std::cout << (close ? "as close as they should be\n" : "NOT as close as they should be\n");
  return close ? 0 : 1;
} catch (const EnvironmentError& error) {
  std::cerr << "cuda_layer: " << error.what() << '\n';
  return 3;
} catch (const std::exception& error) {
  std::cerr << "cuda_layer: " << error.what() << '\n';
  return 1;
}
