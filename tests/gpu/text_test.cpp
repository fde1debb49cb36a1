// How CUDA source reads, and that what it leaves out of brackets means the same.
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "runtime/krait.h"
#include "tests/gpu/same_bits.h"
#include "tests/run_program.h"

namespace krait {
namespace {

const Axis b("b"), t("t"), n("n", 5);

/// One expression for each way in which operators may stand in one another.
void nested(Scope& s) {
  const Expr x = s.input("x", {b, t, n}), y = s.input("y", {b, t, n}), z = s.input("z", {b, t, n});
  const Expr i = s.index(n), j = s.index(t);
  auto out = [&, count = 0](const Expr& value) mutable {
    s.output("o" + std::to_string(count++), value, {b, t, n});
  };
  out(x - (y - z));
  out(x - y - z);
  out(x + (y + z));
  out(x * (y * z));
  out(x / (y * z) + x / y * z);
  out(x / (y / z) * (x + y));
  out(-(x - y) * -z);
  out(-(-x * y));
  out(abs(x - y) - -2.5 * z);
  out(select(x < y && !(z < x), x - y, y * (z - x)) + 1);
  out(select((x < y || y < z) && x < 1, select(z < 0, x, y), z) * 2);
  out((i - (j - i) * 3 + 1) * x - select(!(i < j) || i == 2, i * 2 - j, x) * y);
  out(max(x - y, min(z * 2, x)) - floor((i + 3) / 2) * floor(x - 0.5));
}

TEST_CASE("operators inside of operators round as on the host") {
  Tensors inputs;
  unsigned seed = 0;
  for (const char* name : {"x", "y", "z"}) inputs[name] = testing::drawn({2, 7, 5}, ++seed);
  const Tensors outputs = testing::require_same_bits(nested, "chunk=16", inputs);
  CHECK(outputs.size() == 13);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool starts(const std::string& line, const std::string& with) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line.compare(first, with.size(), with) == 0;
}

TEST_CASE("a kernel says its schedule, what it computes, and so does each of its sections") {
  const ProgramResult result = run_program(
      {"print", "--block", "ssd", "--stage", "cuda", "--arch", "9.0", "--pass", "backward",
       "--schedule", "backward.chunk=16 backward.warps=4", "--seqlen", "64", "--kernel", "x"});
  REQUIRE(result.status == 0);
  const std::vector<std::string> lines = lines_of(result.out);
  CHECK(lines[0] == "// schedule: chunk=16 warps=4 stages=2 save.every=64 math=fast");
  CHECK(lines[1].rfind("// x computes ", 0) == 0);
  CHECK(lines[1].find("grad_x") != std::string::npos);
  int schedules = 0, sections = 0, barriers = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    CAPTURE(line);
    CHECK(line.size() <= 100);
    CHECK(line.find("((((") == std::string::npos);
    schedules += starts(line, "// schedule:") ? 1 : 0;
    barriers += starts(line, "__syncthreads();") ? 1 : 0;
    // Names of its own begin a section, under its title.
    if (!starts(line, "{")) continue;
    ++sections;
    CHECK(starts(lines[i - 1], "//"));
  }
  CHECK(schedules == 1);
  CHECK(sections > 20);
  CHECK(barriers > 5);
  CHECK(result.out.find("// step[q] = softplus(") != std::string::npos);
  CHECK(result.out.find("#include") == std::string::npos);
}

TEST_CASE("a kernel names only the keys of the schedule that it obeys") {
  const auto heads = [](const std::string& schedule) {
    const ProgramResult result = run_program(
        {"print", "--block", "mamba2", "--d-model", "32", "--headdim", "16", "--d-state", "16",
         "--stage", "cuda", "--arch", "8.0", "--schedule", schedule, "--seqlen", "64"});
    REQUIRE(result.status == 0);
    std::string all;
    for (const std::string& line : lines_of(result.out))
      if (line.rfind("// schedule:", 0) == 0) all += line + "\n";
    return all;
  };
  const std::string one = heads("chunk=16"), parts = heads("chunk=16 segments=2");
  CHECK(one.find("chunk=16") != std::string::npos);
  CHECK(one.find("segments") == std::string::npos);
  CHECK(parts.find("segments=2") != std::string::npos);
  // A state of a convolution knows of no chunks and no function.
  CHECK(one.find("// schedule: warps=1\n") != std::string::npos);
  CHECK(one.find("save.every") == std::string::npos);
  CHECK(heads("chunk=16 math=exact").find("chunk=16 warps=1 math=exact") != std::string::npos);
}

TEST_CASE("kernels that keep states at intervals say so") {
  const ProgramResult result =
      run_program({"print", "--block", "ssd", "--stage", "cuda", "--arch", "9.0", "--pass",
                   "backward", "--schedule", "backward.chunk=16 backward.save.every=64"});
  REQUIRE(result.status == 0);
  std::map<std::string, bool> told;  // by what the kernel computes
  const std::vector<std::string> lines = lines_of(result.out);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i)
    if (starts(lines[i], "// schedule:"))
      told[lines[i + 1].substr(0, lines[i + 1].find(" computes"))] =
          lines[i].find(" save.every=64 ") != std::string::npos;
  CHECK(told.at("// part"));
  CHECK(told.at("// x"));
  CHECK_FALSE(told.at("// finish_A"));
}

}  // namespace
}  // namespace krait
