// Wrong use of print: blocks, shapes and specs that cannot be.
#include <catch2/catch.hpp>

#include "runtime/file.h"
#include "tests/error/refusal.h"

namespace krait {
namespace {

void expect(const std::vector<std::string>& arguments, int status, const std::string& said) {
  expect_refusal("print", arguments, status, said);
}

TEST_CASE("flags that describe no block are refused, flag, value and what is allowed named") {
  expect({}, 2, "--block is not given; allowed: ssd, mamba2, selective_scan");
  expect({"--block", "toaster"}, 2, "--block is toaster; allowed: ssd");
  expect({"--block", "ssd", "--stage", "soup"}, 2, "--stage is soup; allowed: graph, chunked");
  expect({"--block", "ssd", "--pass", "sideways"}, 2, "--pass is sideways; allowed: forward");
  expect({"--block", "ssd", "--format", "png"}, 2, "--format is png; allowed: text, dot");
  expect({"--block", "ssd", "--dtype", "f8"}, 2, "--dtype is \"f8\"");
  expect({"--block", "ssd", "--dtype", "i32"}, 2, "--dtype is i32");
  expect({"--block", "ssd", "--batch", "0"}, 2, "--batch is 0");
  expect({"--block", "ssd", "--seqlen", "-1"}, 2, "--seqlen is -1");
  expect({"--block", "ssd", "--chunk", "0"}, 2, "--chunk is 0");
  expect({"--block", "ssd", "--schedule", "plan=fast"}, 2, "plan is fast");
  expect({"--block", "ssd", "--size", "h=3"}, 2, "--size is h=3");
}

TEST_CASE("flags of print that do not fit the stage are refused") {
  const auto ssd = [](std::vector<std::string> more, const std::string& said) {
    more.insert(more.begin(), {"--block", "ssd"});
    expect(more, 2, said);
  };
  ssd({"--stage", "chunked", "--pass", "step"}, "--pass is step; allowed: forward, backward");
  ssd({"--stage", "llvm", "--after", "pack"}, "--after is pack; allowed: none with --stage llvm");
  ssd({"--stage", "tile", "--after", "lunch"}, "--after is lunch; allowed: build, simplify");
  ssd({"--stage", "plan", "--kernel", "y"}, "--kernel is y; allowed: none with --stage plan");
  ssd({"--stage", "asm", "--kernel", "z*"}, "--kernel is z*; allowed: a pattern for one of ");
  ssd({"--stage", "plan", "--json"}, "--json is given; allowed: not with --stage plan");
  ssd({"--stage", "sass"}, "--arch is missing; allowed: 7.5 to 12.1 with --stage sass");
  ssd({"--stage", "cuda", "--arch", "8.0,9.0"}, "--arch is 8.0,9.0; allowed: one, with --stage");
  ssd({"--stage", "stats", "--arch", "6.1"}, "compute capability is 6.1; allowed: 7.5, 8.0");
  ssd({"--stage", "stats", "--arch", "new"}, "--arch is new; allowed: a compute capability");
  ssd({"--stage", "stats", "--counts", "f"},
      "--counts is f; allowed: with --stage stats and --arch");
  ssd({"--stage", "plan", "--into", "d"}, "--into is d; allowed: none with --stage plan");
  ssd({"--stage", "plan", "--format", "dot"}, "--format is dot; allowed: text with --stage plan");
  ssd({"--stage", "plan", "--dtype", "bf16"}, "--dtype is bf16; allowed: f32, f64");
  ssd({"--stage", "plan", "--schedule", "plan=step"},
      "--schedule is plan=step; allowed: plan=chunks");
  ssd({"--stage", "plan", "--schedule", "plan=recurrent"}, "--schedule is plan=recurrent");
  ssd({"--stage", "plan", "--pass", "step", "--schedule", "plan=chunks"},
      "--schedule is plan=chunks; allowed: plan=step");
  ssd({"--stage", "plan", "--pass", "backward", "--no-gradients"},
      "--pass is backward; allowed: forward with --no-gradients");
  expect({"--block", "selective_scan", "--stage", "plan"}, 2, "plan");
  const ProgramResult unknown =
      run_program({"print", "--block", "ssd", "--stage", "asm"}, {"KRAIT_HOST_CPU=abacus"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("KRAIT_HOST_CPU is abacus") != std::string::npos);
}

TEST_CASE("sizes that a block does not have or cannot have are refused") {
  expect({"--block", "ssd", "--headdim", "0"}, 2, "headdim is 0");
  expect({"--block", "ssd", "--headdim", "five"}, 2, "--headdim");
  expect({"--block", "ssd", "--headdim", "99999999999999999999"}, 2, "headdim is");
  expect({"--block", "ssd", "--heads", "6", "--ngroups", "4"}, 2, "ngroups is 4");
  expect({"--block", "ssd", "--d-conv", "4"}, 2, "d-conv is 4");
  expect({"--block", "mamba2", "--d-model", "64", "--headdim", "48"}, 2, "headdim is 48");
  expect({"--block", "mamba2", "--d-model", "64", "--headdim", "32", "--heads", "3"}, 2,
         "heads is 3");
  expect({"--block", "mamba3", "--d-state", "1"}, 2, "d_state is 1");
  expect({"--block", "selective_scan", "--stage", "chunked"}, 2, "chunk");
}

TEST_CASE("specs that are no specs are refused") {
  const TestFolder folder;
  const auto spec = [&](const std::string& text) {
    write_file_atomically(folder.file("spec"), text);
    return folder.file("spec");
  };
  expect({"--spec", folder.file("absent")}, 3, "absent");
  expect({"--spec", spec("")}, 2, "JSON");
  expect({"--spec", spec("[1, 2]")}, 2, "object");
  expect({"--spec", spec("{\"d_model\": 64}")}, 2, "block");
  expect({"--block", "mamba2", "--spec", spec("{\"colour\": 1}")}, 2, "colour");
  expect({"--block", "mamba2", "--spec", spec("{\"d_model\": \"wide\"}")}, 2, "d_model");
  expect({"--block", "mamba2", "--spec", spec("{\"d_model\": -64}")}, 2, "d_model is -64");
  expect({"--block", "mamba2", "--spec", spec("{\"d_model\": 64.5}")}, 2, "d_model");
  expect({"--block", "ssd", "--spec", spec("{\"block\": \"mamba2\"}")}, 2, "block");
}

}  // namespace
}  // namespace krait
