// Source to executable, once: in the process, and on disk across processes.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_source.h"
#include "runtime/disk_cache.h"
#include "runtime/environment.h"
#include "runtime/host/orc.h"

namespace krait {

class Pool;

/// A compiled kernel that is loaded and can be called. Keeps its code mapped as long as it lives,
/// longer than the Compiler if need be.
class Executable {
 public:
  Executable(std::string name, std::string key, HostJit::Loaded loaded)
      : name_(std::move(name)), key_(std::move(key)), loaded_(std::move(loaded)) {}

  const std::string& name() const { return name_; }
  /// What names it in the kernel cache: 64 hexadecimal digits.
  const std::string& key() const { return key_; }
  HostKernel host_kernel() const { return loaded_.function; }

 private:
  std::string name_, key_;
  HostJit::Loaded loaded_;
};

struct CompilerOptions {
  /// False: kernels are kept in memory only, without a warning.
  bool use_disk = true;
  DiskCacheOptions disk;
  HostTarget host;

  /// This machine and the process's environment, or those given. Throws UsageError for a variable
  /// with an impossible value.
  static CompilerOptions from(const Environment& environment = read_environment());
};

/// Safe to use from several threads at once. Sources of backend cuda are not for this compiler.
class Compiler {
 public:
  explicit Compiler(CompilerOptions options);

  /// Throws InternalError, with the numbered source, when the text does not compile.
  std::shared_ptr<Executable> compile(const KernelSource& source);
  /// In the order of `sources`, several at a time. When some fail, the error is that of the first
  /// of them in this order; the others are compiled.
  std::vector<std::shared_ptr<Executable>> compile_all(std::span<const KernelSource> sources,
                                                       Pool& pool);

  /// How the requests so far were served; one that threw counts nowhere.
  struct Counters {
    std::int64_t compiled = 0;
    std::int64_t from_cache = 0;  ///< Loaded from disk.
    std::int64_t shared = 0;      ///< Already in this process, or being compiled by another thread.
  };
  Counters counters() const;

  const HostJit& host() const { return host_; }
  DiskCache* disk() { return disk_ ? &*disk_ : nullptr; }

 private:
  using Pointer = std::shared_ptr<Executable>;

  Pointer load_or_compile(const KernelSource& source, const std::string& key);
  Pointer make(const KernelSource& source, const std::string& key, const std::string& object) const;

  HostJit host_;
  Toolchain toolchain_;
  std::optional<DiskCache> disk_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_future<Pointer>> requests_;
  Counters counters_;
};

}  // namespace krait
