// Shared libraries that are looked for at run time.
#pragma once

#include <string>
#include <vector>

namespace krait {

/// Whether a library ends before what its header says of it: to map one that was cut short ends the
/// process. What is no library at all is left to the linker to tell.
bool is_cut_short(const std::string& path);

struct LibraryStatus {
  std::string name;     // what it is for people: "NVRTC"
  std::string path;     // where it was found, or empty
  std::string problem;  // why there is none, or empty
};

/// Looks for a library under the path in the environment variable `variable` alone where that is
/// set, else under each of `names` in turn. The library is closed again.
LibraryStatus find_library(const std::string& name, const std::string& variable,
                           const std::vector<std::string>& names);

/// A library that is open for as long as the process lives.
struct Library {
  std::string what, path, remedy;
  void* handle = nullptr;

  /// Sets `function` to the symbol. Throws EnvironmentError where the library lacks it, with the
  /// remedy: it is another one.
  template <typename F>
  void find(const char* name, F& function) const {
    function = reinterpret_cast<F>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;
};

/// Looks in the same way, and keeps it open. A file that is named by its path and was cut short is
/// told from a sound one before it can do harm; one that the system finds is not. Throws
/// EnvironmentError "WHAT is missing (REASON); REMEDY" where there is none.
Library open_library(const std::string& what, const std::string& variable,
                     const std::vector<std::string>& names, const std::string& remedy);

}  // namespace krait
