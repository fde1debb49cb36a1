// Shared libraries that are looked for at run time.
#pragma once

#include <string>
#include <vector>

namespace krait {

struct LibraryStatus {
  std::string name;     // what it is for people: "NVRTC"
  std::string path;     // where it was found, or empty
  std::string problem;  // why there is none, or empty
};

/// Looks for a library under the path in the environment variable `variable` alone where that is
/// set, else under each of `names` in turn. The library is closed again.
LibraryStatus find_library(const std::string& name, const std::string& variable,
                           const std::vector<std::string>& names);

}  // namespace krait
