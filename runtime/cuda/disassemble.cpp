#include "runtime/cuda/disassemble.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "dsl/error.h"

namespace krait {
namespace {

bool is_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace

std::string disassembler_path() {
  if (const char* given = std::getenv("KRAIT_NVDISASM"); given != nullptr && *given != '\0') {
    if (is_program(given)) return given;
    throw EnvironmentError(text("KRAIT_NVDISASM is ", given, ": ", std::strerror(errno)));
  }
  std::vector<std::string> folders;
  const char* const path = std::getenv("PATH");
  std::istringstream parts(path != nullptr ? path : "");
  for (std::string part; std::getline(parts, part, ':');)
    if (!part.empty()) folders.push_back(part);
  folders.push_back("/usr/local/cuda/bin");
  folders.push_back(KRAIT_BUILD_NVDISASM);
  for (const std::string& folder : folders)
    for (const char* name : {"/nvdisasm", "/cuobjdump"})
      if (is_program(folder + name)) return folder + name;
  throw EnvironmentError(
      "no disassembler of device code is at hand: `./dev deps` fetches nvdisasm, so does `pip "
      "install nvidia-cuda-nvdisasm`; or name nvdisasm or cuobjdump in KRAIT_NVDISASM");
}

namespace {

/// A file in memory with the image, under a path that programs which are started here can open.
class ImageFile {
 public:
  explicit ImageFile(const std::string& image) : file_(::memfd_create("image", 0)) {
    if (file_ < 0) throw EnvironmentError(text("no file in memory: ", std::strerror(errno)));
    for (std::size_t at = 0; at < image.size();) {
      const ssize_t put = ::write(file_, image.data() + at, image.size() - at);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) {
        const int reason = errno;
        ::close(file_);
        throw EnvironmentError(text("no file in memory: ", std::strerror(reason)));
      }
      at += static_cast<std::size_t>(put);
    }
  }
  ~ImageFile() { ::close(file_); }
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// What the program writes to stdout and stderr together; `status` as wait gives it.
std::string output_of(const std::vector<std::string>& words, int& status) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw EnvironmentError(text("no pipe: ", std::strerror(errno)));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string all;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t got = ::read(ends[0], part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    all.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (child < 0) throw EnvironmentError(text("no process for ", words[0]));
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return all;
}

}  // namespace

std::string disassemble(const std::string& image) {
  const std::string program = disassembler_path();
  const bool cuobjdump = program.ends_with("cuobjdump");
  const ImageFile file(image);
  int status = 0;
  std::string text =
      output_of({program, cuobjdump ? "--dump-sass" : "--print-code", file.path()}, status);
  if (status != 0) throw EnvironmentError(krait::text(program, " failed: ", text));
  return text;
}

}  // namespace krait
