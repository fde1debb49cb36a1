#include "runtime/cuda/device.h"

#include <limits>
#include <mutex>
#include <vector>

#include "dsl/error.h"
#include "runtime/cuda/backend.h"
#include "runtime/cuda/capture.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/defaults.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/strided.h"
#include "runtime/host/device.h"
#include "schedules/fuse_bias.h"
#include "schedules/split_sums.h"

namespace krait {
namespace {

/// What kernels for the part are made with, and what schedules are judged on.
struct Part {
  CudaTarget cuda;
  Target target;
  bool reaches_pageable = false;  // ordinary memory of the process
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
  part.reaches_pageable = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
  std::size_t bytes = 0;
  driver.check(driver.cuDeviceTotalMem(&bytes, device), "the memory of the device");
  part.target =
      gpu_target(part.cuda.architecture, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                 static_cast<std::int64_t>(bytes));
  return part;
}

std::shared_ptr<const CudaContext> context_of(int ordinal) {
  const CudaDriver& driver = cuda_driver();
  int count = 0;
  driver.check(driver.cuDeviceGetCount(&count), "counting devices");
  if (ordinal >= count)
    throw EnvironmentError(text("there is no device cuda:", ordinal, ": the driver (", driver.path,
                                ") knows ", count));
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, ordinal), "device");
  return std::make_shared<const CudaContext>(driver, device);
}

class CudaDevice : public Device {
 public:
  CudaDevice(int ordinal, HostDeviceOptions options)
      : name_("cuda:" + std::to_string(ordinal)),
        ordinal_(ordinal),
        pool_(options.threads),
        context_(context_of(ordinal)),
        driver_(context_->driver()),
        part_(part_of(driver_, context_->device())),
        memory_(std::make_shared<CudaMemory>(context_)),
        schedule_(options.schedule),
        compiler_(std::move(options.compiler),
                  std::make_shared<CudaBackend>(context_, part_.cuda)) {}
  ~CudaDevice() override { close_library(); }

  const std::string& name() const override { return name_; }
  const Target& target() const override { return part_.target; }
  const Schedule& schedule() const override { return schedule_; }
  Compiler& compiler() override { return compiler_; }
  Pool& pool() override { return pool_; }

  Memory allocate(std::int64_t bytes, Stream stream) override {
    if (const auto captured = captures_->find(stream)) return captured->take(bytes, stream);
    return memory_->take(bytes, stream);
  }
  Memory scratch(std::int64_t bytes, Stream stream) override { return allocate(bytes, stream); }
  void trim() override { memory_->trim(); }
  void clear(void* memory, std::int64_t bytes, Stream stream) override {
    const CurrentContext current(*context_);
    driver_.check(driver_.cuMemsetD8Async(address(memory), 0, static_cast<std::size_t>(bytes),
                                          context_->stream(stream)),
                  "clearing memory");
  }
  void write(void* memory, const void* from, std::int64_t bytes, Stream stream) override {
    refuse_capture(stream, "copying to the device");
    const CurrentContext current(*context_);
    driver_.check(driver_.cuMemcpyHtoDAsync(address(memory), from, static_cast<std::size_t>(bytes),
                                            context_->stream(stream)),
                  "copying to the device");
    finish(stream);
  }
  void read(void* to, const void* memory, std::int64_t bytes, Stream stream) override {
    refuse_capture(stream, "copying from the device");
    const CurrentContext current(*context_);
    driver_.check(driver_.cuMemcpyDtoHAsync(to, address(memory), static_cast<std::size_t>(bytes),
                                            context_->stream(stream)),
                  "copying from the device");
    finish(stream);
  }
  void copy(const TensorRef& from, const TensorRef& to, Stream stream) override {
    if (from.shape != to.shape || from.dtype != to.dtype || !from.is_dense() || !to.is_dense())
      return strided(from, to, false, stream);
    const CurrentContext current(*context_);
    driver_.check(driver_.cuMemcpyDtoDAsync(address(to.data), address(from.data),
                                            static_cast<std::size_t>(bytes_of(to.dtype, to.shape)),
                                            context_->stream(stream)),
                  "copying on the device");
  }
  void add(const TensorRef& from, const TensorRef& to, Stream stream) override {
    strided(from, to, true, stream);
  }
  void require_reachable(const void* memory, const std::string& what) const override;

