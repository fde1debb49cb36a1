#include "runtime/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

namespace krait {

LibraryStatus find_library(const std::string& name, const std::string& variable,
                           const std::vector<std::string>& names) {
  const char* const given = std::getenv(variable.c_str());
  const bool set = given != nullptr && *given != '\0';
  LibraryStatus status{name, "", ""};
  for (const std::string& candidate : set ? std::vector<std::string>{given} : names) {
    void* const handle = ::dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
      if (status.problem.empty()) {
        const char* const reason = ::dlerror();
        status.problem = reason != nullptr ? reason : "cannot be opened";
      }
      continue;
    }
    struct link_map* place = nullptr;
    status.path = ::dlinfo(handle, RTLD_DI_LINKMAP, &place) == 0 ? place->l_name : candidate;
    status.problem.clear();
    ::dlclose(handle);
    return status;
  }
  if (set) status.problem = variable + ": " + status.problem;
  return status;
}

}  // namespace krait
