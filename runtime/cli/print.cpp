// krait print: what a block becomes, stage by stage.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <memory>
#include <optional>

#include "dsl/differentiate.h"
#include "dsl/error.h"
#include "runtime/cli/shape_flags.h"
#include "schedules/chunk.h"
#include "schedules/schedule.h"

namespace krait {
namespace {

struct Flags {
  ShapeFlags shape;
  std::string stage = "graph", pass = "forward", format = "text", schedule;
  std::optional<std::int64_t> chunk;
};

constexpr std::int64_t kUsualChunk = 64;

/// --chunk, else the key of --schedule for this pass, else what the spec wishes for.
std::int64_t chunk_of(const Flags& flags, const Problem& problem) {
  const Schedule schedule = parse_schedule(flags.schedule);
  if (flags.chunk) {
    KRAIT_REQUIRE(*flags.chunk >= 1, "--chunk is ", *flags.chunk, "; allowed: 1 and up");
    return *flags.chunk;
  }
  if (flags.pass == "backward" && schedule.backward_chunk) return *schedule.backward_chunk;
  if (schedule.chunk) return *schedule.chunk;
  return problem.chunk_wish > 0 ? problem.chunk_wish : kUsualChunk;
}

void require_one_of(const std::string& flag, const std::string& value,
                    std::initializer_list<const char*> allowed) {
  std::string names;
  for (const char* const name : allowed) {
    if (value == name) return;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw UsageError(flag, value, names);
}

int run_print(const Flags& flags, const std::vector<CliBlock>& blocks) {
  require_one_of("--stage", flags.stage, {"graph", "chunked"});
  require_one_of("--pass", flags.pass, {"forward", "backward"});
  require_one_of("--format", flags.format, {"text", "dot"});
  const Problem problem = problem_of(flags.shape, blocks);
  const std::int64_t size = chunk_of(flags, problem);
  Graph graph = problem.graph();
  if (flags.stage == "chunked") graph = chunk(graph, size);
  if (flags.pass == "backward") graph = differentiate(graph);
  std::cout << (flags.format == "dot" ? to_dot(graph) : to_text(graph));
  return kOk;
}

}  // namespace

void add_print(CLI::App& program, Command& command) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const print = program.add_subcommand("print", "Print what a block becomes");
  add_shape_flags(*print, flags->shape);
  print->add_option("--stage", flags->stage, "graph, chunked")->capture_default_str();
  print->add_option("--pass", flags->pass, "forward, backward")->capture_default_str();
  print->add_option("--format", flags->format, "text, dot (Graphviz)")->capture_default_str();
  print->add_option("--chunk", flags->chunk, "Positions a chunk (64, or what the spec names)");
  print->add_option("--schedule", flags->schedule, "\"chunk=64 backward.chunk=32\"");
  print->callback([flags, &command] {
    command.run = [flags, &command] { return run_print(*flags, command.blocks); };
  });
}

}  // namespace krait
