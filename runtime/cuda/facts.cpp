#include "runtime/cuda/facts.h"

#include <array>

#include "dsl/error.h"
#include "runtime/cuda/driver.h"

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

}  // namespace krait
