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
      blas_(std::move(options.libblas)),
      pool_(options.threads) {}

VectorTarget HostDevice::vector_target() const {
  const HostTarget& host = compiler_.host().target();
  VectorTarget target;
  target.vector_bits = host.vector_bits;
  target.vector_registers = host.vector_registers;
  return target;
}

}  // namespace krait
