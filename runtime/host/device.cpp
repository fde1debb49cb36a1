#include "runtime/host/device.h"

#include "dsl/error.h"
#include "runtime/file.h"

namespace krait {
namespace {

Schedule read_schedule(const std::string& path) {
  try {
    return parse_schedule_file(read_text(path));
  } catch (const UsageError& error) {
    throw UsageError("KRAIT_SCHEDULE, file " + path + ": " + error.what());
  }
}

}  // namespace

HostDeviceOptions HostDeviceOptions::from(const Environment& environment) {
  HostDeviceOptions options;
  options.compiler = CompilerOptions::from(environment);
  options.libblas = environment.libblas;
  if (!environment.schedule_file.empty())
    options.schedule = read_schedule(environment.schedule_file);
  return options;
}

HostDevice::HostDevice(HostDeviceOptions options)
    : compiler_(std::move(options.compiler)),
      blas_named_(!options.libblas.empty()),
      blas_(std::move(options.libblas)),
      pool_(options.threads),
      target_(machine_target(compiler_.host().target().vector_bits)),
      schedule_(options.schedule) {}

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
