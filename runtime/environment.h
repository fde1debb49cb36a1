// The environment variables that the runtime obeys, read once into a value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace krait {

struct Environment {
  /// $KRAIT_CACHE_DIR, else $XDG_CACHE_HOME/krait (ignored unless absolute, as the XDG rules say),
  /// else $HOME/.cache/krait, else none.
  std::optional<std::filesystem::path> cache_directory;
  /// $KRAIT_CACHE_SIZE in MiB, here in bytes. Default 1024 MiB.
  std::uint64_t cache_limit_bytes = std::uint64_t{1} << 30;
  /// $KRAIT_HOST_CPU: an LLVM CPU name to compile for in place of this machine's; "" without.
  std::string host_cpu;
  /// $KRAIT_LIBBLAS: the only library to try for BLAS; "" without.
  std::string libblas;
  /// $KRAIT_SCHEDULE: a file with schedule keys for every layer, "" without. What a layer is given
  /// itself comes before it.
  std::string schedule_file;
  /// $KRAIT_DUMP, what to write of every layer and kernel (see dump.h), "" for nothing.
  std::string dump;
  /// $KRAIT_DUMP_DIR, the folder for it; else "krait-dump" in the current one.
  std::filesystem::path dump_directory = "krait-dump";
  /// $KRAIT_OVERRIDE_DIR: a folder of edited kernels (see override.h), none without.
  std::optional<std::filesystem::path> override_directory;
};

/// Reads through `get`, which gives null for an unset variable; an empty one counts as unset.
/// Throws UsageError for a cache size that is no whole number of at least 1.
Environment read_environment(const std::function<const char*(const char*)>& get);

/// The process's own environment.
Environment read_environment();

}  // namespace krait
