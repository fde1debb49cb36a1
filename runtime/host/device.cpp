#include "runtime/host/device.h"

namespace krait {

HostDeviceOptions HostDeviceOptions::from(const Environment& environment) {
  HostDeviceOptions options;
  options.compiler = CompilerOptions::from(environment);
  options.libblas = environment.libblas;
  return options;
}

HostDevice::HostDevice(HostDeviceOptions options)
    : compiler_(std::move(options.compiler)),
      blas_named_(!options.libblas.empty()),
      blas_(std::move(options.libblas)),
      pool_(options.threads) {}

bool HostDevice::prefers_library() const {
  if (!blas_.available()) return false;
  const int bits = blas_.vector_bits();
  return blas_named_ || bits == 0 || bits >= vector_target().vector_bits;
}

VectorTarget HostDevice::vector_target() const {
  const HostTarget& host = compiler_.host().target();
  VectorTarget target;
  target.vector_bits = host.vector_bits;
  target.vector_registers = host.vector_registers;
  return target;
}

}  // namespace krait
