// krait print: the stages of the host.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "codegen/passes/passes.h"
#include "runtime/cli/kernel_stats.h"
#include "tests/run_program.h"

namespace krait {
namespace {

const std::vector<std::string> kBlock{"print", "--block",   "ssd", "--heads",  "2", "--headdim",
                                      "8",     "--d-state", "16",  "--seqlen", "40"};

std::string printed(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kBlock;
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramResult result = run_program(arguments);
  std::string line;
  for (const std::string& argument : arguments) line += " " + argument;
  INFO(line << "\n" << result.err);
  CHECK(result.status == 0);
  CHECK_FALSE(result.out.empty());
  return result.out;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("every stage prints every pass, the same text in two processes") {
  for (const char* pass : {"forward", "backward", "step"}) {
    std::vector<std::string> texts;
    for (const char* stage : {"graph", "plan", "tile", "llvm", "asm", "stats"}) {
      texts.push_back(printed({"--stage", stage, "--pass", pass}));
      CHECK(texts.back() == printed({"--stage", stage, "--pass", pass}));
    }
    CHECK(has(texts[1], std::string("plan ") + pass));
    CHECK(has(texts[2], "copy ("));
    CHECK(has(texts[3], "define void @"));
    CHECK(has(texts[4], ".text"));
    CHECK(has(texts[5], std::string(pass) + ": b=1 t="));
  }
}

TEST_CASE("flags of print change what they name") {
  const std::string plan = printed({"--stage", "plan"});
  CHECK(has(printed({"--stage", "plan", "--chunk", "8"}), "8*c+q"));
  CHECK(printed({"--stage", "plan", "--chunk", "8"}) ==
        printed({"--stage", "plan", "--schedule", "chunk=8"}));
  CHECK(printed({"--stage", "plan", "--dtype", "f64"}) != plan);
  CHECK(has(printed({"--stage", "plan", "--dtype", "f64"}), " f64 "));
  CHECK(printed({"--stage", "tile", "--pass", "backward", "--schedule", "backward.chunk=8"}) !=
        printed({"--stage", "tile", "--pass", "backward"}));

  const std::string built = printed({"--stage", "tile", "--after", "build"});
  std::string last;
  for (const TilePass& pass : host_passes())
    last = printed({"--stage", "tile", "--after", pass.name});
  CHECK(last == printed({"--stage", "tile"}));
  CHECK(last != built);
}

TEST_CASE("a pattern chooses kernels by name") {
  const auto names = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--stage", "stats", "--json", "--pass", "backward"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> all;
    const nlohmann::json stats = nlohmann::json::parse(printed(arguments));
    for (const nlohmann::json& kernel : stats.at("kernels")) all.push_back(kernel.at("name"));
    return all;
  };
  const std::vector<std::string> all = names({});
  REQUIRE(all.size() > 1);
  CHECK(names({"--kernel", all[1]}) == std::vector<std::string>{all[1]});
  const std::vector<std::string> finishing = names({"--kernel", "finish_*"});
  CHECK_FALSE(finishing.empty());
  CHECK(finishing.size() < all.size());
  for (const std::string& name : finishing) CHECK(name.starts_with("finish_"));
}

TEST_CASE("stats count what a program does") {
  // For three chunks at each of two grid points: 4 x 8 numbers are read, multiplied with on-chip
  // ones over 8, mapped with two operators and written.
  TileProgram p;
  p.name = "small";
  p.grid = {p.add_var({"g", VarKind::grid, Extent::constant(2)})};
  const int c = p.add_var({"c", VarKind::loop, Extent::symbolic("c")});
  const int i = p.add_var({"i", VarKind::tile, Extent::constant(4)});
  const int j = p.add_var({"j", VarKind::tile, Extent::constant(8)});
  const int k = p.add_var({"k", VarKind::tile, Extent::constant(8)});
  Buffer memory{"memory", DType::f64, Space::global, {}};
  memory.dims = {{"x", Extent::symbolic("x"), {64, -1}},
                 {"i", Extent::constant(4), {8, -1}},
                 {"j", Extent::constant(8), {1, -1}}};
  memory.pointer = 0;
  const int in = p.add_buffer(memory);
  memory.pointer = 1;
  memory.written = true;
  const int out = p.add_buffer(memory);
  const int a = p.add_buffer(on_chip("a", DType::f64, {Axis("i", 4), Axis("j", 8)}));
  const int square = p.add_buffer(on_chip("s", DType::f64, {Axis("k", 8), Axis("j", 8)}));
  const auto v = [](int var) { return Index::variable(var); };
  Scalar expression;
  const int operand = expression.operand(0);
  expression.finish(expression.apply(
      ScalarOp::exp, expression.apply(ScalarOp::mul, operand, expression.constant(3))));
  For loop;
  loop.var = c;
  loop.body.push_back(Copy{{i, j}, {a, {v(i), v(j)}, {}}, {in, {v(c), v(i), v(j)}, {}}});
  loop.body.push_back(Mma{{},
                          {i},
                          {j},
                          {k},
                          {a, {v(i), v(j)}, {}},
                          {a, {v(i), v(k)}, {}},
                          {square, {v(k), v(j)}, {}},
                          true});
  loop.body.push_back(MapTile{{i, j},
                              {expression},
                              {{out, {v(c), v(i), v(j)}, {}}},
                              {{a, {v(i), v(j)}, {}}},
                              {},
                              DType::f64});
  p.body.push_back(std::move(loop));
  const KernelStats stats = kernel_stats(p, {{"c", 3}, {"x", 3}});
  CHECK(stats.grid == 2);
  CHECK(stats.product_flops == 2 * 3 * 2 * 4 * 8 * 8);
  CHECK(stats.flops == stats.product_flops + 2 * 3 * 2 * 4 * 8);
  CHECK(stats.load_bytes == 2 * 3 * 4 * 8 * 8);
  CHECK(stats.store_bytes == 2 * 3 * 4 * 8 * 8);
  CHECK(stats.statements ==
        std::map<std::string, int>{{"for", 1}, {"copy", 1}, {"mma", 1}, {"map", 1}});
}

}  // namespace
}  // namespace krait
