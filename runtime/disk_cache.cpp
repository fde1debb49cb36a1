#include "runtime/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <tuple>

#include "dsl/error.h"

namespace krait {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".krait", temporary_prefix = ".writing-";
constexpr std::size_t key_digits = 64;

bool is_entry(const std::string& file) {
  return file.size() == key_digits + suffix.size() && file.ends_with(suffix) &&
         file.find_first_not_of("0123456789abcdef") == key_digits;
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

bool read_all(int file, std::string& out) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got > 0) {
      out.append(buffer, static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      return false;
    }
  }
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (put == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool open_and_read(const fs::path& path, bool mark_used, std::string& bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || !read_all(file.get(), bytes)) return false;
  if (mark_used) (void)::futimens(file.get(), nullptr);  // a read-only disk keeps the old time
  return true;
}

/// Only for its owner, as the XDG rules ask; the directories above it as usual.
bool make_directory(const fs::path& directory) {
  std::error_code error;
  if (fs::is_directory(directory, error)) return true;
  fs::create_directories(directory.parent_path(), error);
  return ::mkdir(directory.c_str(), 0700) == 0 || fs::is_directory(directory, error);
}

struct Found {
  std::vector<fs::directory_entry> entries, temporaries;
};

Found scan(const std::optional<fs::path>& directory) {
  Found found;
  std::error_code error;
  if (!directory || !fs::exists(*directory, error)) return found;
  fs::directory_iterator it(*directory, error);
  while (!error && it != fs::directory_iterator()) {
    const std::string file = it->path().filename().string();
    if (is_entry(file)) found.entries.push_back(*it);
    if (file.starts_with(temporary_prefix)) found.temporaries.push_back(*it);
    it.increment(error);
  }
  if (error) throw EnvironmentError(text("cannot read ", *directory, ": ", error.message()));
  return found;
}

void remove_file(const fs::directory_entry& file, DiskCache::Removed& removed) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(file.path(), error);
  if (error) return;
  if (fs::remove(file.path(), error)) {
    ++removed.files;
    removed.bytes += bytes;
  }
}

std::string key_of(const fs::path& path) { return path.stem().string(); }

}  // namespace

DiskCache::DiskCache(DiskCacheOptions options) : options_(std::move(options)) {}

fs::path DiskCache::path_of(const std::string& key) const {
  return *options_.directory / (key + std::string(suffix));
}

void DiskCache::warn_once(const std::string& message) {
  if (!warned_.exchange(true) && options_.warn) options_.warn(message);
}

std::optional<CacheEntry> DiskCache::load(const std::string& key) {
  if (!options_.directory) return std::nullopt;
  std::string bytes;
  if (!open_and_read(path_of(key), true, bytes)) return std::nullopt;
  std::optional<CacheEntry> entry = decode(bytes);
  if (entry && entry->key == key) return entry;
  evict(key);
  return std::nullopt;
}

std::optional<CacheEntry> DiskCache::peek(const std::string& key) const {
  std::string bytes;
  if (!options_.directory || !open_and_read(path_of(key), false, bytes)) return std::nullopt;
  std::optional<CacheEntry> entry = decode(bytes);
  if (entry && entry->key != key) entry.reset();
  return entry;
}

bool DiskCache::store(const CacheEntry& entry) {
  if (!options_.directory) {
    warn_once(
        "compiled kernels are kept in memory only: none of KRAIT_CACHE_DIR, XDG_CACHE_HOME and "
        "HOME is set");
    return false;
  }
  const std::string bytes = encode(entry);
  std::string fault;
  if (!publish(path_of(entry.key), bytes, fault)) {
    warn_once(text("compiled kernels are kept in memory only: ", fault));
    return false;
  }
  const std::scoped_lock lock(sweep_mutex_);
  unswept_bytes_ += bytes.size();
  if (!swept_ || unswept_bytes_ > options_.limit_bytes / 16) {
    swept_ = true;
    unswept_bytes_ = 0;
    try {
      sweep();
    } catch (const EnvironmentError&) {
      // The directory went away or forbids listing; what was stored is stored.
    }
  }
  return true;
}

