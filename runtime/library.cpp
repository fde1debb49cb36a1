#include "runtime/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "dsl/error.h"

namespace krait {

bool is_cut_short(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return false;
  const auto size = static_cast<std::uint64_t>(file.tellg());
  const auto read = [&](std::uint64_t at, auto& into) {
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(&into), sizeof into);
    return static_cast<bool>(file);
  };
  ElfW(Ehdr) header;
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!read(header.e_phoff + i * header.e_phentsize, segment)) return true;
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > size) return true;
  }
  return false;
}

namespace {

/// The first that opens, or null; `status` tells where or why not.
void* open_first(LibraryStatus& status, const std::string& variable,
                 const std::vector<std::string>& names) {
  const char* const given = std::getenv(variable.c_str());
  const bool set = given != nullptr && *given != '\0';
  for (const std::string& candidate : set ? std::vector<std::string>{given} : names) {
    if (candidate.empty()) continue;
    if (candidate.find('/') != std::string::npos && is_cut_short(candidate)) {
      if (status.problem.empty()) status.problem = candidate + " was cut short";
      continue;
    }
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
    return handle;
  }
  if (set) status.problem = variable + ": " + status.problem;
  return nullptr;
}

}  // namespace

LibraryStatus find_library(const std::string& name, const std::string& variable,
                           const std::vector<std::string>& names) {
  LibraryStatus status{name, "", ""};
  if (void* const handle = open_first(status, variable, names)) ::dlclose(handle);
  return status;
}

Library open_library(const std::string& what, const std::string& variable,
                     const std::vector<std::string>& names, const std::string& remedy) {
  LibraryStatus status;
  Library library;
  library.what = what;
  library.remedy = remedy;
  library.handle = open_first(status, variable, names);
  if (library.handle == nullptr)
    throw EnvironmentError(text(what, " is missing (", status.problem, "); ", remedy));
  library.path = status.path;
  return library;
}

void* Library::symbol(const char* name) const {
  void* const found = ::dlsym(handle, name);
  if (found == nullptr)
    throw EnvironmentError(
        text(what, " (", path, ") has no ", name, "; it is too old, or another library: ", remedy));
  return found;
}

}  // namespace krait
