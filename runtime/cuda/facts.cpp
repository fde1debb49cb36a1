#include "runtime/cuda/facts.h"

#include <array>

#include "dsl/error.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc_build.h"

namespace krait {

CudaFacts cuda_facts() {
  const CudaDriver& driver = cuda_driver();
  CudaFacts facts;
  facts.path = driver.path;
  int version = 0, count = 0;
  driver.check(driver.cuDriverGetVersion(&version), "its version");
  facts.version = text(version / 1000, ".", version % 1000 / 10);
  driver.check(driver.cuDeviceGetCount(&count), "counting devices");
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    driver.check(driver.cuDeviceGet(&device, i), "device");
    const auto attribute = [&](CUdevice_attribute which) {
      int value = 0;
      driver.check(driver.cuDeviceGetAttribute(&value, which, device),
                   "an attribute of the device");
      return value;
    };
    CudaFacts::Part part;
    std::array<char, 256> name{};
    driver.check(driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()), device),
                 "the name of the device");
    part.name = name.data();
    part.capability = text(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), ".",
                           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    part.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    std::size_t bytes = 0;
    driver.check(driver.cuDeviceTotalMem(&bytes, device), "the memory of the device");
    part.memory_bytes = static_cast<std::int64_t>(bytes);
    facts.parts.push_back(std::move(part));
  }
  return facts;
}

namespace {

class NvrtcBackend : public CompilerBackend {
 public:
  explicit NvrtcBackend(CudaTarget target) : target_(std::move(target)) {}

  Toolchain toolchain(DiskCache* memory) const override {
    return {target_.architecture, {{"nvrtc", nvrtc_build(memory)}}};
  }
  CompiledCode compile(const KernelSource& source) const override { return nvrtc_code(source); }
  std::shared_ptr<Executable> load(const KernelSource& source, const std::string& key,
                                   const CompiledCode& code) const override {
    return std::make_shared<Executable>(source.name, key, code.log);
  }

 private:
  CudaTarget target_;
};

}  // namespace

std::shared_ptr<const CompilerBackend> nvrtc_backend(const CudaTarget& target) {
  return std::make_shared<NvrtcBackend>(target);
}

}  // namespace krait
