#include "runtime/cuda/device.h"

#include <limits>
#include <mutex>
#include <optional>

#include "dsl/error.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/defaults.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/strided.h"
#include "runtime/host/device.h"

namespace krait {
namespace {

/// What kernels for the part are made with, and what schedules are judged on.
struct Part {
  CudaTarget cuda;
  Target target;
};

Part part_of(const CudaDriver& driver, CUdevice device) {
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    driver.check(driver.cuDeviceGetAttribute(&value, which, device), "an attribute of the device");
    return value;
  };
  Part part;
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  part.cuda = cuda_target(10 * major + minor);
  part.cuda.shared_limit = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  std::size_t bytes = 0;
  driver.check(driver.cuDeviceTotalMem(&bytes, device), "the memory of the device");
  part.target =
      gpu_target(part.cuda.architecture, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                 static_cast<std::int64_t>(bytes));
  return part;
}

class CudaDevice : public Device {
 public:
  CudaDevice(int ordinal, HostDeviceOptions options)
      : driver_(cuda_driver()), name_("cuda:" + std::to_string(ordinal)), pool_(options.threads) {
    int count = 0;
    driver_.check(driver_.cuDeviceGetCount(&count), "counting devices");
    if (ordinal >= count)
      throw EnvironmentError(
          text("there is no device ", name_, ": the driver (", driver_.path, ") knows ", count));
    driver_.check(driver_.cuDeviceGet(&device_, ordinal), "device");
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "a context");
    try {
      enter();
      part_ = part_of(driver_, device_);
      driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "a stream");
      schedule_ = options.schedule;
      compiler_.emplace(std::move(options.compiler),
                        std::make_shared<CudaBackend>(driver_, context_, part_.cuda));
    } catch (...) {
      driver_.cuDevicePrimaryCtxRelease(device_);
      throw;
    }
  }
  ~CudaDevice() override {
    compiler_.reset();
    driver_.cuCtxSetCurrent(context_);
    library_.reset();
    driver_.cuStreamDestroy(stream_);
    driver_.cuDevicePrimaryCtxRelease(device_);
  }

  const std::string& name() const override { return name_; }
  const Target& target() const override { return part_.target; }
  const Schedule& schedule() const override { return schedule_; }
  Compiler& compiler() override { return *compiler_; }
  Pool& pool() override { return pool_; }

  std::shared_ptr<void> allocate(std::int64_t bytes) override {
    enter();
    CUdeviceptr memory = 0;
    driver_.check(driver_.cuMemAlloc(&memory, static_cast<std::size_t>(bytes)),
                  text("memory of ", bytes, " bytes").c_str());
    const CudaDriver& driver = driver_;
    const CUcontext context = context_;
    std::shared_ptr<void> owner(reinterpret_cast<void*>(memory), [&driver, context](void* of) {
      driver.cuCtxSetCurrent(context);
      driver.cuMemFree(reinterpret_cast<CUdeviceptr>(of));
    });
    driver_.check(driver_.cuMemsetD8Async(memory, 0, static_cast<std::size_t>(bytes), stream_),
                  "clearing memory");
    finish();
    return owner;
  }

  void write(void* memory, const void* from, std::int64_t bytes) override {
    enter();
    driver_.check(
        driver_.cuMemcpyHtoDAsync(address(memory), from, static_cast<std::size_t>(bytes), stream_),
        "copying to the device");
    finish();
  }
  void read(void* to, const void* memory, std::int64_t bytes) override {
    enter();
    driver_.check(
        driver_.cuMemcpyDtoHAsync(to, address(memory), static_cast<std::size_t>(bytes), stream_),
        "copying from the device");
    finish();
  }
  void copy(const TensorRef& from, const TensorRef& to) override {
    if (from.shape == to.shape && from.dtype == to.dtype && from.is_dense() && to.is_dense()) {
      enter();
      driver_.check(driver_.cuMemcpyDtoDAsync(
                        address(to.data), address(from.data),
                        static_cast<std::size_t>(to.count() * size_in_bytes(to.dtype)), stream_),
                    "copying on the device");
      return;
    }
    strided(from, to, false);
  }
  void add(const TensorRef& from, const TensorRef& to) override { strided(from, to, true); }

  bool uses_library(const Plan& plan, const PlannedKernel& kernel) const override {
    if (plan.schedule.gemm_or_default() == GemmKind::generated) return false;
    if (library() == nullptr && plan.schedule.gemm)
      throw EnvironmentError("gemm=library: " + library_status_.problem);
    return library() != nullptr && fits_library(plan, kernel);
  }
  GeneratedKernel generate(const Plan& plan, int kernel) const override {
    return generate_cuda(plan, kernel, part_.cuda, cuda_passes(),
                         compiler_->dumps().tiles(file_of(plan, kernel)));
  }
  Schedule with_defaults(const Schedule& given, const ScheduleRequest& request) const override {
    return cuda_defaults(given, request, part_.target, part_.cuda);
  }
  void reserve_scratch(std::int64_t) override {}

  void launch(const Launch& launch) override {
    if (launch.grid == 0) return;
    enter();
    const GeneratedKernel& kernel = *launch.kernel;
    if (launch.grid > std::numeric_limits<std::int32_t>::max())
      throw UsageError("grid of kernel " + kernel.source.name, std::to_string(launch.grid),
                       "at most 2147483647 blocks: smaller sizes");
    const auto& executable = dynamic_cast<const CudaExecutable&>(*launch.executable);
    executable.allow_shared(kernel.scratch_bytes);
    thread_local std::vector<void*> parameters;
    parameters.clear();
    for (void* const& buffer : launch.buffers) parameters.push_back(const_cast<void**>(&buffer));
    for (const std::int64_t& argument : launch.arguments)
      parameters.push_back(const_cast<std::int64_t*>(&argument));
    driver_.check(driver_.cuLaunchKernel(executable.function(), static_cast<unsigned>(launch.grid),
                                         1, 1, static_cast<unsigned>(kernel.threads), 1, 1,
                                         static_cast<unsigned>(kernel.scratch_bytes), stream_,
                                         parameters.data(), nullptr),
                  ("launching " + kernel.source.name).c_str());
  }
  std::string library_text() const override {
    if (library() == nullptr) return "none (" + library_status_.problem + ")";
    return "cuBLASLt " + library_status_.version + ", " + library_status_.path;
  }
  std::shared_ptr<PreparedProduct> prepare(const GemmCalls& calls, bool workspace) override {
    enter();
    // What NVIDIA advises, for parts from 9.0 on and for those before.
    const std::int64_t most = part_.cuda.capability >= 90 ? 32 << 20 : 4 << 20;
    return library()->prepare(calls, workspace ? most : 0);
  }
  void product(PreparedProduct& product, void* const* pointers, void* workspace) override {
    enter();
    library()->run(product, pointers, workspace, stream_);
  }
  void finish() override {
    enter();
    driver_.check(driver_.cuStreamSynchronize(stream_), "running kernels");
  }

 private:
  static CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
  void enter() const { driver_.check(driver_.cuCtxSetCurrent(context_), "entering the context"); }

  /// Opened by the first product; null where there is none.
  CublasLt* library() const {
    std::call_once(library_opened_, [this] {
      enter();
      library_ = open_cublaslt(driver_.path, library_status_);
    });
    return library_.get();
  }

  void strided(const TensorRef& from, const TensorRef& to, bool adds) {
    enter();
    StridedCall call = strided_call(from, to, adds);
    call.source.options.push_back("--gpu-architecture=" + part_.cuda.architecture);
    const auto executable = compiler_->compile(call.source);
    void* parameters[] = {&call.to, &call.from, &call.dims, &call.count};
    driver_.check(driver_.cuLaunchKernel(
                      dynamic_cast<const CudaExecutable&>(*executable).function(), call.blocks, 1,
                      1, call.threads, 1, 1, 0, stream_, parameters, nullptr),
                  "copying a tensor");
    if (adds || !from.is_dense()) finish();
  }

  const CudaDriver& driver_;
  std::string name_;
  Pool pool_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  Part part_;
  Schedule schedule_;
  std::optional<Compiler> compiler_;
  mutable std::once_flag library_opened_;
  mutable std::unique_ptr<CublasLt> library_;
  mutable CublasLtStatus library_status_;
};

}  // namespace

std::shared_ptr<Device> make_cuda_device(int ordinal, int threads) {
  HostDeviceOptions options = HostDeviceOptions::from();
  options.threads = threads;
  return std::make_shared<CudaDevice>(ordinal, std::move(options));
}

}  // namespace krait
