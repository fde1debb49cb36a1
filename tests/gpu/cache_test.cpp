// Kernels of a GPU out of the cache, without the compiler that made them.
#include <catch2/catch.hpp>
#include <fstream>

#include "runtime/disk_cache.h"
#include "tests/run_program.h"

namespace krait {
namespace {

/// Whether the dynamic linker, which logs to files of this folder, started a library so named.
bool opened(const TestFolder& logs, const std::string& library) {
  bool found = false;
  for (const auto& file : std::filesystem::directory_iterator(logs.path)) {
    std::ifstream stream(file.path());
    for (std::string line; std::getline(stream, line);)
      found |= line.find("calling init: ") != std::string::npos &&
               line.find(library) != std::string::npos;
  }
  return found;
}

struct Run {
  bool compiled_nothing = false, opened_nvrtc = false;
};

Run check_with(const TestFolder& cache, const std::vector<std::string>& settings = {}) {
  const TestFolder logs;
  std::vector<std::string> environment{"KRAIT_LIBCUDA=" KRAIT_EMULATOR_LIBRARY,
                                       "KRAIT_EMULATED_ARCH=8.0",
                                       "KRAIT_CACHE_DIR=" + cache.path.string(), "LD_DEBUG=files",
                                       "LD_DEBUG_OUTPUT=" + logs.file("linker")};
  environment.insert(environment.end(), settings.begin(), settings.end());
  const ProgramResult result = run_program(
      {"check", KRAIT_TEST_DATA "/m2_ssd_one.safetensors", "--device", "cuda:0", "--dtype", "f32"},
      environment);
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  REQUIRE(opened(logs, "libcuda_emulator"));
  return {result.out.find(" 0 kernels compiled, ") != std::string::npos, opened(logs, "libnvrtc.")};
}

/// What is remembered of NVRTC: where it was looked for, and the last one asked.
std::vector<CacheEntry> memories(DiskCache& cache) {
  std::vector<CacheEntry> found;
  for (const DiskCache::Listing& listing : cache.list())
    if (listing.backend == "probe") found.push_back(cache.peek(listing.key).value());
  REQUIRE(!found.empty());
  return found;
}

void change(DiskCache& cache, const std::string& tag, const std::string& value) {
  for (CacheEntry& entry : memories(cache)) {
    for (auto& [name, old] : entry.meta)
      if (name == tag) old = value;
    cache.evict(entry.key);
    REQUIRE(cache.store(entry));
  }
}

TEST_CASE("a second process takes kernels from the cache and opens no NVRTC") {
  const TestFolder folder, links;
  DiskCache cache({folder.path});
  const auto needs_no_compiler = [&](const std::vector<std::string>& settings = {}) {
    const Run run = check_with(folder, settings);
    return run.compiled_nothing && !run.opened_nvrtc;
  };
  const auto asks_it_for_its_build = [&](const std::vector<std::string>& settings = {}) {
    const Run run = check_with(folder, settings);
    return run.compiled_nothing && run.opened_nvrtc;
  };
  const Run cold = check_with(folder);
  CHECK(cold.opened_nvrtc);
  CHECK_FALSE(cold.compiled_nothing);
  CHECK(needs_no_compiler());

  // Where NVRTC is gone, what it compiled stays right.
  CHECK(needs_no_compiler({"KRAIT_LIBNVRTC=/no/such/library.so"}));

  // Another file of an equal build.
  const CacheEntry memory = memories(cache)[0];
  CHECK(memory.field("build").find("Compiler Build ID") != std::string::npos);
  const std::filesystem::path library(memory.field("path"));
  for (const auto& file : std::filesystem::directory_iterator(library.parent_path()))
    if (file.path().filename().string().rfind("libnvrtc", 0) == 0)
      std::filesystem::create_symlink(file.path(), links.path / file.path().filename());
  const std::string setting = "KRAIT_LIBNVRTC=" + links.file(library.filename().string());
  CHECK(asks_it_for_its_build({setting}));
  CHECK(needs_no_compiler({setting}));

  // A file that changed.
  change(cache, "stamp", "1 2.3");
  CHECK(asks_it_for_its_build());
  CHECK(needs_no_compiler());

  // A memory that is broken.
  for (const CacheEntry& entry : memories(cache))
    std::filesystem::resize_file(folder.path / (entry.key + ".krait"), 100);
  CHECK(asks_it_for_its_build());
  CHECK(needs_no_compiler());

  // Another build of the compiler is another key.
  change(cache, "build", "Compiler Build ID: another");
  CHECK_FALSE(check_with(folder).compiled_nothing);
}

}  // namespace
}  // namespace krait
