// Initialization and the device.

#include <cstring>

#include "tests/cuda_emulator/driver/attributes.h"
#include "tests/cuda_emulator/driver/driver.h"

using namespace emulator::driver;

CUresult cuInit(unsigned int Flags) {
  return entry(
      "cuInit",
      [&](Call& call) {
        require(Flags == 0);
        call.driver.initialize();
      },
      false);
}

CUresult cuDriverGetVersion(int* driverVersion) {
  return entry(
      "cuDriverGetVersion",
      [&](Call&) {
        require(driverVersion);
        *driverVersion = CUDA_VERSION;
      },
      false);
}

CUresult cuDeviceGetCount(int* count) {
  return entry("cuDeviceGetCount", [&](Call&) {
    require(count);
    *count = 1;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return entry("cuDeviceGet", [&](Call&) {
    require(device);
    require(ordinal == 0, CUDA_ERROR_INVALID_DEVICE);
    *device = 0;
  });
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  return entry("cuDeviceGetName", [&](Call& call) {
    require(name && len > 0);
    call.check_device(dev);
    const std::string& full = call.driver.limits.name;
    const size_t kept = std::min(full.size(), static_cast<size_t>(len) - 1);
    std::memcpy(name, full.data(), kept);
    name[kept] = 0;
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return entry("cuDeviceTotalMem", [&](Call& call) {
    require(bytes);
    call.check_device(dev);
    *bytes = call.driver.limits.memory;
  });
}

namespace {

CUresult uuid_of(CUuuid* uuid, CUdevice dev) {
  return entry("cuDeviceGetUuid", [&](Call& call) {
    require(uuid);
    call.check_device(dev);
    const emulator::Limits& limits = call.driver.limits;
    std::memcpy(uuid->bytes, "krait emulated", 14);
    uuid->bytes[14] = static_cast<char>(limits.major);
    uuid->bytes[15] = static_cast<char>(limits.minor);
  });
}

}  // namespace

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) { return uuid_of(uuid, dev); }
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return uuid_of(uuid, dev); }

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return entry("cuDeviceGetAttribute", [&](Call& call) {
    require(pi);
    call.check_device(dev);
    const std::optional<int> value = attribute_of(call.driver.limits, attrib);
    require(value.has_value());
    *pi = *value;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  return entry("cuDeviceComputeCapability", [&](Call& call) {
    require(major && minor);
    call.check_device(dev);
    *major = call.driver.limits.major;
    *minor = call.driver.limits.minor;
  });
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return entry("cuDeviceGetPCIBusId", [&](Call& call) {
    require(pciBusId && len > 0);
    call.check_device(dev);
    std::strncpy(pciBusId, "0000:01:00.0", static_cast<size_t>(len) - 1);
    pciBusId[len - 1] = 0;
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return entry("cuDeviceGetByPCIBusId", [&](Call&) {
    require(dev && pciBusId);
    const std::string_view id = pciBusId;
    require(id == "0000:01:00.0" || id == "0000:01:00" || id == "01:00.0",
            CUDA_ERROR_INVALID_DEVICE);
    *dev = 0;
  });
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return entry("cuDeviceCanAccessPeer", [&](Call& call) {
    require(canAccessPeer);
    call.check_device(dev);
    call.check_device(peerDev);
    *canAccessPeer = 0;  // a device is no peer of itself
  });
}
