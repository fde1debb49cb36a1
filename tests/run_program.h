// Runs the program krait as a user does.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace krait {

/// A folder that goes with the test.
struct TestFolder {
  std::filesystem::path path;
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "krait_test.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string file(const std::string& name) const { return (path / name).string(); }
};

struct ProgramResult {
  int status = -1;  // what it exited with; 256 + the signal that ended it
  std::string out, err;
};

inline std::string read_stream(std::FILE* stream) {
  std::string all;
  std::array<char, 4096> part;
  std::rewind(stream);
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), stream)) {
    all.append(part.data(), got);
  }
  return all;
}

/// `environment` has "NAME=value" entries that are set on top of this process's own.
inline ProgramResult run_program(const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& environment = {},
                                 const std::string& program = KRAIT_PROGRAM) {
  std::FILE* const out = std::tmpfile();
  std::FILE* const err = std::tmpfile();
  if (out == nullptr || err == nullptr) throw std::runtime_error("no temporary file");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) {
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(::fileno(out), 1);
    ::dup2(::fileno(err), 2);
    for (const std::string& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ProgramResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
  result.out = read_stream(out);
  result.err = read_stream(err);
  std::fclose(out);
  std::fclose(err);
  return result;
}

}  // namespace krait
