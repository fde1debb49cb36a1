// KRAIT_DUMP and KRAIT_OVERRIDE_DIR on the host: write a kernel out, edit it, run it.
#include <catch2/catch.hpp>
#include <set>

#include "runtime/file.h"
#include "runtime/krait.h"
#include "tests/run_program.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), n("n", 4);

/// y = 3 x; a run of it shows which text ran.
void triple(Scope& s) { s.output("y", s.input("x", {b, t, n}) * 3, {b, t, n}); }
void triple_and_one(Scope& s) { s.output("y", s.input("x", {b, t, n}) * 3 + 1, {b, t, n}); }

/// A device as the environment would make it, whose warnings are kept.
struct Bench {
  TestFolder cache, dump, edited;
  std::vector<std::string> warnings;

  std::shared_ptr<HostDevice> device(const std::string& kinds, bool overrides) {
    HostDeviceOptions options = HostDeviceOptions::from();
    options.threads = 1;
    options.compiler.disk.directory = cache.path;
    options.compiler.disk.warn = [this](const std::string& said) { warnings.push_back(said); };
    options.compiler.dump = parse_dump(kinds, dump.path);
    if (overrides) options.compiler.override_directory = edited.path;
    return std::make_shared<HostDevice>(std::move(options));
  }
  static Layer layer(std::shared_ptr<HostDevice> on, const BlockFunction& block = triple) {
    return Layer(block, {.name = "own", .on = std::move(on), .wanted = {{}}});
  }
  /// Replaces the factor 3 in what was dumped.
  void edit(const std::string& factor) const {
    std::string text = read_text(dump.file("own.forward.y.ll"));
    const std::string three = "0x4008000000000000";
    const std::size_t at = text.find(three);
    REQUIRE(at != std::string::npos);
    text.replace(at, three.size(), factor);
    write_file_atomically(edited.file("own.forward.y.ll"), text);
  }
};

float run(const Layer& layer) {
  Tensor x(DType::f32, {1, 1, 4});
  x.data_as<float>()[2] = 2;
  return layer.forward({{"x", x.ref()}}).outputs.at("y").data_as<float>()[2];
}

std::set<std::string> names_in(const TestFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path))
    names.insert(entry.path().filename().string());
  return names;
}

TEST_CASE("what is dumped has the names of layer, pass and kernel, and a pattern chooses of it") {
  Bench bench;
  const auto dumped = [&](const std::string& kinds) {
    for (const std::string& name : names_in(bench.dump))
      std::filesystem::remove(bench.dump.file(name));
    Bench::layer(bench.device(kinds, false));
    return names_in(bench.dump);
  };
  CHECK(dumped("").empty());
  CHECK(dumped("graph,plan,tile,tile@guard,llvm,asm,cuda,ptx,log") ==
        std::set<std::string>{"own.graph.txt", "own.forward.plan.txt", "own.forward.y.tile.txt",
                              "own.forward.y.tile@guard.txt", "own.forward.y.ll",
                              "own.forward.y.s"});
  CHECK(read_text(bench.dump.file("own.forward.y.s")).find(".text") != std::string::npos);
  CHECK(dumped("llvm,plan:y") == std::set<std::string>{"own.forward.y.ll"});
  CHECK(dumped("llvm,plan:forward") ==
        std::set<std::string>{"own.forward.y.ll", "own.forward.plan.txt"});
  CHECK(dumped("llvm:own.*.y") == std::set<std::string>{"own.forward.y.ll"});
  CHECK(dumped("llvm,graph:other").empty());
}

TEST_CASE("kinds and passes that are not known are refused with those that are") {
  CHECK_THROWS_WITH(parse_dump("plan,soup", "d"),
                    Catch::Contains("asks for \"soup\"; allowed: graph, plan, tile, tile@build"));
  CHECK_THROWS_WITH(parse_dump("tile@lunch", "d"), Catch::Contains("tile@simplify"));
  for (const char* wrong : {",", ":y", "plan:", "plan@guard", "PLAN"})
    CHECK_THROWS_AS(parse_dump(wrong, "d"), UsageError);
}

TEST_CASE("an edited kernel runs in place of the generated one, is said, and is not cached") {
  Bench bench;
  CHECK(run(Bench::layer(bench.device("llvm", false))) == 6);
  const std::set<std::string> cached = names_in(bench.cache);
  bench.edit("0x4014000000000000");  // 5
  {
    const auto device = bench.device("", true);
    CHECK(run(Bench::layer(device)) == 10);
    CHECK(device->compiler().counters().compiled == 1);
    REQUIRE(bench.warnings.size() == 1);
    CHECK(bench.warnings[0].find("own.forward.y runs edited, from " +
                                 bench.edited.file("own.forward.y.ll")) != std::string::npos);
    // Edited again: the next layer has it.
    bench.edit("0x401C000000000000");  // 7
    CHECK(run(Bench::layer(device)) == 14);
  }
  CHECK(names_in(bench.cache) == cached);
  CHECK(run(Bench::layer(bench.device("", false))) == 6);
  CHECK(bench.warnings.size() == 2);
}

TEST_CASE("an edit that is broken, of no kernel or of two is said") {
  Bench bench;
  run(Bench::layer(bench.device("llvm", false)));
  bench.edit("soup");
  CHECK_THROWS_WITH(
      Bench::layer(bench.device("", true)),
      Catch::Contains("KRAIT_OVERRIDE_DIR, file " + bench.edited.file("own.forward.y.ll")) &&
          Catch::Contains("1 | ") && !Catch::Contains("report"));
  bench.edit("0x4014000000000000");
  write_file_atomically(bench.edited.file("own.forward.z.ll"), "anything");
  write_file_atomically(bench.edited.file("own.forward.z.cu"), "not the host's");
  bench.warnings.clear();
  Bench::layer(bench.device("", true));
  REQUIRE(bench.warnings.size() == 2);
  CHECK(bench.warnings[1].find("no kernel was replaced by " +
                               bench.edited.file("own.forward.z.ll") +
                               "; the kernels were own.forward.y") != std::string::npos);
  const auto device = bench.device("", true);
  Bench::layer(device);
  CHECK_THROWS_WITH(Bench::layer(device, triple_and_one), Catch::Contains("two that differ"));
}

TEST_CASE("the environment asks for dumps and edits, and its mistakes are wrong use") {
  const TestFolder folder;
  const std::string fixture = KRAIT_TEST_DATA "/m2_ssd_one.safetensors";
  const std::vector<std::string> check{"check", fixture, "--device", "host"};
  const ProgramResult good =
      run_program(check, {"KRAIT_DUMP=llvm:h", "KRAIT_DUMP_DIR=" + folder.file("new/folder")});
  CHECK(good.status == 0);
  CHECK(std::filesystem::exists(folder.file("new/folder/ssd.forward.h.ll")));
  const ProgramResult edited =
      run_program(check, {"KRAIT_OVERRIDE_DIR=" + folder.file("new/folder")});
  CHECK(edited.status == 0);
  CHECK(edited.err.find("kernel ssd.forward.h runs edited") != std::string::npos);
  CHECK(run_program(check, {"KRAIT_DUMP=soup"}).status == 2);
  CHECK(run_program(check, {"KRAIT_OVERRIDE_DIR=" + folder.file("none")}).status == 2);
}

}  // namespace
}  // namespace krait