  Plan adapted(Plan plan) const override {
    plan = fuse_bias(std::move(plan), [this](const Plan& of, const PlannedKernel& kernel) {
      return uses_library(of, kernel) &&
             of.graph.node(kernel.nodes[0]).results[0].dtype == DType::f32;
    });
    return split_sums(std::move(plan), [this](const Plan& of, const PlannedKernel& kernel) {
      return !uses_library(of, kernel);
    });
  }
  bool uses_library(const Plan& plan, const PlannedKernel& kernel) const override {
    if (plan.schedule.gemm_or_default() == GemmKind::generated) return false;
    if (library() == nullptr && plan.schedule.gemm)
      throw EnvironmentError("gemm=library: " + library_status_.problem);
    return library() != nullptr && fits_library(plan, kernel);
  }
  GeneratedKernel generate(const Plan& plan, int kernel, const Prepared& prepared) const override {
    const PassObserver dumped = compiler_.dumps().tiles(file_of(plan, kernel));
    if (prepared.kernels && !dumped) return prepared.kernels->generate(plan, kernel);
    return generate_cuda(plan, kernel, part_.cuda, cuda_passes(), dumped);
  }
  Schedule with_defaults(const Schedule& given, const ScheduleRequest& request,
                         Prepared& prepared) override {
    return cuda_defaults(given, request, part_.target, part_.cuda, &prepared, &pool_,
                         compiler_.disk());
  }
  Plan step(const Graph& graph, const Schedule& schedule, Prepared& prepared) override {
    return cuda_step(graph, schedule, part_.cuda, prepared, &pool_);
  }
  void reserve_scratch(std::int64_t) override {}

  void launch(const Launch& launch) override {
    if (launch.grid == 0) return;
    const CurrentContext current(*context_);
    const GeneratedKernel& kernel = *launch.kernel;
    if (launch.grid > std::numeric_limits<std::int32_t>::max())
      throw UsageError("grid of kernel " + kernel.source.name, std::to_string(launch.grid),
                       "at most 2147483647 blocks: smaller sizes");
    // Kernels count positions in 32 bits.
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
      if (kernel.arguments[i].kind == TileProgram::Argument::Kind::size &&
          launch.arguments[i] > std::numeric_limits<std::int32_t>::max())
        throw UsageError("size " + kernel.arguments[i].symbol, std::to_string(launch.arguments[i]),
                         "at most 2147483647 on a GPU");
    const auto& executable = dynamic_cast<const CudaExecutable&>(*launch.executable);
    executable.allow_shared(kernel.scratch_bytes);
    thread_local std::vector<void*> parameters;
    parameters.clear();
    for (void* const& buffer : launch.buffers) parameters.push_back(const_cast<void**>(&buffer));
    for (const std::int64_t& argument : launch.arguments)
      parameters.push_back(const_cast<std::int64_t*>(&argument));
    driver_.check(
        driver_.cuLaunchKernel(executable.function(), static_cast<unsigned>(launch.grid), 1, 1,
                               static_cast<unsigned>(kernel.threads), 1, 1,
                               static_cast<unsigned>(kernel.scratch_bytes),
                               context_->stream(launch.stream), parameters.data(), nullptr),
        ("launching " + kernel.source.name).c_str());
  }
  std::string library_text() const override {
    if (library() == nullptr) return "none (" + library_status_.problem + ")";
    return "cuBLASLt " + library_status_.version + ", " + library_status_.path;
  }
  std::shared_ptr<PreparedProduct> prepare(const GemmCalls& calls, bool workspace) override {
    const CurrentContext current(*context_);
    // What NVIDIA advises, for parts from 9.0 on and for those before.
    const std::int64_t most = part_.cuda.capability >= 90 ? 32 << 20 : 4 << 20;
    return library()->prepare(calls, workspace ? most : 0);
  }
  void product(PreparedProduct& product, void* const* pointers, void* workspace,
               Stream stream) override {
    const CurrentContext current(*context_);
    library()->run(product, pointers, workspace, context_->stream(stream));
  }
  void finish(Stream stream) override {
    refuse_capture(stream, "waiting for the device");
    const CurrentContext current(*context_);
    driver_.check(driver_.cuStreamSynchronize(context_->stream(stream)), "running kernels");
  }
  double milliseconds(const std::function<void(Stream)>& call) override;
  std::unique_ptr<CapturedCall> capture(const CapturedCall::Call& call) override {
    return capture_cuda(context_, captures_, call);
  }

