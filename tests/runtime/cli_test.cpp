// The commands on blocks, krait's and a user's own.
#include "runtime/cli/cli.h"

#include <catch2/catch.hpp>
#include <iostream>
#include <sstream>

#include "runtime/file.h"
#include "tests/run_program.h"

namespace krait {
namespace {

/// Takes what is written to a stream while it lives.
class Captured {
 public:
  explicit Captured(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  ~Captured() { stream_.rdbuf(before_); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostream& stream_;
  std::ostringstream text_;
  std::streambuf* before_;
};

struct Said {
  int status;
  std::string out, err;
};

Said say(std::vector<const char*> arguments, const std::vector<CliBlock>& blocks = {}) {
  arguments.insert(arguments.begin(), "krait");
  const Captured out(std::cout), err(std::cerr);
  const int status = cli(static_cast<int>(arguments.size()), arguments.data(), blocks);
  return {status, out.text(), err.text()};
}

/// y[t] = sum over s <= t of exp(-(t - s)) x[s], by a scan.
CliBlock fading_sum() {
  return {"fading_sum", {{"c", 8}}, [](Scope& s, const Sizes& sizes) {
            const Axis b("b"), t("t"), c("c", sizes.at("c"));
            const Expr x = s.input("x", {b, t, c});
            const Expr decay = s.constant(-1, {b, t, c});
            s.output("y", scan(t, decay, x), {"b", "t", "c"});
          }};
}

TEST_CASE("a user's own block takes the same commands") {
  const std::vector<CliBlock> blocks{fading_sum()};
  const Said usual = say({"print", "--block", "fading_sum"}, blocks);
  INFO(usual.err);
  CHECK(usual.status == 0);
  CHECK(usual.out.find("Scan") != std::string::npos);
  const Said wide = say({"print", "--block", "fading_sum", "--size", "c=24"}, blocks);
  CHECK(wide.status == 0);
  CHECK(wide.out != usual.out);
  CHECK(say({"print", "--block", "fading_sum", "--pass", "backward"}, blocks).out.find("grad.x") !=
        std::string::npos);

  const auto refused = [&](std::vector<const char*> arguments, const std::string& said) {
    arguments.insert(arguments.begin(), {"print", "--block", "fading_sum"});
    const Said result = say(arguments, blocks);
    INFO(result.err);
    CHECK(result.status == 2);
    CHECK(result.err.find(said) != std::string::npos);
  };
  refused({"--size", "c"}, "--size is c; allowed: AXIS=N with AXIS one of c");
  refused({"--size", "d=4"}, "--size is d=4");
  refused({"--size", "c=0"}, "--size is c=0; allowed: AXIS=N with N from 1");
  refused({"--size", "c=4x"}, "--size is c=4x");
  refused({"--headdim", "4"}, "--size AXIS=N alone");
  refused({"--spec", "some.json"}, "--spec is some.json");
  CHECK(say({"print", "--block", "fading_sum"}).status == 2);
}

TEST_CASE("a user's own block goes through every stage, and is timed") {
  const std::vector<CliBlock> blocks{fading_sum()};
  const auto run = [&](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin() + 1, {"--block", "fading_sum", "--size", "c=24"});
    const Said said = say(arguments, blocks);
    INFO(said.err);
    CHECK(said.status == 0);
    return said.out;
  };
  CHECK(run({"print", "--stage", "plan"}).find("c 24") != std::string::npos);
  CHECK(run({"print", "--stage", "tile", "--pass", "backward"}).find("copy (") !=
        std::string::npos);
  CHECK(run({"print", "--stage", "llvm", "--pass", "step"}).find("define void @") !=
        std::string::npos);
  CHECK(run({"print", "--stage", "asm"}).find(".text") != std::string::npos);
  CHECK(run({"print", "--stage", "stats", "--json"}).find("\"flops\"") != std::string::npos);
  CHECK(run({"bench", "--seqlen", "64", "--repeat", "1", "--passes", "forward,backward,step",
             "--json"})
            .find("\"step_ms\"") != std::string::npos);
}

TEST_CASE("an error in a user's block is reported, not thrown") {
  CliBlock broken = fading_sum();
  broken.build = [](Scope&, const Sizes&) { throw std::runtime_error("no good"); };
  const Said result = say({"print", "--block", "fading_sum"}, {broken});
  CHECK(result.status == 1);
  CHECK(result.err.find("no good") != std::string::npos);
}

TEST_CASE("print gives the same text in two processes, and other text for other flags") {
  const std::vector<std::string> graph{"print",     "--block", "mamba2",    "--d-model", "32",
                                       "--headdim", "16",      "--d-state", "8"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), graph.begin(), graph.end());
    const ProgramResult result = run_program(more);
    INFO(result.err);
    CHECK(result.status == 0);
    return result.out;
  };
  const std::string whole = with({});
  CHECK_FALSE(whole.empty());
  CHECK(whole == with({}));
  const std::string chunked = with({"--stage", "chunked", "--chunk", "16"});
  CHECK(chunked == with({"--stage", "chunked", "--schedule", "chunk=16"}));
  CHECK(chunked != whole);
  CHECK(chunked != with({"--stage", "chunked", "--chunk", "32"}));
  CHECK(with({"--pass", "backward"}).find("grad.w.in_proj") != std::string::npos);
  CHECK(with({"--states"}).find("conv_state") != std::string::npos);
  CHECK(with({"--documents"}).find("seq_idx") != std::string::npos);
  CHECK(with({"--format", "dot"}).starts_with("digraph"));
  CHECK(with({"--dtype", "bf16"}).find("bf16") != std::string::npos);
}

TEST_CASE("a spec file names a block, its fields and the chunk that it wishes for") {
  const TestFolder folder;
  write_file_atomically(folder.file("spec"),
                        std::string("{\"block\": \"mamba2\", \"d_model\": 32, \"headdim\": 16, "
                                    "\"d_state\": 8, \"chunk_size\": 16}"));
  const auto printed = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"print", "--stage", "chunked"});
    const ProgramResult result = run_program(arguments);
    INFO(result.err);
    CHECK(result.status == 0);
    return result.out;
  };
  CHECK(printed({"--spec", folder.file("spec")}) ==
        printed({"--block", "mamba2", "--d-model", "32", "--headdim", "16", "--d-state", "8",
                 "--chunk", "16"}));
}

}  // namespace
}  // namespace krait
