#include "runtime/compile.h"

#include <exception>

#include "dsl/error.h"
#include "runtime/cache_key.h"
#include "runtime/host/pool.h"

namespace krait {

CompilerOptions CompilerOptions::from(const Environment& environment) {
  CompilerOptions options;
  options.disk.directory = environment.cache_directory;
  options.disk.limit_bytes = environment.cache_limit_bytes;
  return options;
}

Compiler::Compiler(CompilerOptions options, std::shared_ptr<const CompilerBackend> backend)
    : backend_(std::move(backend)) {
  if (options.use_disk) disk_.emplace(std::move(options.disk));
}

const Toolchain& Compiler::toolchain() {
  std::call_once(toolchain_known_, [&] { toolchain_ = backend_->toolchain(disk()); });
  return toolchain_;
}

Compiler::Counters Compiler::counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

std::shared_ptr<Executable> Compiler::compile(const KernelSource& source) {
  const std::string key = cache_key(source, toolchain());
  std::promise<Pointer> promise;
  std::shared_future<Pointer> earlier;
  {
    const std::scoped_lock lock(mutex_);
    const auto [at, first] = requests_.try_emplace(key);
    if (first) {
      at->second = promise.get_future().share();
    } else {
      earlier = at->second;
    }
  }
  if (earlier.valid()) {
    Pointer result = earlier.get();
    const std::scoped_lock lock(mutex_);
    ++counters_.shared;
    return result;
  }
  try {
    Pointer result = load_or_compile(source, key);
    promise.set_value(result);
    return result;
  } catch (...) {
    {
      const std::scoped_lock lock(mutex_);
      requests_.erase(key);  // those who wait get the error, a later request tries again
    }
    promise.set_exception(std::current_exception());
    throw;
  }
}

Compiler::Pointer Compiler::load_or_compile(const KernelSource& source, const std::string& key) {
  const auto count = [&](std::int64_t Counters::*counter) {
    const std::scoped_lock lock(mutex_);
    ++(counters_.*counter);
  };
  if (disk_) {
    if (const std::optional<CacheEntry> entry = disk_->load(key)) {
      try {
        Pointer result = backend_->load(source, key, {entry->binary, entry->text, entry->log});
        count(&Counters::from_cache);
        return result;
      } catch (const InternalError&) {
        disk_->evict(key);  // intact, yet no object that links: compile it again
      }
    }
  }
  const CompiledCode code = backend_->compile(source);
  Pointer result = backend_->load(source, key, code);
  count(&Counters::compiled);
  if (disk_) store(source, key, code);
  return result;
}

void Compiler::store(const KernelSource& source, const std::string& key, const CompiledCode& code) {
  const Toolchain made_by = backend_->toolchain(disk());
  CacheEntry entry;
  entry.key = made_by == toolchain_ ? key : cache_key(source, made_by);
  entry.source = source.text;
  entry.binary = code.binary;
  entry.text = code.text;
  entry.log = code.log;
  entry.meta = {{"name", source.name},
                {"backend", std::string(name(source.backend))},
                {"entry", source.entry},
                {"arch", made_by.arch}};
  entry.meta.insert(entry.meta.end(), made_by.identity.begin(), made_by.identity.end());
  disk_->store(entry);
}

std::vector<std::shared_ptr<Executable>> Compiler::compile_all(
    std::span<const KernelSource> sources, Pool& pool) {
  std::vector<Pointer> results(sources.size());
  std::vector<std::exception_ptr> errors(sources.size());
  pool.parallel_for(static_cast<std::int64_t>(sources.size()), 0,
                    [&](std::int64_t begin, std::int64_t end, void*) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        try {
                          results[i] = compile(sources[i]);
                        } catch (...) {
                          errors[i] = std::current_exception();
                        }
                      }
                    });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return results;
}

}  // namespace krait
