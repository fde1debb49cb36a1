// CUDA C++ to PTX and device code, by NVRTC.
#pragma once

#include <string>
#include <vector>

namespace krait {

struct NvrtcResult {
  std::string ptx, cubin, log;
};

/// Throws EnvironmentError where NVRTC is missing ($KRAIT_LIBNVRTC, else libnvrtc.so of the system,
/// /usr/local/cuda, or the packages beside the program), InternalError with the log and the
/// numbered source where the text does not compile.
NvrtcResult nvrtc_compile(const std::string& name, const std::string& source,
                          const std::vector<std::string>& options);

/// "13.0", and the file. Throws EnvironmentError as above.
struct NvrtcIdentity {
  std::string version, path;
};
NvrtcIdentity nvrtc_identity();

}  // namespace krait
