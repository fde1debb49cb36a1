#include "runtime/device.h"

#include <algorithm>
#include <cctype>

#include "dsl/error.h"
#include "runtime/cuda/device.h"
#include "runtime/host/device.h"

namespace krait {

Tensor to_device(const TensorRef& host, Device& device) {
  const Tensor dense(host.dtype, host.shape);
  copy(host, dense.ref());
  const std::int64_t bytes = bytes_of(host.dtype, host.shape);
  Tensor made(host.dtype, host.shape, device.allocate(bytes, {}));
  device.write(made.data(), dense.data(), bytes);
  return made;
}

Tensor to_host(const TensorRef& tensor, Device& device, Stream stream) {
  const std::int64_t bytes = bytes_of(tensor.dtype, tensor.shape);
  Tensor made(tensor.dtype, tensor.shape);
  if (tensor.is_dense()) {
    device.read(made.data(), tensor.data, bytes, stream);
    return made;
  }
  const Memory dense = device.scratch(bytes, stream);
  device.copy(tensor, {dense.data(), tensor.dtype, tensor.shape}, stream);
  device.read(made.data(), dense.data(), bytes, stream);
  return made;
}

bool is_cuda_device(const std::string& name) {
  constexpr std::size_t most_digits = 4;
  const std::string prefix = "cuda:";
  return name.rfind(prefix, 0) == 0 && name.size() > prefix.size() &&
         name.size() <= prefix.size() + most_digits &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

std::shared_ptr<Device> make_device(const std::string& name, int threads) {
  if (name == "host") {
    HostDeviceOptions options = HostDeviceOptions::from();
    options.threads = threads;
    return std::make_shared<HostDevice>(std::move(options));
  }
  if (!is_cuda_device(name)) throw UsageError("device", name, "host, cuda:N");
  return make_cuda_device(std::stoi(name.substr(5)), threads);
}

}  // namespace krait