 private:
  static CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

  void close_library() {
    try {
      const CurrentContext current(*context_);
      library_.reset();
    } catch (const std::exception&) {
      // A context that cannot be entered takes the library's things along.
    }
  }

  void refuse_capture(Stream stream, const char* what) const {
    if (captures_->find(stream))
      throw UsageError("captured call", what, "work that stays on the device");
  }

  /// Opened by the first product; null where there is none.
  CublasLt* library() const {
    std::call_once(library_opened_, [this] {
      const CurrentContext current(*context_);
      library_ = open_cublaslt(driver_.path, library_status_);
    });
    return library_.get();
  }

  void strided(const TensorRef& from, const TensorRef& to, bool adds, Stream stream) {
    StridedCall call = strided_call(from, to, adds);
    call.source.options.push_back("--gpu-architecture=" + part_.cuda.architecture);
    const auto executable = compiler_.compile(call.source);
    const CurrentContext current(*context_);
    void* parameters[] = {&call.to, &call.from, &call.dims, &call.count};
    driver_.check(driver_.cuLaunchKernel(
                      dynamic_cast<const CudaExecutable&>(*executable).function(), call.blocks, 1,
                      1, call.threads, 1, 1, 0, context_->stream(stream), parameters, nullptr),
                  "copying a tensor");
  }

  std::string name_;
  int ordinal_;
  Pool pool_;
  std::shared_ptr<const CudaContext> context_;
  const CudaDriver& driver_;
  Part part_;
  std::shared_ptr<CudaMemory> memory_;
  std::shared_ptr<Captures> captures_ = std::make_shared<Captures>();
  Schedule schedule_;
  Compiler compiler_;
  mutable std::once_flag library_opened_;
  mutable std::unique_ptr<CublasLt> library_;
  mutable CublasLtStatus library_status_;
};

double CudaDevice::milliseconds(const std::function<void(Stream)>& call) {
  const CurrentContext current(*context_);
  const CUstream stream = context_->stream({});
  struct Event {
    explicit Event(const CudaDriver& d) : driver(d) {
      driver.check(driver.cuEventCreate(&handle, CU_EVENT_DEFAULT), "an event");
    }
    ~Event() { driver.cuEventDestroy(handle); }
    const CudaDriver& driver;
    CUevent handle = nullptr;
  };
  const Event start(driver_), stop(driver_);
  driver_.check(driver_.cuEventRecord(start.handle, stream), "recording an event");
  call({});
  driver_.check(driver_.cuEventRecord(stop.handle, stream), "recording an event");
  driver_.check(driver_.cuEventSynchronize(stop.handle), "running kernels");
  float ms = 0;
  driver_.check(driver_.cuEventElapsedTime(&ms, start.handle, stop.handle), "timing");
  return ms;
}

void CudaDevice::require_reachable(const void* memory, const std::string& what) const {
  const CurrentContext current(*context_);
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* places[] = {&type, &managed, &ordinal};
  driver_.check(driver_.cuPointerGetAttributes(3, wanted, places, address(memory)),
                ("asking where " + what + " lies").c_str());
  if (managed != 0 || type == CU_MEMORYTYPE_HOST) return;  // page-locked
  if (type == CU_MEMORYTYPE_DEVICE) {
    if (ordinal != ordinal_)
      throw UsageError("memory of " + what, text("of cuda:", ordinal), name_);
    return;
  }
  if (!part_.reaches_pageable)
    throw UsageError("memory of " + what, "of this process, or of no one",
                     name_ + " (to_device copies there)");
}

}  // namespace

std::shared_ptr<Device> make_cuda_device(int ordinal, int threads) {
  HostDeviceOptions options = HostDeviceOptions::from();
  options.threads = threads;
  return std::make_shared<CudaDevice>(ordinal, std::move(options));
}

}  // namespace krait
