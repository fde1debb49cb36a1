#include "runtime/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "dsl/error.h"

namespace krait {
namespace {

[[noreturn]] void fail(const std::string& doing, const std::string& path, int error) {
  throw EnvironmentError(text("cannot ", doing, " ", path, ": ", std::strerror(error)));
}

/// Closes its descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// Closes now; some file systems report a failed write only here.
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd);
  }

 private:
  int fd_;
};

/// Removes its file unless told that it was published.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    if (!published_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  void published() { published_ = true; }

 private:
  std::string path_;
  bool published_ = false;
};

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path) {
  // Not blocking: a pipe without a writer is refused below instead of waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail("open", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw EnvironmentError(path + " is not a regular file");
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, errno);
    if (got == 0) break;  // it shrank meanwhile
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

std::string read_text(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_file_atomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts) {
  std::string name = path + ".XXXXXX";
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) fail("create a file beside", path, errno);
  TemporaryFile temporary(name);
  for (const std::span<const std::byte> part : parts) write_all(file.get(), part, name);
  // mkostemp makes files that only their owner may read.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file.get(), 0666 & ~mask) != 0) fail("set the mode of", name, errno);
  if (::fsync(file.get()) != 0) fail("write", name, errno);
  if (file.close() != 0) fail("write", name, errno);
  if (::rename(name.c_str(), path.c_str()) != 0) fail("replace", path, errno);
  temporary.published();
}

void write_file_atomically(const std::string& path, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_file_atomically(path, std::span(&part, 1));
}

}  // namespace krait
