// krait cache, as a user runs it.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/disk_cache.h"
#include "tests/run_program.h"

namespace krait {
namespace {

struct Fixture {
  TestFolder folder;
  std::string directory = folder.file("cache");
  DiskCache cache{{directory}};

  void fill() {
    for (const char* start : {"ab", "ac"}) {
      CacheEntry entry;
      entry.key = start + std::string(62, '0');
      entry.meta = {{"name", std::string("kernel_") + start}, {"backend", "llvm"}, {"arch", "cpu"}};
      entry.source = "the source of " + std::string(start);
      entry.binary = "object";
      entry.log = "the log";
      REQUIRE(cache.store(entry));
    }
  }
  std::string file(const std::string& start) const {
    return directory + "/" + start + std::string(62, '0') + ".krait";
  }
  void damage(const std::string& start) {
    std::filesystem::resize_file(file(start), std::filesystem::file_size(file(start)) - 1);
  }
  ProgramResult run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "cache");
    return run_program(arguments, {"KRAIT_CACHE_DIR=" + directory});
  }
  nlohmann::json report(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    return nlohmann::json::parse(run(std::move(arguments)).out);
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("krait cache path and ls") {
  Fixture f;
  CHECK(f.run({"path"}).out == f.directory + "\n");
  CHECK(f.report({"path"})["path"] == f.directory);
  CHECK(f.run({"ls"}).out == "0 entries, 0 B\n");
  CHECK_FALSE(std::filesystem::exists(f.directory));  // looking makes nothing
  f.fill();
  f.damage("ac");
  const ProgramResult list = f.run({"ls"});
  CHECK(list.status == 0);
  CHECK(has(list.out, "ab00000000000000  20"));
  CHECK(has(list.out, "llvm  cpu  kernel_ab\n"));
  CHECK(has(list.out, "does not verify\n"));
  CHECK(has(list.out, "2 entries, "));
  const nlohmann::json entries = f.report({"ls"})["entries"];
  REQUIRE(entries.size() == 2);
  for (const nlohmann::json& entry : entries) {
    CHECK(entry["intact"] == (entry["name"] == "kernel_ab"));
  }
}

TEST_CASE("krait cache show") {
  Fixture f;
  f.fill();
  const ProgramResult shown = f.run({"show", "ab"});
  CHECK(shown.status == 0);
  CHECK(has(shown.out, "key: ab0"));
  CHECK(has(shown.out, "name: kernel_ab\n"));
  CHECK(has(shown.out, "\nlog:\nthe log\n"));
  CHECK(has(shown.out, "\nsource:\nthe source of ab\n"));
  const nlohmann::json report = f.report({"show", "ac" + std::string(62, '0')});
  CHECK(report["meta"]["arch"] == "cpu");
  CHECK(report["source"] == "the source of ac");
  CHECK(report["binary_bytes"] == 6);

  for (const char* key : {"a", "b", ""}) {
    const ProgramResult refused = f.run({"show", key});
    CHECK(refused.status == 2);
    CHECK(has(refused.err, std::string("KEY is \"") + key + "\"; allowed: "));
  }
  CHECK(f.run({"show"}).status == 2);
  f.damage("ab");
  const ProgramResult broken = f.run({"show", "ab"});
  CHECK(broken.status == 1);
  CHECK(broken.out.empty());
  CHECK(has(broken.err, "does not verify"));
  f.cache.evict("ac" + std::string(62, '0'));
  CHECK(f.run({"show", ""}).status == 2);  // though only one begins so
}

TEST_CASE("krait cache verify, prune and clear") {
  Fixture f;
  f.fill();
  CHECK(f.run({"verify"}).status == 0);
  f.damage("ac");
  const ProgramResult verified = f.run({"verify"});
  CHECK(verified.status == 1);
  CHECK(has(verified.out, "ac" + std::string(62, '0') + " does not verify\n"));
  CHECK(has(verified.out, "2 entries, 1 broken\n"));
  CHECK(f.report({"verify"})["broken"].size() == 1);
  CHECK(std::filesystem::exists(f.file("ac")));

  CHECK(has(f.run({"prune"}).out, "removed 1 file, "));
  CHECK_FALSE(std::filesystem::exists(f.file("ac")));
  CHECK(f.run({"verify"}).out == "1 entry, 0 broken\n");
  CHECK(f.report({"clear"})["removed_files"] == 1);
  CHECK_FALSE(std::filesystem::exists(f.file("ab")));
}

TEST_CASE("krait cache prune keeps to the limit") {
  Fixture f;
  f.fill();
  std::ofstream(f.file("ad")) << "";
  CacheEntry large;
  large.key = "ae" + std::string(62, '0');
  large.binary.resize(1 << 20);
  REQUIRE(f.cache.store(large));
  const ProgramResult pruned =
      run_program({"cache", "prune"}, {"KRAIT_CACHE_DIR=" + f.directory, "KRAIT_CACHE_SIZE=1"});
  CHECK(pruned.status == 0);
  CHECK(has(pruned.out, "removed 4 files"));  // one broken, two older, and the one too large
}

TEST_CASE("krait cache used wrongly or where there is no cache") {
  CHECK(run_program({"cache"}).status == 2);
  CHECK(run_program({"cache", "frob"}).status == 2);
  const std::vector<std::string> nowhere = {"KRAIT_CACHE_DIR=", "XDG_CACHE_HOME=", "HOME="};
  for (const char* sub : {"path", "ls", "verify", "prune", "clear"}) {
    const ProgramResult result = run_program({"cache", sub}, nowhere);
    CHECK(result.status == 3);
    CHECK(has(result.err, "KRAIT_CACHE_DIR"));
  }
  const ProgramResult bad = run_program({"cache", "ls"}, {"KRAIT_CACHE_SIZE=much"});
  CHECK(bad.status == 2);
  CHECK(has(bad.err, "KRAIT_CACHE_SIZE is much; allowed: "));
  TestFolder folder;
  std::ofstream(folder.file("file")) << "";
  CHECK(run_program({"cache", "ls"}, {"KRAIT_CACHE_DIR=" + folder.file("file")}).status == 3);
}

}  // namespace
}  // namespace krait
