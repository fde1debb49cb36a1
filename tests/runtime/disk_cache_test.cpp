#include "runtime/disk_cache.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <map>

#include "dsl/error.h"
#include "runtime/cache_key.h"
#include "runtime/environment.h"
#include "runtime/sha256.h"
#include "tests/runtime/scratch_directory.h"

using namespace krait;
using test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

CacheEntry entry_of(char digit, std::size_t binary_size = 40) {
  CacheEntry entry;
  entry.key = std::string(64, digit);
  entry.meta = {{"name", "kernel"}, {"backend", "llvm"}, {"arch", "some-cpu"}};
  entry.source = "source text\n";
  entry.binary = std::string(binary_size, '\0') + digit;
  entry.log = "said nothing";
  return entry;
}

bool same(const CacheEntry& a, const CacheEntry& b) {
  return a.key == b.key && a.meta == b.meta && a.source == b.source && a.binary == b.binary &&
         a.log == b.log;
}

struct Fixture {
  ScratchDirectory scratch;
  fs::path directory = scratch.path() / "made" / "cache";
  std::vector<std::string> warnings;
  DiskCache cache = make(std::uint64_t{1} << 30);

  DiskCache make(std::uint64_t limit) { return make(directory, limit); }
  DiskCache make(std::optional<fs::path> where, std::uint64_t limit = std::uint64_t{1} << 30) {
    return DiskCache({std::move(where), limit,
                      [this](const std::string& message) { warnings.push_back(message); }});
  }
  fs::path file(char digit) const { return directory / (std::string(64, digit) + ".krait"); }
  int files() const {
    return static_cast<int>(std::distance(fs::directory_iterator(directory), {}));
  }
  void age(const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
};

}  // namespace

