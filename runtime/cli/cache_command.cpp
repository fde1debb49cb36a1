// krait cache: what the kernel cache on disk holds.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dsl/error.h"
#include "runtime/cli/commands.h"
#include "runtime/disk_cache.h"
#include "runtime/environment.h"

namespace krait {
namespace {

using nlohmann::json;

DiskCache open_cache() {
  const Environment environment = read_environment();
  if (!environment.cache_directory) {
    throw EnvironmentError(
        "there is no cache on disk: none of KRAIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
  }
  return DiskCache({environment.cache_directory, environment.cache_limit_bytes});
}

int print_json(const json& value) {
  std::cout << value.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  return kOk;
}

/// In UTC, to the second.
std::string time_text(std::filesystem::file_time_type time) {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::microseconds>(
          std::chrono::file_clock::to_sys(time)));
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return krait::text(std::put_time(&parts, "%Y-%m-%dT%H:%M:%SZ"));
}

std::string size_text(std::uint64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  if (bytes < 1024) return std::to_string(bytes) + " B";
  if (bytes < 1024 * 1024) {
    out << static_cast<double>(bytes) / 1024 << " KiB";
  } else {
    out << static_cast<double>(bytes) / (1024 * 1024) << " MiB";
  }
  return out.str();
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return text(count, ' ', count == 1 ? one : many);
}

json to_json(const DiskCache::Listing& entry) {
  return {{"key", entry.key},
          {"intact", entry.intact},
          {"name", entry.name},
          {"backend", entry.backend},
          {"arch", entry.arch},
          {"bytes", entry.bytes},
          {"last_use", time_text(entry.last_use)}};
}

int run_path(bool as_json) {
  const DiskCache cache = open_cache();
  if (as_json) return print_json({{"path", cache.directory()->string()}});
  std::cout << cache.directory()->string() << '\n';
  return kOk;
}

int run_ls(bool as_json) {
  const std::vector<DiskCache::Listing> list = open_cache().list();
  if (as_json) {
    json entries = json::array();
    for (const DiskCache::Listing& entry : list) entries.push_back(to_json(entry));
    return print_json({{"entries", std::move(entries)}});
  }
  std::uint64_t total = 0;
  for (const DiskCache::Listing& entry : list) {
    total += entry.bytes;
    std::cout << entry.key.substr(0, 16) << "  " << time_text(entry.last_use) << "  "
              << std::setw(10) << size_text(entry.bytes) << "  ";
    if (entry.intact) {
      std::cout << entry.backend << "  " << entry.arch << "  " << entry.name << '\n';
    } else {
      std::cout << "does not verify\n";
    }
  }
  std::cout << counted(list.size(), "entry", "entries") << ", " << size_text(total) << '\n';
  return kOk;
}

/// The entry whose key is or begins with `key`.
DiskCache::Listing find(const DiskCache& cache, const std::string& key) {
  std::vector<DiskCache::Listing> found;
  for (DiskCache::Listing& entry : cache.list()) {
    if (entry.key.starts_with(key)) found.push_back(std::move(entry));
  }
  if (key.empty() || found.empty()) {
    throw UsageError("KEY", '"' + key + '"', "a key that `krait cache ls` prints, or its start");
  }
  if (found.size() > 1) {
    throw UsageError("KEY", '"' + key + '"',
                     text("more of it: ", found.size(), " keys begin like that"));
  }
  return found[0];
}

int run_show(const std::string& key, bool as_json) {
  const DiskCache cache = open_cache();
  const DiskCache::Listing listing = find(cache, key);
  const std::optional<CacheEntry> entry = cache.peek(listing.key);
  if (!entry) {
    std::cerr << "krait: entry " << listing.key << " does not verify\n";
    return kFailed;
  }
  if (as_json) {
    json meta = json::object();
    for (const auto& [tag, value] : entry->meta) meta[tag] = value;
    json all = to_json(listing);
    all["meta"] = std::move(meta);
    all["source"] = entry->source;
    all["log"] = entry->log;
    all["binary_bytes"] = entry->binary.size();
    return print_json(all);
  }
  std::cout << "key: " << entry->key << '\n';
  for (const auto& [tag, value] : entry->meta) std::cout << tag << ": " << value << '\n';
  std::cout << "last use: " << time_text(listing.last_use) << '\n';
  std::cout << "binary: " << size_text(entry->binary.size()) << '\n';
  if (!entry->log.empty()) std::cout << "\nlog:\n" << entry->log << '\n';
  std::cout << "\nsource:\n" << entry->source;
  if (!entry->source.ends_with('\n')) std::cout << '\n';
  return kOk;
}

int run_verify(bool as_json) {
  const std::vector<DiskCache::Listing> list = open_cache().list();
  json keys = json::array();
  for (const DiskCache::Listing& entry : list) {
    if (entry.intact) continue;
    keys.push_back(entry.key);
    if (!as_json) std::cout << entry.key << " does not verify\n";
  }
  const int status = keys.empty() ? kOk : kFailed;
  if (as_json) {
    print_json({{"entries", list.size()}, {"broken", std::move(keys)}});
  } else {
    std::cout << counted(list.size(), "entry", "entries") << ", " << keys.size() << " broken\n";
  }
  return status;
}

int print_removed(const DiskCache::Removed& removed, bool as_json) {
  if (as_json) return print_json({{"removed_files", removed.files}, {"bytes", removed.bytes}});
  std::cout << "removed " << counted(static_cast<std::size_t>(removed.files), "file", "files")
            << ", " << size_text(removed.bytes) << '\n';
  return kOk;
}

}  // namespace

void add_cache(CLI::App& program, Command& command) {
  struct Flags {
    bool json = false;
    std::string key;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* const cache = program.add_subcommand("cache", "The compiled kernels kept on disk");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*run)(const Flags&)) {
    CLI::App* const sub = cache->add_subcommand(name, what);
    sub->add_flag("--json", flags->json, "One JSON object");
    sub->callback([flags, run, &command] { command.run = [flags, run] { return run(*flags); }; });
    return sub;
  };
  add("path", "The directory they are in", [](const Flags& f) { return run_path(f.json); });
  add("ls", "A line for each, the one used last first",
      [](const Flags& f) { return run_ls(f.json); });
  add("show", "One of them, with its source",
      [](const Flags& f) { return run_show(f.key, f.json); })
      ->add_option("KEY", flags->key, "A key that `krait cache ls` prints, or its start")
      ->required();
  add("verify", "Check every entry; status 1 when one is broken",
      [](const Flags& f) { return run_verify(f.json); });
  add("prune", "Delete broken entries, what dead processes left, and the oldest above the limit",
      [](const Flags& f) { return print_removed(open_cache().prune(), f.json); });
  add("clear", "Delete all entries",
      [](const Flags& f) { return print_removed(open_cache().clear(), f.json); });
}

}  // namespace krait
