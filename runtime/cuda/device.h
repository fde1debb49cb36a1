// GPUs of NVIDIA, by the CUDA driver and NVRTC, which are opened when they are first needed.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace krait {

/// GPU number `ordinal`. Throws EnvironmentError that says what is missing: the driver
/// (KRAIT_LIBCUDA), a device of that number, or the CUDA headers when krait was built. NVRTC
/// (KRAIT_LIBNVRTC) is asked for by the first kernel that is not in the cache.
std::shared_ptr<Device> make_cuda_device(int ordinal, int threads = 0);

}  // namespace krait
