// The kernel cache seen from outside: processes that start, compile, run and end.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "runtime/disk_cache.h"
#include "tests/runtime/scratch_directory.h"

using namespace krait;
using test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  int status = -1;
  std::string out, warnings;
};

/// Runs compile_axpy with `variables` as its whole environment.
Outcome run(const fs::path& scratch, const std::string& variables,
            const std::string& arguments = "") {
  const fs::path out = scratch / "out", err = scratch / "err";
  const std::string command = "env -i " + variables + " " + KRAIT_COMPILE_AXPY + " " + arguments +
                              " >" + out.string() + " 2>" + err.string();
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), test::read_file(out), test::read_file(err)};
}

int lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

int files(const fs::path& directory) {
  return static_cast<int>(std::distance(fs::directory_iterator(directory), {}));
}

constexpr const char *cold = "compiled 3 from_cache 0 right 1\n",
                     *warm = "compiled 0 from_cache 3 right 1\n";

}  // namespace

TEST_CASE("a second process compiles nothing") {
  ScratchDirectory scratch;
  const std::string home = "HOME=" + (scratch.path() / "home").string();
  for (const char* expected : {cold, warm}) {
    const Outcome outcome = run(scratch.path(), home);
    CHECK(outcome.status == 0);
    CHECK(outcome.out == expected);
    CHECK(outcome.warnings == "");
  }
  CHECK(files(scratch.path() / "home/.cache/krait") == 3);
}

TEST_CASE("without HOME kernels run and one warning is given") {
  ScratchDirectory scratch;
  const Outcome outcome = run(scratch.path(), "");
  CHECK(outcome.out == cold);
  CHECK(lines(outcome.warnings) == 1);
  CHECK_THAT(outcome.warnings, Catch::Contains("krait: warning: ") && Catch::Contains("HOME"));
}

TEST_CASE("a full disk: kernels run, one warning, nothing is left") {
  ScratchDirectory scratch;
  const fs::path cache = scratch.path() / "cache";
  // Enough for the lines of the outcome, too little for an entry.
  const Outcome outcome =
      run(scratch.path(), "KRAIT_CACHE_DIR=" + cache.string(), "file-limit 1000");
  CHECK(outcome.out == cold);
  CHECK(lines(outcome.warnings) == 1);
  CHECK_THAT(outcome.warnings, Catch::Contains("cannot write"));
  CHECK(files(cache) == 0);
}

TEST_CASE("a read-only directory: entries are used, none is added, one warning") {
  ScratchDirectory scratch;
  // As root nothing is read-only; the process becomes somebody else.
  const std::string other = ::geteuid() == 0 ? "user 65534" : "";
  fs::permissions(scratch.path(), fs::perms::all);
  const fs::path cache = scratch.path() / "cache";
  fs::create_directory(cache);
  const std::string variables = "KRAIT_CACHE_DIR=" + cache.string();

  fs::permissions(cache, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::group_read |
                             fs::perms::group_exec | fs::perms::others_read |
                             fs::perms::others_exec);
  const Outcome empty = run(scratch.path(), variables, other);
  CHECK(empty.out == cold);
  CHECK(lines(empty.warnings) == 1);
  CHECK(files(cache) == 0);

  fs::permissions(cache, fs::perms::all);
  CHECK(run(scratch.path(), variables).out == cold);
  fs::permissions(cache, fs::perms::owner_write, fs::perm_options::remove);
  fs::permissions(cache, fs::perms::group_write | fs::perms::others_write,
                  fs::perm_options::remove);
  const Outcome filled = run(scratch.path(), variables, other);
  CHECK(filled.out == warm);
  CHECK(filled.warnings == "");
  fs::permissions(cache, fs::perms::all);
}

TEST_CASE("eight processes at once on an empty directory") {
  ScratchDirectory scratch;
  const fs::path cache = scratch.path() / "cache";
  std::string command;
  for (int i = 0; i < 8; ++i) {
    const std::string name = (scratch.path() / std::to_string(i)).string();
    command += "env -i KRAIT_CACHE_DIR=" + cache.string() + " " + KRAIT_COMPILE_AXPY + " >" + name +
               ".out 2>" + name + ".err & ";
  }
  CHECK(std::system((command + "wait").c_str()) == 0);
  for (int i = 0; i < 8; ++i) {
    const std::string name = (scratch.path() / std::to_string(i)).string();
    CHECK_THAT(test::read_file(name + ".out"), Catch::Contains("right 1"));
    CHECK(test::read_file(name + ".err") == "");
  }
  CHECK(files(cache) == 3);  // and no temporary file among them
  const DiskCache entries({cache});
  CHECK(entries.list().size() == 3);
  for (const DiskCache::Listing& listing : entries.list()) CHECK(listing.intact);
  CHECK(run(scratch.path(), "KRAIT_CACHE_DIR=" + cache.string()).out == warm);
}
