// KRAIT_OVERRIDE_DIR: edited kernels that run in place of generated ones.
//
// The folder holds texts under the names that KRAIT_DUMP gives them: NAME.cu for a GPU, NAME.ll for
// the host. A kernel is launched as the generated one would be: its entry, parameters, grid,
// threads and shared memory have to stay.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "codegen/kernel_source.h"
#include "runtime/warning.h"

namespace krait {

/// The folder, as one compiler uses it. Safe to use from several threads at once.
class Overrides {
 public:
  /// Throws UsageError where there is such a path, but no folder there.
  Overrides(std::optional<std::filesystem::path> directory, WarningSink warn);
  /// Says which files replaced nothing, where kernels were looked up at all.
  ~Overrides();
  Overrides(const Overrides&) = delete;
  Overrides& operator=(const Overrides&) = delete;

  struct Edited {
    std::string path, text;
  };
  /// What runs in place of `source`, if anything, and says so. Throws UsageError where the file was
  /// taken for another kernel of the same name before, EnvironmentError where it cannot be read.
  std::optional<Edited> find(const KernelSource& source);

 private:
  std::optional<std::filesystem::path> directory_;
  WarningSink warn_;
  std::mutex mutex_;                             // guards what follows
  std::map<std::string, std::string> replaced_;  // generated texts by the file that replaced them
  std::set<std::string> suffixes_, names_;       // of the kernels that were looked up
};

}  // namespace krait
