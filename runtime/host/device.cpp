#include "runtime/host/device.h"

#include <chrono>
#include <cstring>

#include "dsl/error.h"
#include "runtime/file.h"
#include "runtime/host/gemm.h"

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
  options.host = host_target(environment.host_cpu);
  options.libblas = environment.libblas;
  if (!environment.schedule_file.empty())
    options.schedule = read_schedule(environment.schedule_file);
  return options;
}

HostDevice::HostDevice(HostDeviceOptions options)
    : backend_(std::make_shared<HostBackend>(std::move(options.host))),
      compiler_(std::move(options.compiler), backend_),
      blas_named_(!options.libblas.empty()),
      blas_(std::move(options.libblas)),
      pool_(options.threads),
      target_(machine_target(backend_->jit().target().vector_bits)),
      schedule_(options.schedule) {}

bool HostDevice::prefers_library() const {
  if (!blas_.available()) return false;
  const int bits = blas_.vector_bits();
  return blas_named_ || bits == 0 || bits >= vector_target().vector_bits;
}

VectorTarget HostDevice::vector_target() const {
  const HostTarget& host = backend_->jit().target();
  VectorTarget target;
  target.vector_bits = host.vector_bits;
  target.vector_registers = host.vector_registers;
  return target;
}

const std::string& HostDevice::name() const {
  static const std::string host = "host";
  return host;
}

Memory HostDevice::allocate(std::int64_t bytes, Stream) { return host_memory(bytes); }
Memory HostDevice::scratch(std::int64_t bytes, Stream) { return scratch_->take(bytes); }

void HostDevice::clear(void* memory, std::int64_t bytes, Stream) {
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

void HostDevice::write(void* memory, const void* from, std::int64_t bytes, Stream) {
  std::memcpy(memory, from, static_cast<std::size_t>(bytes));
}

void HostDevice::read(void* to, const void* memory, std::int64_t bytes, Stream) {
  std::memcpy(to, memory, static_cast<std::size_t>(bytes));
}

void HostDevice::copy(const TensorRef& from, const TensorRef& to, Stream) { krait::copy(from, to); }
void HostDevice::add(const TensorRef& from, const TensorRef& to, Stream) { krait::add(from, to); }

bool HostDevice::uses_library(const Plan& plan, const PlannedKernel& kernel) const {
  if (plan.schedule.gemm_or_default() == GemmKind::generated) return false;
  if (!plan.schedule.gemm) return prefers_library() && fits_library(plan, kernel);
  if (!blas_.available())
    throw EnvironmentError(
        "gemm=library: no BLAS library was found; install OpenBLAS, or name one in KRAIT_LIBBLAS");
  return fits_library(plan, kernel);
}

GeneratedKernel HostDevice::generate(const Plan& plan, int kernel, const Prepared&) const {
  return generate_host(plan, kernel, vector_target(),
                       compiler_.dumps().tiles(file_of(plan, kernel)));
}

void HostDevice::reserve_scratch(std::int64_t bytes) {
  pool_.reserve_scratch(static_cast<std::size_t>(bytes));
}

void HostDevice::launch(const Launch& launch) {
  struct Context {
    HostKernel function;
    void* const* buffers;
    const std::int64_t* arguments;
  } context{host_kernel(*launch.executable), launch.buffers.data(), launch.arguments.data()};
  // One reference is captured, so that the function object needs no memory of its own.
  pool_.parallel_for(launch.grid, static_cast<std::size_t>(launch.kernel->scratch_bytes),
                     [&context](std::int64_t begin, std::int64_t end, void* scratch) {
                       context.function(context.buffers, context.arguments, scratch, begin, end);
                     });
}

std::string HostDevice::library_text() const {
  return blas_.available() ? "BLAS, " + blas_.path() : "none (no BLAS library was found)";
}

std::shared_ptr<PreparedProduct> HostDevice::prepare(const GemmCalls& calls, bool) {
  auto made = std::make_shared<PreparedProduct>();
  made->calls = calls;
  return made;
}

void HostDevice::product(PreparedProduct& product, void* const* pointers, void*, Stream) {
  run_gemm(product.calls, blas_, pool_, pointers);
}

double HostDevice::milliseconds(const std::function<void(Stream)>& call) {
  const auto start = std::chrono::steady_clock::now();
  call({});
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::unique_ptr<CapturedCall> HostDevice::capture(const CapturedCall::Call&) {
  throw UsageError("device of a captured call", "host", "cuda:N");
}

}  // namespace krait
