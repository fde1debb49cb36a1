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
  options.dump = parse_dump(environment.dump, environment.dump_directory);
  options.override_directory = environment.override_directory;
  return options;
}

Compiler::Compiler(CompilerOptions options, std::shared_ptr<const CompilerBackend> backend)
    : backend_(std::move(backend)),
      dumps_(std::move(options.dump)),
      overrides_(std::move(options.override_directory), options.disk.warn) {
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
  const std::optional<Overrides::Edited> edited = overrides_.find(source);
  KernelSource run = source;
  if (edited) run.text = edited->text;
  dumps_.write(run.backend == KernelSource::Backend::cuda ? "cuda" : "llvm", run.file, run.text);
  const std::string key = cache_key(run, toolchain());
  const Made made =
      edited ? once(key + " edited", [&] { return compile_edited(run, key, edited->path); })
             : once(key, [&] { return load_or_compile(run, key); });
  dump(run, made);
  return made.executable;
}

/// What `make` gives, which is called by the first who asks; the others wait for it.
Compiler::Made Compiler::once(const std::string& key, const std::function<Made()>& make) {
  std::promise<Made> promise;
  std::shared_future<Made> earlier;
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
    Made result = earlier.get();
    const std::scoped_lock lock(mutex_);
    ++counters_.shared;
    return result;
  }
  try {
    Made result = make();
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

Compiler::Made Compiler::load_or_compile(const KernelSource& source, const std::string& key) {
  const auto count = [&](std::int64_t Counters::*counter) {
    const std::scoped_lock lock(mutex_);
    ++(counters_.*counter);
  };
  if (disk_) {
    if (std::optional<CacheEntry> entry = disk_->load(key)) {
      try {
        Made result = load(
            source, key, {std::move(entry->binary), std::move(entry->text), std::move(entry->log)});
        count(&Counters::from_cache);
        return result;
      } catch (const InternalError&) {
        disk_->evict(key);  // intact, yet no object that links: compile it again
      }
    }
  }
  if (source.verify) source.verify();
  const CompiledCode code = backend_->compile(source);
  Made result = load(source, key, code);
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

Compiler::Made Compiler::compile_edited(const KernelSource& source, const std::string& key,
                                        const std::string& path) {
  try {
    Made result = load(source, key, backend_->compile(source));
    const std::scoped_lock lock(mutex_);
    ++counters_.compiled;
    return result;
  } catch (const InternalError& error) {  // the caller's text this time, not krait's
    throw UsageError(text("KRAIT_OVERRIDE_DIR, file ", path, ": ", error.said()));
  }
}

Compiler::Made Compiler::load(const KernelSource& source, const std::string& key,
                              const CompiledCode& code) {
  Made made;
  made.executable = backend_->load(source, key, code);
  if (dumps_.any()) made.code = std::make_shared<const CompiledCode>(code);
  return made;
}

void Compiler::dump(const KernelSource& source, const Made& made) const {
  if (!made.code) return;
  if (source.backend == KernelSource::Backend::cuda) {
    dumps_.write("ptx", source.file, made.code->text);
    dumps_.write("log", source.file, made.code->log);
  } else if (dumps_.wants("asm", source.file)) {
    dumps_.write("asm", source.file, backend_->assembly(source));
  }
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
