// Source to executable, once: in the process, and on disk across processes.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_source.h"
#include "runtime/cache_key.h"
#include "runtime/disk_cache.h"
#include "runtime/dump.h"
#include "runtime/environment.h"
#include "runtime/override.h"

namespace krait {

class Pool;

/// A compiled kernel that is loaded and can be launched. Keeps its code alive as long as it lives,
/// longer than the Compiler if need be.
class Executable {
 public:
  Executable(std::string name, std::string key, std::string log)
      : name_(std::move(name)), key_(std::move(key)), log_(std::move(log)) {}
  virtual ~Executable() = default;

  const std::string& name() const { return name_; }
  /// What names it in the kernel cache: 64 hexadecimal digits.
  const std::string& key() const { return key_; }
  /// What the compiler said.
  const std::string& log() const { return log_; }

 private:
  std::string name_, key_, log_;
};

/// What a compiler makes of a source.
struct CompiledCode {
  std::string binary;  ///< What is loaded: a relocatable object (host), a device image (CUDA).
  std::string text;    ///< What else can be loaded, as text: PTX (CUDA), or "".
  std::string log;
};

/// Whom a Compiler asks. Safe to use from several threads at once.
class CompilerBackend {
 public:
  virtual ~CompilerBackend() = default;
  /// `memory`: where what was found out about the compiler is kept for other processes, null where
  /// nothing is kept on disk. May change with the first compile: what was compiled is kept as made
  /// by the toolchain that is told afterwards.
  virtual Toolchain toolchain(DiskCache* memory) const = 0;
  virtual CompiledCode compile(const KernelSource& source) const = 0;
  /// What the code is, as text for people; "" where this backend cannot tell.
  virtual std::string assembly(const KernelSource&) const { return ""; }
  /// Throws InternalError for code that is not intact: it is compiled again.
  virtual std::shared_ptr<Executable> load(const KernelSource& source, const std::string& key,
                                           const CompiledCode& code) const = 0;
};

struct CompilerOptions {
  /// False: kernels are kept in memory only, without a warning.
  bool use_disk = true;
  DiskCacheOptions disk;
  DumpOptions dump;
  std::optional<std::filesystem::path> override_directory;

  /// As the process's environment says, or that which is given. Throws UsageError for a variable
  /// with an impossible value.
  static CompilerOptions from(const Environment& environment = read_environment());
};

/// Safe to use from several threads at once. Sources are those of its backend.
class Compiler {
 public:
  Compiler(CompilerOptions options, std::shared_ptr<const CompilerBackend> backend);

  /// Throws InternalError, with the numbered source, when the text does not compile; UsageError,
  /// with the file too, where that text was edited (see override.h).
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

  /// What the environment asked to see of the kernels' way here.
  const Dumps& dumps() const { return dumps_; }
  DiskCache* disk() { return disk_ ? &*disk_ : nullptr; }

 private:
  using Pointer = std::shared_ptr<Executable>;

  /// As it is when the first kernel is asked for: a device that runs none needs no compiler.
  const Toolchain& toolchain();
  void store(const KernelSource& source, const std::string& key, const CompiledCode& code);

  struct Made {
    Pointer executable;
    std::shared_ptr<const CompiledCode> code;  // where something of it is dumped
  };

  Made once(const std::string& key, const std::function<Made()>& make);
  Made load_or_compile(const KernelSource& source, const std::string& key);
  Made compile_edited(const KernelSource& source, const std::string& key, const std::string& path);
  Made load(const KernelSource& source, const std::string& key, const CompiledCode& code);
  void dump(const KernelSource& source, const Made& made) const;

  std::shared_ptr<const CompilerBackend> backend_;
  std::once_flag toolchain_known_;
  Toolchain toolchain_;
  std::optional<DiskCache> disk_;
  Dumps dumps_;
  Overrides overrides_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_future<Made>> requests_;
  Counters counters_;
};

}  // namespace krait
