// The kernel cache on disk, shared by all processes of a user: one file per kernel, KEY.krait.
//
// Nothing here ever fails a compile. A file that is not intact is deleted and counts as a miss; a
// file or directory that cannot be read is only a miss; what cannot be written (no directory, read
// only, full) is said once through the warning sink. A file is published whole or not at all: it
// is written under a temporary name, synced, then linked to its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cache_file.h"
#include "runtime/warning.h"

namespace krait {

struct DiskCacheOptions {
  /// None: nothing is kept, with one warning at the first store.
  std::optional<std::filesystem::path> directory;
  /// Above this, the entries that were not used for the longest time are deleted.
  std::uint64_t limit_bytes = std::uint64_t{1} << 30;
  WarningSink warn = warn_on_stderr();
};

class DiskCache {
 public:
  explicit DiskCache(DiskCacheOptions options);

  /// The entry, when there is an intact one; marks it as used now.
  std::optional<CacheEntry> load(const std::string& key);
  /// True when the entry is on disk afterwards, by whomever. May delete old entries.
  bool store(const CacheEntry& entry);
  /// Deletes the entry if there is one: its content proved unusable.
  void evict(const std::string& key);

  // What follows serves the command line. It throws EnvironmentError where the directory exists
  // but cannot be read; a directory that does not exist is an empty cache.

  const std::optional<std::filesystem::path>& directory() const { return options_.directory; }

  struct Listing {
    std::string key;
    bool intact = false;
    std::string name, backend, arch;  ///< Empty unless intact.
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type last_use;
  };
  /// Every entry, the one used last first. Does not mark them as used.
  std::vector<Listing> list() const;
  /// The entry as load gives it, but neither marked nor deleted.
  std::optional<CacheEntry> peek(const std::string& key) const;

  struct Removed {
    int files = 0;
    std::uint64_t bytes = 0;
  };
  /// Deletes entries that are not intact, temporary files that their writer left an hour ago or
  /// more, then the entries not used for the longest time while the total is above the limit.
  Removed prune();
  /// Deletes every entry and temporary file, and no other file.
  Removed clear();

  /// Whether something could not be kept, which has been said then.
  bool has_failed() const { return warned_; }

 private:
  std::filesystem::path path_of(const std::string& key) const;
  bool publish(const std::filesystem::path& path, const std::string& bytes, std::string& fault);
  Removed sweep() const;
  void warn_once(const std::string& message);

  DiskCacheOptions options_;
  std::atomic<bool> warned_ = false;
  std::atomic<std::uint64_t> temporaries_ = 0;
  std::mutex sweep_mutex_;
  std::uint64_t unswept_bytes_ = 0;  // stored since the last sweep
  bool swept_ = false;
};

}  // namespace krait
