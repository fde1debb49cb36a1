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

/// The library's file. Opens it; throws EnvironmentError as above.
const std::string& nvrtc_path();
/// Whether this process has opened it.
bool nvrtc_is_open();
/// What the library is looked for as, unless $KRAIT_LIBNVRTC says.
const std::vector<std::string>& nvrtc_names();

}  // namespace krait