bool DiskCache::publish(const fs::path& path, const std::string& bytes, std::string& fault) {
  const auto failed = [&](std::string_view what, const fs::path& where) {
    fault = text("cannot ", what, " ", where, ": ", std::strerror(errno));
    return false;
  };
  if (!make_directory(*options_.directory)) return failed("create", *options_.directory);

  // Exclusive creation is what keeps two writers apart: a process id is not unique where a
  // directory is shared by containers.
  fs::path temporary;
  int opened = -1;
  do {
    temporary =
        *options_.directory / text(temporary_prefix, ::getpid(), "-", temporaries_.fetch_add(1));
    opened = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  } while (opened < 0 && errno == EEXIST);
  const Descriptor file(opened);
  if (file.get() < 0) return failed("create a file in", *options_.directory);

  bool done = write_all(file.get(), bytes) && ::fsync(file.get()) == 0;
  if (!done) {
    failed("write", temporary);
  } else {
    done = ::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST;
    if (!done) failed("link", path);
  }
  ::unlink(temporary.c_str());
  return done;
}

void DiskCache::evict(const std::string& key) {
  if (options_.directory) ::unlink(path_of(key).c_str());
}

std::vector<DiskCache::Listing> DiskCache::list() const {
  std::vector<Listing> result;
  for (const fs::directory_entry& file : scan(options_.directory).entries) {
    Listing listing;
    std::error_code error;
    listing.key = key_of(file.path());
    listing.bytes = fs::file_size(file.path(), error);
    if (!error) listing.last_use = fs::last_write_time(file.path(), error);
    if (error) continue;  // deleted by another process meanwhile
    if (const std::optional<CacheEntry> entry = peek(listing.key)) {
      listing.intact = true;
      listing.name = entry->field("name");
      listing.backend = entry->field("backend");
      listing.arch = entry->field("arch");
    }
    result.push_back(std::move(listing));
  }
  std::sort(result.begin(), result.end(), [](const Listing& a, const Listing& b) {
    return std::tie(b.last_use, a.key) < std::tie(a.last_use, b.key);
  });
  return result;
}

DiskCache::Removed DiskCache::sweep() const {
  Removed removed;
  const Found found = scan(options_.directory);
  const auto stale = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const fs::directory_entry& file : found.temporaries) {
    std::error_code error;
    if (fs::last_write_time(file.path(), error) < stale && !error) remove_file(file, removed);
  }

  struct Aged {
    fs::file_time_type last_use;
    std::uint64_t bytes;
    const fs::directory_entry* file;
  };
  std::vector<Aged> entries;
  std::uint64_t total = 0;
  for (const fs::directory_entry& file : found.entries) {
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(file.path(), error);
    if (error) continue;
    const auto last_use = fs::last_write_time(file.path(), error);
    if (error) continue;
    entries.push_back({last_use, bytes, &file});
    total += bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Aged& a, const Aged& b) {
    return std::make_pair(a.last_use, a.file->path()) < std::make_pair(b.last_use, b.file->path());
  });
  for (const Aged& entry : entries) {
    if (total <= options_.limit_bytes) break;
    remove_file(*entry.file, removed);
    total -= entry.bytes;
  }
  return removed;
}

DiskCache::Removed DiskCache::prune() {
  Removed removed;
  for (const fs::directory_entry& file : scan(options_.directory).entries) {
    std::string bytes;
    if (!open_and_read(file.path(), false, bytes)) continue;  // unreadable is not broken
    const std::optional<CacheEntry> entry = decode(bytes);
    if (!entry || entry->key != key_of(file.path())) remove_file(file, removed);
  }
  const Removed swept = sweep();
  removed.files += swept.files;
  removed.bytes += swept.bytes;
  return removed;
}

DiskCache::Removed DiskCache::clear() {
  Removed removed;
  const Found found = scan(options_.directory);
  for (const fs::directory_entry& file : found.entries) remove_file(file, removed);
  for (const fs::directory_entry& file : found.temporaries) remove_file(file, removed);
  return removed;
}

}  // namespace krait
