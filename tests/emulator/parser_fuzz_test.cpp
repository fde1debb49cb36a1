// Texts changed at random are refused with an error or run; nothing else happens.

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/emulator/fuzz.h"
#include "tests/emulator/mutations.h"

using namespace emulator_test;

namespace {

std::vector<std::string> texts() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(KRAIT_SOURCE_DIRECTORY) / "tests/emulator/ptx")) {
    if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> out;
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    out.push_back(text.str());
  }
  REQUIRE(out.size() >= 3);
  return out;
}

}  // namespace

TEST_CASE("The texts that are changed run as they are", "[emulator][ptx][fuzz]") {
  for (const std::string& text : texts()) {
    CAPTURE(text.substr(0, text.find('\n')));
    CHECK(run_text(text) == Outcome::ran);
  }
}

TEST_CASE("Parsing changed texts", "[emulator][ptx][fuzz]") {
  Mutations mutations(1, texts());
  std::map<Outcome, int> outcomes;
  for (int i = 0; i < 5000; ++i) ++outcomes[parse_text(mutations.next())];
  // Both happen often, or the changes are not of use.
  CHECK(outcomes[Outcome::malformed] > 1000);
  CHECK(outcomes[Outcome::ran] > 1000);
}

TEST_CASE("Running changed texts", "[emulator][ptx][fuzz]") {
  Mutations mutations(2, texts());
  std::map<Outcome, int> outcomes;
  for (int i = 0; i < 5000; ++i) ++outcomes[run_text(mutations.next())];
  for (Outcome outcome : {Outcome::malformed, Outcome::refused, Outcome::failed, Outcome::ran}) {
    CHECK(outcomes[outcome] > 100);
  }
}