TEST_CASE("SHA-256 gives the published digests") {
  for (const auto by : {Sha256::By::fastest, Sha256::By::plain}) {
    CHECK(hex(sha256("", by)) ==
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(hex(sha256("abc", by)) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", by)) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    Sha256 hash(by);  // a million letters, in pieces that straddle the blocks
    for (int i = 0; i < 1000; ++i) hash.update(std::string(1000, 'a'));
    CHECK(hex(hash.finish()) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST_CASE("a cache key depends on every field, and on where one ends") {
  const KernelSource source{"name", "entry", "text", KernelSource::Backend::llvm, {"-a", "-b"}};
  const Toolchain chain{"cpu", {{"llvm", "19"}, {"triple", "t"}}};
  const std::string key = cache_key(source, chain);
  CHECK(key.size() == 64);
  CHECK(key == cache_key(source, chain));

  const auto differs = [&](auto change) {
    KernelSource s = source;
    Toolchain c = chain;
    change(s, c);
    return cache_key(s, c) != key;
  };
  CHECK(differs([](auto& s, auto&) { s.text = "Text"; }));
  CHECK(differs([](auto& s, auto&) { s.entry = "Entry"; }));
  CHECK(differs([](auto& s, auto&) { s.backend = KernelSource::Backend::cuda; }));
  CHECK(differs([](auto& s, auto&) { s.options = {"-a", "-c"}; }));
  CHECK(differs([](auto& s, auto&) { s.options = {"-a-b"}; }));
  CHECK(differs([](auto& s, auto&) { s.options = {"-b", "-a"}; }));
  // A value that imitates the end of one field and the start of the next.
  CHECK(differs([](auto& s, auto&) { s.options = {"-aoption-b"}; }));
  const std::string gap(8, '\0');
  CHECK(differs([&](auto& s, auto&) { s.options = {"-a" + gap + "option" + gap + "-b"}; }));
  CHECK(differs([](auto& s, auto&) { s.entry = "entr", s.text = "ytext"; }));
  CHECK(differs([](auto&, auto& c) { c.arch = "cpu2"; }));
  CHECK(differs([](auto&, auto& c) { c.identity[0].second = "20"; }));
  CHECK(differs([](auto&, auto& c) { c.identity[1].first = "cpu"; }));
  CHECK(differs([](auto&, auto& c) { c.identity.pop_back(); }));
  CHECK_FALSE(differs([](auto& s, auto&) { s.name = "other"; }));
}

TEST_CASE("a cache file decodes whole or not at all") {
  const CacheEntry entry = entry_of('a');
  const std::string bytes = encode(entry);
  const std::optional<CacheEntry> decoded = decode(bytes);
  REQUIRE(decoded);
  CHECK(same(*decoded, entry));
  CHECK(decoded->field("arch") == "some-cpu");
  CHECK(decoded->field("none") == "");

  int accepted = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    accepted += decode(bytes.substr(0, size)).has_value();
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    accepted += decode(flipped).has_value();
  }
  accepted += decode(bytes + '\0').has_value();
  CHECK(accepted == 0);
}

TEST_CASE("lengths that lie under a right checksum do not decode") {
  const std::string bytes = encode(entry_of('a'));
  const std::size_t start = cache_format.size() + 32;
  for (const std::size_t at : {start, start + 8 + 64}) {  // the key's length, the number of fields
    for (const unsigned char high : {0x7f, 0xff}) {
      std::string body = bytes.substr(start);
      body[at - start + 7] = static_cast<char>(high);
      const Sha256::Digest digest = sha256(body);
      CHECK_FALSE(
          decode(std::string(cache_format) + std::string(digest.begin(), digest.end()) + body));
    }
  }
}

TEST_CASE("an entry that was stored is loaded, by another cache object too") {
  Fixture f;
  CHECK_FALSE(f.cache.load(std::string(64, 'a')));
  CHECK(f.cache.store(entry_of('a')));
  CHECK(f.cache.store(entry_of('a')));  // already there
  CHECK(f.files() == 1);
  DiskCache other = f.make(1 << 30);
  const std::optional<CacheEntry> entry = other.load(std::string(64, 'a'));
  REQUIRE(entry);
  CHECK(same(*entry, entry_of('a')));
  f.cache.evict(std::string(64, 'a'));
  CHECK_FALSE(other.load(std::string(64, 'a')));
  CHECK(f.warnings.empty());
}

TEST_CASE("a temporary file of another writer is not touched") {
  Fixture f;
  fs::create_directories(f.directory);
  // As of a process of the same number in another container.
  const fs::path other = f.directory / (".writing-" + std::to_string(::getpid()) + "-0");
  test::write_file(other, "the other's");
  CHECK(f.cache.store(entry_of('a')));
  CHECK(f.cache.load(std::string(64, 'a')));
  CHECK(test::read_file(other) == "the other's");
  CHECK(f.files() == 2);
}

TEST_CASE("the cache directory is for its owner only") {
  Fixture f;
  f.cache.store(entry_of('a'));
  CHECK((fs::status(f.directory).permissions() & fs::perms::all) == fs::perms::owner_all);
}

TEST_CASE("content faults delete the entry, without a warning") {
  Fixture f;
  f.cache.store(entry_of('a'));
  const std::string intact = test::read_file(f.file('a'));
  const auto broken = [&](const std::string& bytes) {
    test::write_file(f.file('a'), bytes);
    CHECK_FALSE(f.cache.peek(std::string(64, 'a')));
    CHECK(fs::exists(f.file('a')));
    CHECK_FALSE(f.cache.load(std::string(64, 'a')));
    CHECK_FALSE(fs::exists(f.file('a')));
  };
  broken("");
  broken(intact.substr(0, intact.size() - 1));
  broken(intact + "x");
  std::string flipped = intact;
  flipped[flipped.size() / 2] ^= 4;
  broken(flipped);
  broken(encode(entry_of('b')));  // an intact entry under another's name
  CHECK(f.cache.store(entry_of('a')));
  CHECK(f.cache.load(std::string(64, 'a')));
  CHECK(f.warnings.empty());
}

TEST_CASE("an entry that cannot be read is a miss and stays") {
  Fixture f;
  f.cache.store(entry_of('a'));
  fs::create_directory(f.file('b'));  // opens, but reading it fails
  CHECK_FALSE(f.cache.load(std::string(64, 'b')));
  CHECK(fs::exists(f.file('b')));
  CHECK(f.cache.prune().files == 0);
  CHECK(fs::exists(f.file('b')));
}

TEST_CASE("a directory that cannot be made gives one warning and no entry") {
  Fixture f;
  const fs::path file = f.scratch.path() / "file";
  test::write_file(file, "not a directory");
  for (const fs::path& directory : {file, file / "below", fs::path("/proc/krait/cache")}) {
    f.warnings.clear();
    DiskCache cache = f.make(directory);
    CHECK_FALSE(cache.load(std::string(64, 'a')));
    CHECK(f.warnings.empty());
    CHECK_FALSE(cache.store(entry_of('a')));
    CHECK_FALSE(cache.store(entry_of('b')));
    REQUIRE(f.warnings.size() == 1);
    CHECK_THAT(f.warnings[0], Catch::Contains(directory.string()));
  }
  CHECK(test::read_file(file) == "not a directory");
}

TEST_CASE("without a directory nothing is kept, with one warning") {
  Fixture f;
  DiskCache cache = f.make(std::nullopt);
  CHECK_FALSE(cache.load(std::string(64, 'a')));
  CHECK_FALSE(cache.store(entry_of('a')));
  CHECK_FALSE(cache.store(entry_of('b')));
  REQUIRE(f.warnings.size() == 1);
  CHECK_THAT(f.warnings[0], Catch::Contains("HOME"));
  CHECK(cache.list().empty());
  CHECK(cache.clear().files == 0);
}

TEST_CASE("above the limit the entries not used for the longest time go") {
  Fixture f;
  const std::size_t size = encode(entry_of('a', 1000)).size();
  DiskCache cache = f.make(3 * size);
  for (const char digit : {'a', 'b', 'c'}) cache.store(entry_of(digit, 1000));
  CHECK(f.files() == 3);
  f.age(f.file('a'), 3);
  f.age(f.file('b'), 2);
  f.age(f.file('c'), 1);
  CHECK(cache.load(std::string(64, 'a')));  // used just now
  CHECK(cache.peek(std::string(64, 'b')));  // no use
  cache.store(entry_of('d', 1000));
  CHECK_FALSE(fs::exists(f.file('b')));
  for (const char digit : {'a', 'c', 'd'}) CHECK(fs::exists(f.file(digit)));
}

TEST_CASE("list, prune and clear see entries only") {
  Fixture f;
  CHECK(f.cache.list().empty());  // no directory yet
  f.cache.store(entry_of('a'));
  f.cache.store(entry_of('b'));
  f.age(f.file('a'), 1);
  test::write_file(f.file('c'), "no entry");
  f.age(f.file('c'), 2);
  test::write_file(f.directory / "notes.txt", "the user's");
  test::write_file(f.directory / ".writing-1-1", "in progress");
  test::write_file(f.directory / ".writing-1-2", "left by a process that died");
  f.age(f.directory / ".writing-1-2", 2);

  const std::vector<DiskCache::Listing> list = f.cache.list();
  REQUIRE(list.size() == 3);
  CHECK(list[0].key == std::string(64, 'b'));
  CHECK(list[0].intact);
  CHECK(list[0].name == "kernel");
  CHECK(list[0].backend == "llvm");
  CHECK(list[0].arch == "some-cpu");
  CHECK(list[0].bytes == encode(entry_of('b')).size());
  CHECK(list[1].key == std::string(64, 'a'));
  CHECK(list[2].key == std::string(64, 'c'));
  CHECK_FALSE(list[2].intact);

  const DiskCache::Removed pruned = f.cache.prune();
  CHECK(pruned.files == 2);
  CHECK(pruned.bytes == 8 + 27);
  CHECK_FALSE(fs::exists(f.file('c')));
  CHECK(fs::exists(f.directory / ".writing-1-1"));
  CHECK_FALSE(fs::exists(f.directory / ".writing-1-2"));

  CHECK(f.cache.clear().files == 3);
  CHECK(f.files() == 1);
  CHECK(fs::exists(f.directory / "notes.txt"));
}

TEST_CASE("listing a path that is no directory is the environment's error") {
  Fixture f;
  test::write_file(f.scratch.path() / "file", "");
  DiskCache cache = f.make(f.scratch.path() / "file");
  CHECK_THROWS_AS(cache.list(), EnvironmentError);
  CHECK_THROWS_AS(cache.clear(), EnvironmentError);
}

TEST_CASE("environment variables give the cache's place and size") {
  using Variables = std::map<std::string, std::string>;
  const auto read = [](const Variables& variables) {
    return read_environment([&](const char* variable) {
      const auto found = variables.find(variable);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK_FALSE(read({}).cache_directory);
  CHECK_FALSE(read({{"HOME", ""}}).cache_directory);
  CHECK(read({{"HOME", "/h"}}).cache_directory == "/h/.cache/krait");
  CHECK(read({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).cache_directory == "/x/krait");
  CHECK(read({{"HOME", "/h"}, {"XDG_CACHE_HOME", "x"}}).cache_directory == "/h/.cache/krait");
  CHECK(read({{"XDG_CACHE_HOME", "/x"}, {"KRAIT_CACHE_DIR", "k"}}).cache_directory == "k");
  CHECK(read({}).cache_limit_bytes == 1024u << 20);
  CHECK(read({{"KRAIT_CACHE_SIZE", "3"}}).cache_limit_bytes == 3u << 20);
  CHECK(read({{"KRAIT_HOST_CPU", "cpu"}}).host_cpu == "cpu");
  CHECK(read({{"KRAIT_LIBBLAS", "lib"}}).libblas == "lib");
  for (const char* size :
       {"0", "-1", "3M", "1.5", "18446744073709551615", "99999999999999999999"}) {
    CHECK_THROWS_AS(read({{"KRAIT_CACHE_SIZE", size}}), UsageError);
  }
}
